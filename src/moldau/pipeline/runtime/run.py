"""One run of a pipeline's query, from checks and compilation to its end. `pipeline` starts another after a failure.

The source and the sink are passed in and may be Kafka or not. The required order is in `Run.start`: the predecessor is
fenced before its progress is read, and the progress is read before Spark may plan a batch. Start there.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from moldau.pipeline.cores.task import is_stateless
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.checkpoint import Checkpoint, as_entry
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.errors import AlreadyRunningError, StateLostError, StreamsError
from moldau.pipeline.runtime.files import Files, LocalFiles
from moldau.pipeline.runtime.folder import PipelineFolder
from moldau.pipeline.runtime.identity import PipelineIdentity, PipelineOptions
from moldau.pipeline.runtime.layout import Layout
from moldau.pipeline.runtime.metrics import PipelineMetrics
from moldau.pipeline.runtime.progress import Progress
from moldau.pipeline.runtime.sink import Results, Sink, planned_batch
from moldau.pipeline.runtime.source import Committed, Offsets, Source, read_topics
from moldau.pipeline.runtime.start_plan import Facts, StartPlan, start_plan
from moldau.pipeline.runtime.stores.database import StoreDatabase
from moldau.pipeline.spark.job import EarlierRun, Job
from moldau.pipeline.spark.queries import Query, start_query, start_realtime_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.pipeline.spark.compiler import Compiled
    from moldau.pipeline.spark.driver.masters import Executors
    from moldau.pipeline.spark.driver.process_lock import ProcessLock

__all__ = ["Environment", "Feed", "Realtime", "Run", "StoppedError"]

logger = logging.getLogger("moldau.streams")

ENDING_S = 5
"""How long to wait for the query's end before checking whether brokers answer: if none does, a stopped query needs
another minute to close its source, and the current batch cannot finish.
"""

GIVEN_UP_S = 2
"""How long an interrupted batch may take to notice. A request to a broker that does not answer takes a minute: it is
not waited for and has no effect, because the next start decides the outcome of its transaction.
"""

PREDECESSOR_S = 75.0
"""How long a killed driver's Java process, or a query that was not waited for, may take to end."""

REFRESH_S = 3600.0
"""Brokers expire idle transactional ids and offsets after days, so an idle pipeline refreshes them every hour."""


NO_EXACTLY_ONCE = (
    "exactly once needs batches that are committed as a whole, and real-time mode writes each record by itself"
)

