"""A running pipeline: its query, which is restarted after failures, its source and its stores.

A supervisor thread starts the query and watches it. After a temporary cluster failure it retries; for other failures
the user's handler decides whether to restart or stop. All parts are passed in: `kafka.wiring` builds those for Kafka,
and `moldau.streams.KafkaStreams` is one public API. Start at `Pipeline.start`, then `_supervise`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, Protocol

from moldau.core.errors import MoldauError
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.checkpoint import Checkpoint
from moldau.pipeline.runtime.diagnosis import Diagnosis, diagnose
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.errors import StreamsError, TakenOverError
from moldau.pipeline.runtime.executor_watch import Executors, ExecutorWatch
from moldau.pipeline.runtime.folder import PipelineFolder
from moldau.pipeline.runtime.identity import PipelineIdentity, PipelineOptions
from moldau.pipeline.runtime.metrics import MetricsSnapshot, PipelineMetrics
from moldau.pipeline.runtime.run import Environment, Realtime, Run, StoppedError
from moldau.pipeline.runtime.sink import Sink
from moldau.pipeline.runtime.source import Offsets, Source
from moldau.pipeline.runtime.states import State, StateMachine
from moldau.pipeline.runtime.stores.database import StoreDatabase
from moldau.pipeline.runtime.stores.queryable import queryable_stores
from moldau.pipeline.runtime.stores.views import StoreViews
from moldau.pipeline.spark.driver.hadoop_files import StateUnreachableError

if TYPE_CHECKING:
    from moldau.pipeline.runtime.stores.query_server import QueryServer
    from moldau.pipeline.spark.compiler import Compiled

__all__ = ["Handler", "Pace", "Parts", "Pipeline", "Response"]

logger = logging.getLogger("moldau.streams")


class Response(Enum):
    """How to handle a failure, by Kafka's names."""

    REPLACE_THREAD = "REPLACE_THREAD"
    SHUTDOWN_CLIENT = "SHUTDOWN_CLIENT"
    SHUTDOWN_APPLICATION = "SHUTDOWN_APPLICATION"


Handler = Callable[[MoldauError], Response]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The supervisor's wait times; tests use shorter ones."""

    watch_s: float = 0.1
    progress_s: float = 0.5
    first_pause_s: float = 0.5
    """Pause between a failure and the next start; doubled after each further failure."""
    longest_pause_s: float = 30.0
    healthy_s: float = 60.0
    """After a query has run this long, the pause is reset to the first one."""
    silent_end_s: float = 2.0
    """If stopping takes longer, what it waits for is logged."""
    giving_up_s: float = 20.0
    """How long stopping may take after the run has given up waiting for the cluster."""


class WatchedQuery(Protocol):
    """The part of a query that the supervisor uses."""

    @property
    def is_active(self) -> bool: ...

    def failure(self) -> BaseException | str | None: ...

    def progress(self) -> Mapping[str, Any] | None: ...


class Life(Protocol):
    """One run of the query, such as `run.Run`."""

    @property
    def compiled(self) -> Compiled | None: ...

    @property
    def checkpoint(self) -> Checkpoint | None: ...

    @property
    def executors(self) -> Executors | None: ...

    def start(self) -> WatchedQuery: ...

    def stop(self, timeout_s: float) -> None: ...

    def give_up(self) -> None: ...

    def close(self) -> None: ...

    def refresh_if_idle(self) -> None: ...

    def note_progress(self, progress: Mapping[str, Any]) -> None: ...


