"""The class that runs a topology: `KafkaStreams`, with the API of Kafka Streams, on Spark.

This is the public API; `pipeline.runtime` does the work. Start at `KafkaStreams`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from moldau.core.errors import MoldauError
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.errors import StreamsError
from moldau.pipeline.runtime.metrics import MetricsSnapshot
from moldau.pipeline.runtime.pipeline import Handler, Response
from moldau.pipeline.runtime.states import State, StateListener
from moldau.streams.application import reset_application, streams_pipeline
from moldau.streams.default_serdes import with_serdes_of
from moldau.streams.settings import StreamsSettings
from moldau.streams.stop_signals import StopSignals

__all__ = ["KafkaStreams", "Response", "State"]

DEFAULT_CLOSE_S = 60.0


class KafkaStreams(Hinting):
    """An application: runs a topology on Spark, with the given config.

        streams = KafkaStreams(builder.build(), {"application.id": "wordcount", "bootstrap.servers": "localhost:9092"})
        streams.run()

    topology: the topology to run, from `StreamsBuilder.build`.
    config: Kafka's `StreamsConfig` keys, and any `spark.*` setting. `application.id` and `bootstrap.servers` are
        required; with `processing.guarantee=exactly_once_v2` every result takes effect once, even if processes are
        killed. Keys without effect are logged once.
    engine: the Spark driver to use, for programs with more than one; by default all applications of a process share
        one, which starts with the first application and ends with the process.

    Raises `InvalidConfigError` for invalid settings.
    """

    def __init__(self, topology: Topology, config: Mapping[str, Any], *, engine: Engine | None = None) -> None:
        self.settings = StreamsSettings.of(config)
        complete = with_serdes_of(topology, config)
        self._pipeline = streams_pipeline(complete, self.settings, engine)
        self._signals = StopSignals(lambda: self._pipeline.stop(DEFAULT_CLOSE_S), lambda: self.state.is_final)

    @property
    def state(self) -> State:
        """The current state of the application."""
        return self._pipeline.states.state

    @property
    def failure(self) -> MoldauError | None:
        """The error that ended the application, if its state is ERROR; otherwise None."""
        return self._pipeline.failure

    def set_state_listener(self, listener: StateListener) -> None:
        """Set a function that is called with (new state, old state) at each change. Call this before `start`."""
        self._check_not_started()
        self._pipeline.states.listener = listener

    def set_uncaught_exception_handler(self, handler: Handler) -> None:
        """Set a function that gets the error of a failure and returns a `Response`. Call this before `start`.

        `Response.REPLACE_THREAD` retries from the failed batch, after a pause that grows with each failure;
        `SHUTDOWN_CLIENT` and `SHUTDOWN_APPLICATION` end the application in state ERROR, as does a failure without a
        handler. Temporary failures, such as an unreachable cluster, are retried without calling the handler.
        """
        self._check_not_started()
        self._pipeline.handler = handler

    def start(self) -> None:
        """Check topology, topics and state, then run in the background; returns when records are being read.

        The first application of a process waits a few seconds for Spark. Raises `MoldauError` with the cause: a topic
        that does not exist, inputs of a join with different partition counts, a checkpoint of another topology, another
        process that uses the same state, no broker, no Java. If called in the main thread, SIGTERM and SIGINT now shut
        the application down cleanly.
        """
        self._check_not_started()
        self._pipeline.start()
        self._signals.take()
        try:
            self.wait_until_running(None)
        except MoldauError:
            self._signals.give_back()
            raise

    def run(self) -> None:
        """Start, and wait until the application ends: the last line of a program. Raises the error of a failure."""
        try:
            self.start()
            try:
                self.wait()
            finally:
                self.close()
        except MoldauError as error:
            # The message states the problem; a traceback of our internal frames would only hide it.
            raise error.with_traceback(None) from error.__cause__

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the application ends, by `close`, a signal or a failure; raises the error of a failure.

        Returns False if it has not ended within `timeout_s`.
        """
        ended = self._pipeline.states.wait_for(lambda state: state.is_final, timeout_s)
        if ended and self.failure is not None:
            raise self.failure
        return ended

    def wait_until_running(self, timeout_s: float | None = DEFAULT_CLOSE_S) -> bool:
        """Wait until records are being read, also while a temporary failure is retried; False on timeout.

        Raises the error of any other failure.
        """
        reached = self._pipeline.states.wait_for(lambda s: s is State.RUNNING or s.is_final, timeout_s)
        if self.failure is not None:
            raise self.failure
        return reached

    def close(self, timeout_s: float = DEFAULT_CLOSE_S) -> bool:
        """Finish the current batch and stop; False if this takes longer than `timeout_s`. May be called again."""
        ended = self._pipeline.stop(timeout_s)
        self._signals.give_back()
        return ended

    def clean_up(self) -> None:
        """Delete state, checkpoint and committed offsets, so that the next start is like the first.

        State is kept only in `state.dir`, so it is rebuilt from the topics, and results are written again. Offsets set
        by kafka-streams-application-reset are kept, and the next start begins there. Raises `StreamsError` while the
        application is running.
        """
        if self.state not in (State.CREATED, State.NOT_RUNNING, State.ERROR):
            raise StreamsError(f"application {self.settings.application_id} is {self.state.value}; close it first")
        reset_application(self.settings, keeps_reset=True)

    def store(self, name: str) -> Any:
        """A read-only view of a named store, by key, range or window, as of the last committed batch.

        Raises `UnknownStoreError` if the topology has no store of this name.
        """
        return self._pipeline.views.store(name)

    @property
    def server_port(self) -> int | None:
        """The port on which stores can be queried over HTTP; None if `application.server` is not set."""
        return self._pipeline.server_port

    def metrics(self) -> MetricsSnapshot:
        """Metrics of the application: rates, batch time, state size and lag."""
        return self._pipeline.metrics()

    def explain(self) -> str:
        """A text that shows how each operator is executed on Spark, and why; available once the application runs."""
        return self._pipeline.explain()

    def __enter__(self) -> KafkaStreams:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_not_started(self) -> None:
        if self.state is not State.CREATED:
            raise StreamsError(
                f"application {self.settings.application_id} is {self.state.value} and was started before; "
                "make a new KafkaStreams"
            )
