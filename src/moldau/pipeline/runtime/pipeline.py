"""A running application: its query, restarted when it fails, its place in the consumer group, its stores.

A supervisor thread starts the query and watches it. Troubles of the cluster are waited out; for others the user's
handler decides between another try and the end. `moldau.streams.KafkaStreams` is the public face.
Start at `Pipeline.start`, then `_supervise`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from enum import Enum
from typing import TYPE_CHECKING

from moldau.client.connection_log import ConnectionLog
from moldau.client.errors import ClientError
from moldau.client.wire_groups import commit_for_good, remove_static_member
from moldau.core.errors import MoldauError
from moldau.core.ids import TopicPartition
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.application_folder import ApplicationFolder
from moldau.pipeline.runtime.checkpoint import end_offsets
from moldau.pipeline.runtime.client_log import report_client_log
from moldau.pipeline.runtime.cluster import Cluster
from moldau.pipeline.runtime.diagnosis import Diagnosis, diagnosed
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.errors import StreamsError, TakenOverError
from moldau.pipeline.runtime.executor_watch import ExecutorWatch
from moldau.pipeline.runtime.group_presence import GroupPresence
from moldau.pipeline.runtime.metrics import MetricsSnapshot, PipelineMetrics
from moldau.pipeline.runtime.queryable_stores import queryable_stores
from moldau.pipeline.runtime.run import Run, StoppedError
from moldau.pipeline.runtime.settings import StreamsSettings
from moldau.pipeline.runtime.states import State, StateMachine
from moldau.pipeline.runtime.store_database import StoreDatabase
from moldau.pipeline.runtime.store_views import StoreViews
from moldau.pipeline.spark.driver.hadoop_files import StateUnreachableError

if TYPE_CHECKING:
    from moldau.pipeline.runtime.query_server import QueryServer

__all__ = ["Handler", "Pipeline", "Response"]

logger = logging.getLogger("moldau.streams")

WATCH_S = 0.1
PROGRESS_S = 0.5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
HEALTHY_S = 60.0
"""A query that ran this long starts with the short pause again."""

LATEST = -1
SILENT_END_S = 2.0
"""An end that takes longer says what it waits for."""

GIVING_UP_S = 20.0
"""How long the end may take once nothing is waited for any more."""


class Response(Enum):
    """What to do about a failure, by Kafka's names."""

    REPLACE_THREAD = "REPLACE_THREAD"
    SHUTDOWN_CLIENT = "SHUTDOWN_CLIENT"
    SHUTDOWN_APPLICATION = "SHUTDOWN_APPLICATION"


Handler = Callable[[MoldauError], Response]