class SparkKeeper(Protocol):
    """The part of the engine that the supervisor uses."""

    def has_lost_spark_for_good(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a pipeline. All of them live as long as the pipeline; each run is created by `new_run`."""

    identity: PipelineIdentity
    folder: PipelineFolder
    environment: Environment
    source: Source
    stores: StoreDatabase
    views: StoreViews
    metrics: PipelineMetrics
    engine: SparkKeeper
    new_run: Callable[[], Life]
    """Creates a run with its own sink."""
    store_server: tuple[str, int] | None = None
    topology: Topology | None = None
    """What the HTTP API shows of it; None if there is no HTTP API."""
    pace: Pace = Pace()


class Pipeline:
    """One pipeline in this process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._pace = parts.pace
        self._name = parts.identity.name
        self.states = StateMachine()
        self.handler: Handler = lambda error: Response.SHUTDOWN_CLIENT
        self.failure: MoldauError | None = None
        """The error that ended the pipeline, if it is in state ERROR."""
        """Why the last run ended, if the pipeline was started again after it."""
        self.views = parts.views
        self._metrics = parts.metrics
        self._stop = threading.Event()
        self._has_said_end = threading.Event()
        self._stop_timeout_s = 0.0
        self._run: Life | None = None
        self._has_run = False
        """Missing resources are an error at the first start; after that, they are waited for."""
        self._taken_over = threading.Event()
        self._server: QueryServer | None = None
        self._thread = threading.Thread(target=self._supervise, name=f"{self._name}-supervisor")

    @classmethod
    def of(
        cls,
        topology: Topology,
        identity: PipelineIdentity,
        options: PipelineOptions,
        engine: Engine,
        *,
        environment: Environment,
        source: Source,
        new_sink: Callable[[], Sink],
        realtime: Realtime | None = None,
    ) -> Pipeline:
        """A pipeline with this source, and a new sink for each run. See `Run` for `realtime`."""
        folder, queryable, metrics = PipelineFolder(identity), queryable_stores(topology), PipelineMetrics()
        stores = StoreDatabase(folder.stores_file, queryable)

        def new_run() -> Run:
            return Run(
                topology,
                identity,
                options,
                engine,
                folder,
                environment=environment,
                source=source,
                sink=new_sink(),
                stores=stores,
                metrics=metrics,
                realtime=realtime,
            )

        return cls(
            Parts(
                identity=identity,
                folder=folder,
                environment=environment,
                source=source,
                stores=stores,
                views=StoreViews(folder.stores_file, queryable, identity.name),
                metrics=metrics,
                engine=engine,
                new_run=new_run,
                store_server=options.store_server,
                topology=topology,
            )
        )

    def start(self) -> None:
        """Check everything that can be checked before Spark starts, then continue in the background.

        Raises `MoldauError` with the problem.
        """
        parts = self._parts
        with ExitStack() as opened:
            parts.folder.acquire()
            opened.callback(parts.folder.release)
            opened.callback(parts.environment.close)
            parts.environment.prepare()
            parts.stores.open()
            opened.callback(parts.stores.close)
            parts.source.start(self._taken_over.set)
            opened.callback(parts.source.close, {})
            self._serve_stores()
            opened.pop_all()
        self.states.move(State.REBALANCING)
        self._thread.start()

    @property
    def server_port(self) -> int | None:
        """The HTTP port for store queries, if there is one."""
        return None if self._server is None else self._server.port

    def _serve_stores(self) -> None:
        if self._parts.store_server is None:
            return
        from moldau.pipeline.runtime.stores.query_app import Application
        from moldau.pipeline.runtime.stores.query_server import QueryServer

        application = Application(
            self._name,
            self.views,
            lambda: self.states.state,
            self.metrics,
            topology=self._parts.topology,
        )
        self._server = QueryServer(*self._parts.store_server, application)
        self._server.start()

    def stop(self, timeout_s: float) -> bool:
        """Stop the pipeline cleanly; False if that took longer than allowed and continues in the background."""
        self._stop_timeout_s = timeout_s
        if self.states.state is State.CREATED:
            self.states.move(State.PENDING_SHUTDOWN)
            self.states.move(State.NOT_RUNNING)
            return True
        self.states.move(State.PENDING_SHUTDOWN)
        self._stop.set()
        if threading.current_thread() is self._thread:
            return False
        is_over = self._wait_for_end(timeout_s)
        if is_over and self._thread.is_alive():
            # The final state is set before the thread returns; its frames are released when it has returned.
            self._thread.join(self._pace.silent_end_s)
        return is_over

    def _wait_for_end(self, timeout_s: float) -> bool:
        began = time.monotonic()
        if self.states.wait_for(lambda state: state.is_final, min(self._pace.silent_end_s, timeout_s)):
            return True
        self._say_what_the_end_waits_for(timeout_s)
        if self.states.wait_for(lambda state: state.is_final, began + timeout_s - time.monotonic()):
            return True
        if self._run is not None:
            self._run.give_up()
        return self.states.wait_for(lambda state: state.is_final, self._pace.giving_up_s)

    def metrics(self) -> MetricsSnapshot:
        """The current metrics; the source is queried for the lag, if it answers."""
        ends = self._metrics.ends
        is_over = self.states.state in (State.CREATED, State.NOT_RUNNING, State.ERROR)
        latest: Offsets = {} if is_over or not ends else self._parts.source.latest_offsets(ends)
        return self._metrics.snapshot(latest)

    def explain(self) -> str:
        """How the topology runs on Spark, once it is compiled."""
        compiled = self._run.compiled if self._run is not None else None
        if compiled is None:
            raise StreamsError("the pipeline has not started yet; how it runs is known afterwards")
        return compiled.explain()

    def _say_what_the_end_waits_for(self, timeout_s: float) -> None:
        if self._has_said_end.is_set():
            return
        self._has_said_end.set()
        outage = self._parts.environment.outage()
        logger.warning(
            "%s: stopping waits up to %g s for the running batch and for leaving the consumer group%s. "
            "Another Ctrl-C or SIGTERM ends it at once",
            self._name,
            timeout_s,
            "" if outage is None else f"; {outage}",
        )

    # Supervising

    def _supervise(self) -> None:
        pause_s = self._pace.first_pause_s
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                failure = self._live()
                if failure is None or not self._goes_on(failure):
                    break
                if time.monotonic() - began > self._pace.healthy_s:
                    pause_s = self._pace.first_pause_s
                self._metrics.restarts += 1
                logger.warning("%s: %s; trying again in %g s", self._name, str(failure.error), pause_s)
                self.states.move(State.REBALANCING)
                self._stop.wait(pause_s)
                pause_s = min(2 * pause_s, self._pace.longest_pause_s)
        finally:
            self._finish()

    def _live(self) -> Diagnosis | None:
        """Run the query once; returns why it failed, or None if it was stopped."""
        try:
            run = self._run = self._parts.new_run()
        except Exception as error:
            return self._diagnose(error)
        try:
            query = run.start()
            self._has_run = True
            self.states.move(State.RUNNING)
            return self._watch(run, query)
        except Exception as error:
            return self._diagnose(error)
        finally:
            run.stop(self._stop_timeout_s or self._pace.longest_pause_s)
            run.close()

    def _watch(self, run: Life, query: WatchedQuery) -> Diagnosis | None:
        next_progress = 0.0
        watch = ExecutorWatch(self._name, run.executors)
        while not self._stop.wait(self._pace.watch_s):
            if self._taken_over.is_set():
                title = self._parts.identity.title
                raise TakenOverError(f"another instance of {title} was started, and this one ends")
            if not query.is_active:
                return self._diagnose(query.failure() or "the query ended by itself")
            if time.monotonic() >= next_progress:
                next_progress = time.monotonic() + self._pace.progress_s
                progress = query.progress()
                if progress is not None:
                    self._metrics.note_progress(progress)
                    run.note_progress(progress)
                watch.look(time.monotonic())
                run.refresh_if_idle()
        return None

    def _diagnose(self, error: BaseException | str) -> Diagnosis | None:
        if self._stop.is_set() or isinstance(error, StoppedError):
            return None
        if not isinstance(error, MoldauError):
            logger.debug("%s: %s", self._name, error)
        diagnosis = diagnose(error)
        self._metrics.last_error = str(diagnosis.error)
        _clear_frames(error)
        return diagnosis

    def _goes_on(self, failure: Diagnosis) -> bool:
        if failure.is_spark_gone and self._parts.engine.has_lost_spark_for_good():
            self.failure = StreamsError(
                f"spark-submit has ended Spark, and {self._parts.identity.title} ends with it; "
                "start it again to continue"
            )
            return False
        if failure.is_passing and (self._has_run or not isinstance(failure.error, StateUnreachableError)):
            return True
        if not isinstance(failure.error, TakenOverError) and self._ask_handler(failure) is Response.REPLACE_THREAD:
            return True
        self.failure = failure.error
        return False

    def _ask_handler(self, failure: Diagnosis) -> Response:
        try:
            return self.handler(failure.error)
        except Exception:
            logger.exception("the uncaught exception handler failed; %s ends", self._parts.identity.title)
            return Response.SHUTDOWN_CLIENT

    def _finish(self) -> None:
        parts, failed = self._parts, self.failure is not None
        self.states.move(State.PENDING_ERROR if failed else State.PENDING_SHUTDOWN)
        if failed:
            # Logged as text: a log handler that keeps records would keep the frames of the error's traceback.
            logger.error("%s: %s", self._name, str(self.failure))
        endings = [self._leave_source, self.views.close, parts.stores.close, parts.environment.close]
        if self._server is not None:
            endings.insert(1, self._server.close)
        for end in endings:
            try:
                end()
            except Exception as error:
                logger.debug("%s: while closing: %s", self._name, error)
        parts.folder.release()
        self.states.move(State.ERROR if failed else State.NOT_RUNNING)

    def _leave_source(self) -> None:
        self._parts.source.close(self._metrics.ends if self._metrics.has_batch else self._checkpointed_offsets())

    def _checkpointed_offsets(self) -> Offsets:
        """The committed offsets of an earlier run, if this one has finished no batch."""
        checkpoint = (None if self._run is None else self._run.checkpoint) or self._parts.folder.checkpoint()
        try:
            done = checkpoint.last_committed
            entry = None if done is None else checkpoint.entry(done)
        except Exception as error:
            # Remote files are read through Spark, which may be what has failed.
            logger.debug("%s: %s cannot be read: %s", self._name, checkpoint.location, error)
            return {}
        return {} if entry is None else self._parts.source.position(entry).offsets


def _clear_frames(error: BaseException | str | None) -> None:
    """Clear the traceback's variables: the failure is kept for callers, the rows and clients in its frames are not."""
    while isinstance(error, BaseException):
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