REALTIME_SETTINGS: Mapping[str, str] = {"spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}
"""State in real-time mode needs this."""


class StoppedError(StreamsError):
    """A batch came after the pipeline was stopped; the next start runs it."""


class Environment(Protocol):
    """External resources that a pipeline needs; for Kafka see `kafka.cluster.Cluster`."""

    def prepare(self) -> Mapping[str, int]:
        """Check everything that can be checked before Spark starts, and create what is missing.

        Returns the partition count of every topic that is read or written. Raises `MoldauError`.
        """

    def answers(self) -> bool:
        """Whether the resources are reachable now, so that waiting can help; may take seconds."""

    def outage(self) -> str | None:
        """A message about what is known to be unreachable; None if nothing is. Does not block."""

    def close(self) -> None:
        """Close connections."""


class Feed(Protocol):
    """Fills stores while a query runs, such as `kafka.store_feed.StoreFeed`."""

    def start(self, *, from_scratch: bool) -> None:
        """Begin; `from_scratch` if the pipeline has no state yet."""

    def close(self) -> None:
        """Stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Realtime:
    """What Spark's real-time mode needs in place of a sink."""

    sink_options: Mapping[str, str]
    """The options of Spark's Kafka sink."""
    new_feed: Callable[[StoreDatabase], Feed]
    """Makes what fills the stores that can be queried."""


class Run:
    """A query, its sink and its locks."""

    def __init__(
        self,
        topology: Topology,
        identity: PipelineIdentity,
        options: PipelineOptions,
        engine: Engine,
        folder: PipelineFolder,
        *,
        environment: Environment,
        source: Source,
        sink: Sink,
        stores: StoreDatabase,
        metrics: PipelineMetrics,
        realtime: Realtime | None = None,
    ) -> None:
        """`sink` belongs to this run. In real-time mode Spark writes to Kafka itself, and the sink is unused."""
        self._topology = topology
        self._identity = identity
        self._options = options
        self._engine = engine
        self._folder = folder
        self._environment = environment
        self._source = source
        self._sink: Sink | None = sink
        self._stores = stores
        self._metrics = metrics
        self._realtime = realtime
        self._feed: Feed | None = None
        self._batch_lock = threading.Lock()
        self._is_stopping = False
        self._last_word = time.monotonic()
        self._lock: ProcessLock | None = None
        self._checkpoint_id: str | None = None
        self._reported: int | None = None
        self.query: Query | None = None
        self.compiled: Compiled | None = None
        self.checkpoint: Checkpoint | None = None
        self.executors: Executors | None = None
        """The cluster's executors; None until Spark is known to run on a cluster."""

    def start(self) -> Query:
        """Check, compile and start. Raises `MoldauError` for problems that a user can fix."""
        from moldau.pipeline.spark.compiler import RealtimeRefusedError, compile_topology

        assert self._sink is not None
        if self._realtime is not None and self._sink.keeps_progress:
            raise StreamsError(str(RealtimeRefusedError(NO_EXACTLY_ONCE)))
        counts = self._environment.prepare()
        spark = self._pipeline_session(self._engine.session())
        files = self._files(spark)
        checkpoint = self.checkpoint = self._folder.checkpoint(files)
        progress = self._sink.open()
        committed = self._source.committed_offsets(counts, has_checkpoint=checkpoint.identity is not None)
        plan = self._plan(self._sink, checkpoint, progress, committed)
        self._begin(plan, checkpoint)
        layout, before = self._layout(spark, counts), self._layout_before(files, checkpoint)
        if before is not None:
            before.check(layout, self._identity, self._folder.location)
        job = Job(
            application_id=self._identity.name,
            partition_counts=counts,
            settings=self._options.task_settings,
            is_realtime=self._realtime is not None,
            earlier=self._earlier_run(before, checkpoint),
        )
        reader = self._source.reader(spark, counts, plan)
        try:
            self.compiled = compile_topology(spark, self._topology, job, reader=reader)
        except RealtimeRefusedError as refused:
            raise StreamsError(str(refused)) from None
        if before is None:
            replace(layout, native=self.compiled.native_outputs).save(self._folder.layout_file, files)
        self._metrics.count_from(self._first_offsets(plan, checkpoint, counts))
        self._recommit(self._sink, checkpoint, progress, committed.offsets)
        if self._realtime is None:
            self.query = self._start_query(self.compiled, checkpoint)
        else:
            self.query = self._start_realtime_query(spark, self.compiled, checkpoint, self._realtime)
        return self.query

    def stop(self, timeout_s: float) -> None:
        """Stop the query; the current batch may finish if brokers answer and it takes no longer than `timeout_s`."""
        self._is_stopping = True
        soon_s = min(ENDING_S, timeout_s)
        if not self._finishes_batch(soon_s) and not (
            self._environment.answers() and self._finishes_batch(timeout_s - soon_s)
        ):
            self.give_up()
        if self.query is not None:
            try:
                self.query.stop()
            except Exception as error:
                logger.debug("the query could not be stopped: %s", error)

    def _finishes_batch(self, timeout_s: float) -> bool:
        if not self._batch_lock.acquire(timeout=timeout_s):
            return False
        self._batch_lock.release()
        return True

    def give_up(self) -> None:
        """Stop waiting for the cluster, at the start or within a batch."""
        if self._sink is not None:
            self._sink.interrupt()

    def close(self) -> None:
        """Close the sink and release the lock; if a batch or query is still ending, this happens when it has ended."""
        if self._feed is not None:
            self._feed.close()
        if self._finishes_batch(GIVEN_UP_S):
            self._close_sink()
        if self.query is None or (self._sink is None and self.query.wait(0)):
            self._release()
        else:
            threading.Thread(target=self._release_after, args=(self.query,), daemon=True).start()

    def _close_sink(self) -> None:
        if self._sink is not None:
            try:
                self._sink.close()
            except Exception as error:
                logger.debug("while closing: %s", error)
            self._sink = None

    def _release_after(self, query: Query) -> None:
        query.wait()
        with self._batch_lock:
            self._close_sink()
        self._release()

    def _release(self) -> None:
        if self.query is not None:
            self.query.release()
        self._engine.release_slots(self._identity.name)
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def refresh_if_idle(self) -> None:
        """Refresh the sink if nothing was sent to the brokers for `REFRESH_S`."""
        if time.monotonic() - self._last_word < REFRESH_S or not self._batch_lock.acquire(blocking=False):
            return
        try:
            if self._sink is not None:
                self._sink.refresh()
            self._last_word = time.monotonic()
        finally:
            self._batch_lock.release()

    def note_progress(self, progress: Mapping[str, Any]) -> None:
        """Commit the offsets that Spark reports, in real-time mode, where no batch passes through this process."""
        if self._realtime is None or progress.get("batchId") == self._reported:
            return
        self._reported = progress.get("batchId")
        entry = as_entry(json.dumps(source.get("endOffset")) for source in progress["sources"])
        offsets = self._source.position(entry).offsets
        self._source.commit_soon(offsets)
        self._metrics.count_batch(int(self._reported or 0), offsets, int(progress.get("numInputRows") or 0))

    # Starting

    def _pipeline_session(self, spark: SparkSession) -> SparkSession:
        from moldau.pipeline.spark.driver.process_lock import ProcessLock
        from moldau.pipeline.spark.driver.session import new_pipeline_session

        lock = ProcessLock(spark, self._folder.process_lock_file)
        if not lock.acquire(PREDECESSOR_S):
            raise AlreadyRunningError(
                f"a Spark process of {self._identity.title} still works in {self._folder.local}; "
                "wait for its end, or stop it"
            )
        self._lock = lock
        self._prepare_cluster(spark)
        frozen = self._frozen_state_partitions(self._files(spark))
        own = {"spark.sql.shuffle.partitions": frozen} if frozen else {}
        ending = {"spark.sql.streaming.stopTimeout": f"{ENDING_S}s"}
        if self._realtime is not None:
            ending |= REALTIME_SETTINGS
        return new_pipeline_session(spark, {**self._engine.settings, **ending, **own, **self._options.spark})

    def _prepare_cluster(self, spark: SparkSession) -> None:
        """Send the program's modules to remote executors, and warn if they may not see the state folder."""
        from moldau.pipeline.spark.driver.masters import Executors, is_local_master
        from moldau.pipeline.spark.driver.user_modules import ship_modules

        if is_local_master(spark.sparkContext.master):
            return
        self.executors = Executors(spark)
        ship_modules(spark)
        if self._folder.is_local and not self._folder.is_declared_shared:
            logger.warning(
                "%s: every executor of the cluster must be able to read the state folder %s; if they can, write "
                "it as file://%s, and a URI such as hdfs://… otherwise",
                self._identity.name,
                self._folder.location,
                self._folder.local.parent,
            )

    def _frozen_state_partitions(self, files: Files) -> str | None:
        before = Layout.load(self._folder.layout_file, files)
        return None if before is None else str(before.state_partitions)

    def _files(self, spark: SparkSession) -> Files:
        from moldau.pipeline.spark.driver.hadoop_files import HadoopFiles

        return LocalFiles() if self._folder.is_local else HadoopFiles(spark)

    def _plan(self, sink: Sink, checkpoint: Checkpoint, progress: Progress | None, committed: Committed) -> StartPlan:
        return start_plan(
            Facts(
                identity=self._identity,
                folder=self._folder.location,
                keeps_progress=sink.keeps_progress,
                is_stateless=self._is_stateless,
                resumes_from_progress=self._source.resumes_from_progress,
                checkpoint=checkpoint.identity,
                last_planned=checkpoint.last_planned,
                progress=progress,
                committed=committed,
            )
        )

    def _begin(self, plan: StartPlan, checkpoint: Checkpoint) -> None:
        if plan.warning is not None:
            logger.warning(plan.warning)
        if plan.restored is not None:
            checkpoint.restore_entry(plan.restored.batch, plan.restored.entry)
        identity, done = checkpoint.identity, checkpoint.last_committed
        if identity is None or done is None:
            self._stores.clear()
            return
        if self._realtime is not None:
            return  # Its stores follow their changelog topics, whatever they hold now.
        last = self._stores.last_batch(identity)
        if self._stores.stores and (last is None or last < done):
            raise StateLostError(
                f"{self._folder.stores_file} is missing or older than the checkpoint beside it, so stores would be "
                f"incomplete; restore it, or {self._identity.reset_advice}"
            )

    def _layout(self, spark: SparkSession, counts: Mapping[str, int]) -> Layout:
        return Layout(
            self._topology.describe(),
            {} if self._is_stateless else read_topics(self._topology, counts),
            int(spark.conf.get("spark.sql.shuffle.partitions") or 1),
            is_realtime=self._realtime is not None,
        )

    def _layout_before(self, files: Files, checkpoint: Checkpoint) -> Layout | None:
        """The layout that the checkpoint was made for; None if it has planned no batch yet."""
        return None if checkpoint.last_planned is None else Layout.load(self._folder.layout_file, files)

    def _earlier_run(self, before: Layout | None, checkpoint: Checkpoint) -> EarlierRun | None:
        """How the checkpoint's run was compiled; if its layout file is lost, it is treated as one of an old version."""
        if checkpoint.last_planned is None:
            return None
        return EarlierRun(None) if before is None else before.earlier_run

    def _first_offsets(self, plan: StartPlan, checkpoint: Checkpoint, counts: Mapping[str, int]) -> Offsets:
        done = checkpoint.last_committed
        entry = None if done is None else checkpoint.entry(done)
        if entry is not None:
            return self._source.position(entry).offsets
        return self._source.starting_offsets(counts, plan)

    def _recommit(self, sink: Sink, checkpoint: Checkpoint, progress: Progress | None, committed: Offsets) -> None:
        """Commit the offsets again: they may have expired while the pipeline was down, and lag needs them."""
        if not sink.commits_offsets:
            if checkpoint.last_committed is not None:
                self._source.commit_soon(self._metrics.ends)
        elif progress is not None:
            offsets = self._source.position(progress.entry).offsets
            if any(offset != committed.get(place) for place, offset in offsets.items()):
                sink.refresh()

    def _start_realtime_query(
        self, spark: SparkSession, compiled: Compiled, checkpoint: Checkpoint, realtime: Realtime
    ) -> Query:
        self._engine.reserve_slots(self._identity.name, self._realtime_slots(spark, compiled))
        self._feed = realtime.new_feed(self._stores)
        self._feed.start(from_scratch=checkpoint.last_committed is None)
        return start_realtime_query(
            compiled.frame,
            name=self._identity.name,
            checkpoint=checkpoint.location,
            options=realtime.sink_options,
            batch_ms=self._options.interval_ms,
        )

    def _realtime_slots(self, spark: SparkSession, compiled: Compiled) -> int:
        """The tasks that run all the time: one for each partition that is read, and one for each part of the state."""
        read = sum(read_topics(self._topology, compiled.plan.counts).values())
        return read + (0 if self._is_stateless else int(spark.conf.get("spark.sql.shuffle.partitions") or 1))

    def _start_query(self, compiled: Compiled, checkpoint: Checkpoint) -> Query:
        return start_query(
            compiled.frame,
            name=self._identity.name,
            checkpoint=checkpoint.location,
            mode=compiled.output_mode,
            interval_ms=self._options.interval_ms,
            on_batch=lambda rows, number: self._on_batch(
                Results(compiled.output_batches(rows), compiled.plan.outputs), number, checkpoint
            ),
        )

    # Batches

    def _on_batch(self, results: Results, number: int, checkpoint: Checkpoint) -> None:
        # A stop waits for a batch that is being written, but not for one that is still being computed.
        results.wait_for_first_row()
        with self._batch_lock:
            if self._is_stopping or self._sink is None:
                raise StoppedError("the pipeline is stopping")
            self._deliver(self._sink, results, number, checkpoint)

    def _deliver(self, sink: Sink, results: Results, number: int, checkpoint: Checkpoint) -> None:
        self._checkpoint_id = self._checkpoint_id or checkpoint.identity
        batch = planned_batch(checkpoint, self._checkpoint_id or "", number, self._source)
        written = sink.deliver(results, batch)
        results.wait_for_all()
        offsets = batch.position.offsets
        if not sink.commits_offsets:
            self._source.commit_soon(offsets)
        if self._stores.stores:
            # After the commit, so that queries return only committed changes.
            self._stores.apply(batch.checkpoint, number, results.store_changes())
        self._last_word = time.monotonic()
        self._metrics.count_batch(number, offsets, written)

    @property
    def _is_stateless(self) -> bool:
        return all(is_stateless(sub_topology) for sub_topology in self._topology.subtopologies)
