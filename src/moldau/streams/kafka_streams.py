"""Running a topology: `KafkaStreams`, as in Kafka Streams, on Spark.

The work is done by `pipeline.runtime`; this is the part people program against. Start at `KafkaStreams`.
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
    """An application: a topology, and where and how to run it.

        streams = KafkaStreams(builder.build(), {"application.id": "wordcount", "bootstrap.servers": "localhost:9092"})
        streams.run()

    topology: what to do, from `StreamsBuilder.build`.
    config: Kafka's `StreamsConfig` keys, and any `spark.*` setting. `application.id` and `bootstrap.servers` are
        needed; `processing.guarantee=exactly_once_v2` makes every result count once, whatever is killed when.
        Keys without effect are logged once.
    engine: where to run, for programs that keep more than one Spark driver; by default the process has one, which
        starts with the first application and ends with the process.

    Raises `InvalidConfigError` for settings that make no sense.
    """

    def __init__(self, topology: Topology, config: Mapping[str, Any], *, engine: Engine | None = None) -> None:
        self.settings = StreamsSettings.of(config)
        complete = with_serdes_of(topology, config)
        self._pipeline = streams_pipeline(complete, self.settings, engine)
        self._signals = StopSignals(lambda: self._pipeline.stop(DEFAULT_CLOSE_S), lambda: self.state.is_final)

    @property
    def state(self) -> State:
        """What the application is doing."""
        return self._pipeline.states.state

    @property
    def failure(self) -> MoldauError | None:
        """What ended the application, once its state is ERROR."""
        return self._pipeline.failure

    def set_state_listener(self, listener: StateListener) -> None:
        """Be told of each change: the new state, then the old. Before `start`."""
        self._check_not_started()
        self._pipeline.states.listener = listener

    def set_uncaught_exception_handler(self, handler: Handler) -> None:
        """Decide what follows a failure; gets the error. Before `start`.

        `Response.REPLACE_THREAD` tries again from the failed batch, after a pause that grows; `SHUTDOWN_CLIENT` and
        `SHUTDOWN_APPLICATION` end the application in state ERROR. Without a handler it ends. Troubles that pass, such
        as a cluster that does not answer, are waited out and never come here.
        """
        self._check_not_started()
        self._pipeline.handler = handler

    def start(self) -> None:
        """Check everything and run in the background; returns when records are being read.

        The first application of a process waits for Spark, a few seconds. Raises `MoldauError` with what is wrong: a
        topic that does not exist, inputs of a join with different partition counts, a checkpoint of another topology,
        another process on the same state, no broker, no Java. In the main thread SIGTERM and SIGINT stop the
        application in good order from now on.
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
        """Start, and wait for the end: a whole program's last line. A failure is raised."""
        try:
            self.start()
            try:
                self.wait()
            finally:
                self.close()
        except MoldauError as error:
            # What is wrong is in the message; those lines of ours that found out would only hide it.
            raise error.with_traceback(None) from error.__cause__

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the application has ended, by `close`, a signal or a failure; the failure is raised here.

        False where it has not ended within `timeout_s`.
        """
        ended = self._pipeline.states.wait_for(lambda state: state.is_final, timeout_s)
        if ended and self.failure is not None:
            raise self.failure
        return ended

    def wait_until_running(self, timeout_s: float | None = DEFAULT_CLOSE_S) -> bool:
        """Wait until records are being read, as after a failure that is waited out; other failures are raised."""
        reached = self._pipeline.states.wait_for(lambda s: s is State.RUNNING or s.is_final, timeout_s)
        if self.failure is not None:
            raise self.failure
        return reached

    def close(self, timeout_s: float = DEFAULT_CLOSE_S) -> bool:
        """Let the batch under way finish and stop; False where that takes longer. May be called again."""
        ended = self._pipeline.stop(timeout_s)
        self._signals.give_back()
        return ended

    def clean_up(self) -> None:
        """Forget everything: state, checkpoint, committed offsets. The next start begins as if it were the first.

        State is kept nowhere but in `state.dir`, so it is built anew from the topics and results are written again.
        Offsets that kafka-streams-application-reset has set stay, and the next start begins there. Only while the
        application does not run.
        """
        if self.state not in (State.CREATED, State.NOT_RUNNING, State.ERROR):
            raise StreamsError(f"application {self.settings.application_id} is {self.state.value}; close it first")
        reset_application(self.settings, keeps_reset=True)

    def store(self, name: str) -> Any:
        """A store with a name of its own, to be read: by key, range or window, as of the last committed batch.

        Raises `UnknownStoreError` where the topology names no such store.
        """
        return self._pipeline.views.store(name)

    @property
    def server_port(self) -> int | None:
        """The port on which stores answer over HTTP, where `application.server` asks for one."""
        return self._pipeline.server_port

    def metrics(self) -> MetricsSnapshot:
        """Rates, batch time, size of state and lag."""
        return self._pipeline.metrics()

    def explain(self) -> str:
        """Which path each operator takes on Spark, and why; once the application runs."""
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