class Pipeline:
    """One application of this process."""

    def __init__(self, topology: Topology, settings: StreamsSettings, engine: Engine) -> None:
        self.topology = topology
        self.settings = settings
        self.states = StateMachine()
        self.handler: Handler = lambda error: Response.SHUTDOWN_CLIENT
        self.failure: MoldauError | None = None
        """What ended the application, once it is in state ERROR."""
        self.folder = ApplicationFolder(settings)
        stores = queryable_stores(topology)
        self.views = StoreViews(self.folder.stores_file, stores, settings.application_id)
        self._queryable = stores
        self._engine = engine
        self._metrics = PipelineMetrics()
        self._stop = threading.Event()
        self._has_said_end = threading.Event()
        self._stop_timeout_s = 0.0
        self._run: Run | None = None
        self._has_run = False
        """What is missing at the first start is told; what goes away later is waited for."""
        self._taken_over = threading.Event()
        self._cluster: Cluster | None = None
        self._server: QueryServer | None = None
        self._thread = threading.Thread(target=self._supervise, name=f"{settings.application_id}-supervisor")

    def start(self) -> None:
        """Look for everything that can be wrong before Spark is bothered, then go on in the background.

        Raises `MoldauError` with what is wrong.
        """
        with ExitStack() as opened:
            self.folder.acquire()
            opened.callback(self.folder.release)
            self._cluster = Cluster(self.settings)
            self._cluster.prepared(self.topology)
            self._stores = StoreDatabase(self.folder.stores_file, self._queryable)
            opened.callback(self._stores.close)
            self._presence = GroupPresence(self.settings, *self._subscription(), self._taken_over.set)
            opened.callback(self._presence.close)
            self._serve_stores()
            opened.pop_all()
        self.states.move(State.REBALANCING)
        self._thread.start()

    @property
    def server_port(self) -> int | None:
        """Where the stores answer over HTTP, if `application.server` asks for it."""
        return None if self._server is None else self._server.port

    def _serve_stores(self) -> None:
        if self.settings.application_server is None:
            return
        from moldau.pipeline.runtime.query_app import Application
        from moldau.pipeline.runtime.query_server import QueryServer

        application = Application(self.settings.application_id, self.views, lambda: self.states.state, self.metrics)
        self._server = QueryServer(*self.settings.application_server, application)
        self._server.start()

    def stop(self, timeout_s: float) -> bool:
        """End it in good order; False where that took longer than allowed and goes on in the background."""
        self._stop_timeout_s = timeout_s
        if self.states.state is State.CREATED:
            self.states.move(State.PENDING_SHUTDOWN)
            self.states.move(State.NOT_RUNNING)
            return True
        self.states.move(State.PENDING_SHUTDOWN)
        self._stop.set()
        if threading.current_thread() is self._thread:
            return False
        began = time.monotonic()
        if self.states.wait_for(lambda state: state.is_final, min(SILENT_END_S, timeout_s)):
            return True
        self._say_what_the_end_waits_for(timeout_s)
        if self.states.wait_for(lambda state: state.is_final, began + timeout_s - time.monotonic()):
            return True
        if self._run is not None:
            self._run.give_up()
        return self.states.wait_for(lambda state: state.is_final, GIVING_UP_S)

    def metrics(self) -> MetricsSnapshot:
        """The numbers now; the lag is asked of the cluster where it answers."""
        ends = self._metrics.ends
        latest: Mapping[TopicPartition, int] = {}
        if self._cluster is not None and ends and not self.states.state.is_final:
            try:
                answers = self._cluster.admin.try_list_offsets(dict.fromkeys(ends, LATEST))
                latest = {place: offset for place, offset in answers.items() if isinstance(offset, int)}
            except ClientError:
                latest = {}
        return self._metrics.snapshot(latest)

    def explain(self) -> str:
        """How the topology runs on Spark, once it does."""
        compiled = self._run.compiled if self._run is not None else None
        if compiled is None:
            raise StreamsError("the pipeline has not started yet; how it runs is known afterwards")
        return compiled.explain()

    def _say_what_the_end_waits_for(self, timeout_s: float) -> None:
        own, servers = self.settings.application_id, self.settings.bootstrap_servers
        if self._has_said_end.is_set():
            return
        self._has_said_end.set()
        is_cut_off = ConnectionLog.to(report_client_log).is_cut_off
        because = f"; no broker answers at {servers}" if is_cut_off else ""
        logger.warning(
            "%s: the end waits up to %g s for the batch under way, and for the brokers to let its group go%s. "
            "Another Ctrl-C or SIGTERM ends it at once",
            own,
            timeout_s,
            because,
        )

    # Supervising

    def _supervise(self) -> None:
        self._presence.start()
        pause_s = FIRST_PAUSE_S
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                failure = self._live()
                if failure is None or not self._goes_on(failure):
                    break
                if time.monotonic() - began > HEALTHY_S:
                    pause_s = FIRST_PAUSE_S
                self._metrics.restarts += 1
                logger.warning("%s: %s; trying again in %g s", self.settings.application_id, failure.error, pause_s)
                self.states.move(State.REBALANCING)
                self._stop.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        finally:
            self._finish()

    def _live(self) -> Diagnosis | None:
        """One life of the query; what ended it, or None where it was told to."""
        run = Run(
            self.topology,
            self.settings,
            self._engine,
            self.folder,
            presence=self._presence,
            stores=self._stores,
            metrics=self._metrics,
        )
        self._run = run
        try:
            run.start()
            self._has_run = True
            self.states.move(State.RUNNING)
            return self._watch(run)
        except Exception as error:
            return self._what_failed(error)
        finally:
            run.stop(self._patience_s())
            run.close()

    def _watch(self, run: Run) -> Diagnosis | None:
        assert run.query is not None
        next_progress = 0.0
        watch = ExecutorWatch(self.settings.application_id, run.executors)
        while not self._stop.wait(WATCH_S):
            if self._taken_over.is_set():
                raise TakenOverError(
                    f"another instance of application {self.settings.application_id} was started, and this one ends"
                )
            if not run.query.is_active:
                return self._what_failed(run.query.failure() or "the query ended by itself")
            if time.monotonic() >= next_progress:
                next_progress = time.monotonic() + PROGRESS_S
                progress = run.query.progress()
                if progress is not None:
                    self._metrics.progressed(progress)
                    run.progressed(progress)
                watch.look(time.monotonic())
                run.refresh_if_idle()
        return None

    def _what_failed(self, error: BaseException | str) -> Diagnosis | None:
        if self._stop.is_set() or isinstance(error, StoppedError):
            return None
        if not isinstance(error, MoldauError):
            logger.debug("%s: %s", self.settings.application_id, error)
        return diagnosed(error)

    def _goes_on(self, failure: Diagnosis) -> bool:
        if failure.is_spark_gone and self._engine.has_lost_spark_for_good():
            self.failure = StreamsError(
                "spark-submit has ended Spark, and the application ends with it; started again, it goes on from there"
            )
            return False
        if failure.is_passing and (self._has_run or not isinstance(failure.error, StateUnreachableError)):
            return True
        if not isinstance(failure.error, TakenOverError) and self._asked(failure) is Response.REPLACE_THREAD:
            return True
        self.failure = failure.error
        return False

    def _asked(self, failure: Diagnosis) -> Response:
        try:
            return self.handler(failure.error)
        except Exception:
            logger.exception("the uncaught exception handler failed; the application ends")
            return Response.SHUTDOWN_CLIENT

    def _finish(self) -> None:
        failed = self.failure is not None
        self.states.move(State.PENDING_ERROR if failed else State.PENDING_SHUTDOWN)
        if failed:
            logger.error("%s: %s", self.settings.application_id, self.failure)
        endings = [self._presence.close, self._leave_group, self.views.close, self._stores.close]
        if self._server is not None:
            endings.insert(2, self._server.close)
        for end in endings:
            try:
                end()
            except Exception as error:
                logger.debug("%s: while closing: %s", self.settings.application_id, error)
        self.folder.release()
        self.states.move(State.ERROR if failed else State.NOT_RUNNING)

    def _leave_group(self) -> None:
        """Leave with offsets that outlive the group's last member, however long the application stays stopped."""
        if self._cluster is None or self._taken_over.is_set():
            return
        ends = self._metrics.ends if self._metrics.has_batch else self._checkpointed()
        try:
            own = self.settings.application_id
            remove_static_member(self._cluster.admin, own, own, self._presence.member_id)
            if ends:
                commit_for_good(self._cluster.admin, own, ends)
        except ClientError as error:
            logger.debug("%s: offsets keep the broker's retention: %s", self.settings.application_id, error)

    def _checkpointed(self) -> Mapping[TopicPartition, int]:
        """How far an earlier life came, where this one had nothing to do."""
        checkpoint = (None if self._run is None else self._run.checkpoint) or self.folder.checkpoint()
        try:
            done = checkpoint.last_committed
            entry = None if done is None else checkpoint.entry(done)
        except Exception as error:
            # Files elsewhere are read through Spark, which may be what has failed.
            logger.debug("%s: %s cannot be read: %s", self.settings.application_id, checkpoint.location, error)
            return {}
        return {} if entry is None else end_offsets(entry)

    def _patience_s(self) -> float:
        return self._stop_timeout_s or LONGEST_PAUSE_S

    def _subscription(self) -> tuple[list[str], str | None]:
        topics = [topic for source in self.topology.sources for topic in source.topics]
        patterns = [source.topic_pattern for source in self.topology.sources if source.topic_pattern is not None]
        return list(dict.fromkeys(topics)), "|".join(patterns) or None
