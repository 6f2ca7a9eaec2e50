"""One life of a pipeline's query: from checks and compilation to its end. `pipeline` starts another when it fails.

What must be in this order is in `Run.start`: the predecessor is fenced before its progress is read, and the progress
is read before Spark may plan a batch. Start there.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moldau.client.errors import ClientError
from moldau.client.wire_groups import is_reset
from moldau.core.ids import TopicPartition
from moldau.pipeline.cores.task import is_stateless
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.application_folder import ApplicationFolder
from moldau.pipeline.runtime.at_least_once_sink import AtLeastOnceSink
from moldau.pipeline.runtime.checkpoint import Checkpoint, end_offsets
from moldau.pipeline.runtime.cluster import Cluster
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.errors import AlreadyRunningError, StateLostError, StreamsError
from moldau.pipeline.runtime.exactly_once_sink import ExactlyOnceSink
from moldau.pipeline.runtime.files import Files, LocalFiles
from moldau.pipeline.runtime.group_presence import GroupPresence, committed_offsets
from moldau.pipeline.runtime.layout import Layout
from moldau.pipeline.runtime.metrics import PipelineMetrics
from moldau.pipeline.runtime.progress import Progress
from moldau.pipeline.runtime.results import Results
from moldau.pipeline.runtime.settings import Latency, StreamsSettings
from moldau.pipeline.runtime.sinks import Sink, planned_batch
from moldau.pipeline.runtime.source_options import SourceReading, connector_properties
from moldau.pipeline.runtime.start_plan import Facts, StartPlan, start_plan
from moldau.pipeline.runtime.store_database import StoreDatabase
from moldau.pipeline.spark.job import EarlierRun, Job
from moldau.pipeline.spark.queries import Query, start_query, start_realtime_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.pipeline.spark.compiler import Compiled
    from moldau.pipeline.spark.driver.masters import Executors
    from moldau.pipeline.spark.driver.process_lock import ProcessLock

__all__ = ["Run", "StoppedError"]

logger = logging.getLogger("moldau.streams")

ENDING_S = 5
"""How long an end is waited for before it matters whether brokers answer: where none does, a query that has stopped
working needs another minute to close its source, and a batch under way will not be done at all.
"""

GIVEN_UP_S = 2
"""How long a batch that was given up may take to notice. A request to a broker that says nothing takes a minute: it is
left alone, and comes to nothing, for its transaction is the next start's to decide.
"""

PREDECESSOR_S = 75.0
"""How long a killed driver's Java process may take to end, or a query that was not waited for."""

REFRESH_S = 3600.0
"""Brokers forget transactional ids and offsets after days of silence, so an idle pipeline speaks every hour."""

EARLIEST, LATEST = -2, -1


class StoppedError(StreamsError):
    """A batch came after the pipeline was told to stop; it will be done at the next start."""


class Run:
    """A query and everything that belongs to it."""

    def __init__(
        self,
        topology: Topology,
        settings: StreamsSettings,
        engine: Engine,
        folder: ApplicationFolder,
        *,
        presence: GroupPresence,
        stores: StoreDatabase,
        metrics: PipelineMetrics,
    ) -> None:
        self._topology = topology
        self._settings = settings
        self._engine = engine
        self._folder = folder
        self._presence = presence
        self._stores = stores
        self._metrics = metrics
        self._cluster = Cluster(settings)
        self._batch_lock = threading.Lock()
        self._is_stopping = False
        self._last_word = time.monotonic()
        self._sink: Sink | None = None
        self._lock: ProcessLock | None = None
        self._identity: str | None = None
        self._reported: int | None = None
        self._committed: Mapping[TopicPartition, int] = {}
        self.query: Query | None = None
        self.compiled: Compiled | None = None
        self.checkpoint: Checkpoint | None = None
        self.executors: Executors | None = None
        """Those of a cluster, once it is known to be one."""

    def start(self) -> Query:
        """Check, compile and start. Raises what a person can mend as a `MoldauError`."""
        from moldau.pipeline.spark.compiler import compile_topology

        counts = self._cluster.prepared(self._topology)
        spark = self._pipeline_session(self._engine.session())
        files = self._files(spark)
        checkpoint = self.checkpoint = self._folder.checkpoint(files)
        progress = self._open_sink()
        plan = self._plan(checkpoint, progress, counts)
        self._begin(plan, checkpoint)
        layout, before = self._layout(spark, counts), self._layout_before(files, checkpoint)
        if before is not None:
            before.check(layout, self._settings.application_id, self._folder.location)
        reading = SourceReading(self._settings, counts, plan.starting_offsets)
        job = Job(
            application_id=self._settings.application_id,
            partition_counts=counts,
            settings=self._settings.given,
            source_options=reading,
            earlier=self._earlier_run(before, checkpoint),
        )
        self.compiled = compile_topology(spark, self._topology, job)
        if before is None:
            replace(layout, native=self.compiled.native_outputs).save(self._folder.layout_file, files)
        self._metrics.begins_at(self._begins_at(plan, checkpoint, counts))
        self._recommit(checkpoint, progress)
        self.query = self._started(self.compiled, checkpoint)
        return self.query

    def stop(self, timeout_s: float) -> None:
        """Let the batch under way finish, if brokers answer and it takes no longer than this, and end the query."""
        self._is_stopping = True
        soon_s = min(ENDING_S, timeout_s)
        if not self._finishes_batch(soon_s) and not (
            self._cluster.answers() and self._finishes_batch(timeout_s - soon_s)
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
        """Wait for the cluster no longer, be it at the start or in the middle of a batch."""
        if self._sink is not None:
            self._sink.interrupt()

    def close(self) -> None:
        """Let go of connections, and of the lock; a batch or a query that is still ending keeps them until it has."""
        if self._finishes_batch(GIVEN_UP_S):
            self._close_sink()
        if self.query is None or (self._sink is None and self.query.wait(0)):
            self._release_lock()
        else:
            threading.Thread(target=self._let_go_at_the_end_of, args=(self.query,), daemon=True).start()

    def _close_sink(self) -> None:
        if self._sink is not None:
            try:
                self._sink.close()
            except ClientError as error:
                logger.debug("while closing: %s", error)
            self._sink = None

    def _let_go_at_the_end_of(self, query: Query) -> None:
        query.wait()
        with self._batch_lock:
            self._close_sink()
        self._release_lock()

    def _release_lock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def refresh_if_idle(self) -> None:
        """Say something to the brokers where there has been nothing to say for long."""
        if time.monotonic() - self._last_word < REFRESH_S or not self._batch_lock.acquire(blocking=False):
            return
        try:
            if self._sink is not None:
                self._sink.refresh()
            self._last_word = time.monotonic()
        finally:
            self._batch_lock.release()

    def progressed(self, progress: Mapping[str, Any]) -> None:
        """In real-time mode no batch is handed to us, so that offsets follow what Spark reports."""
        if self._settings.latency is not Latency.REALTIME or progress.get("batchId") == self._reported:
            return
        self._reported = progress.get("batchId")
        ends = end_offsets("\n\n" + "\n".join(json.dumps(source.get("endOffset")) for source in progress["sources"]))
        self._presence.commit_soon(ends)
        self._metrics.batch_done(int(self._reported or 0), ends, int(progress.get("numInputRows") or 0))

    # Starting

    def _pipeline_session(self, spark: SparkSession) -> SparkSession:
        from moldau.pipeline.spark.driver.process_lock import ProcessLock
        from moldau.pipeline.spark.driver.session import new_pipeline_session

        lock = ProcessLock(spark, self._folder.process_lock_file)
        if not lock.acquire(PREDECESSOR_S):
            raise AlreadyRunningError(
                f"a Spark process of application {self._settings.application_id} still works in "
                f"{self._folder.local}; wait for its end, or stop it"
            )
        self._lock = lock
        self._prepare_cluster(spark)
        frozen = self._frozen_state_partitions(self._files(spark))
        own = {"spark.sql.shuffle.partitions": frozen} if frozen else {}
        ending = {"spark.sql.streaming.stopTimeout": f"{ENDING_S}s"}
        return new_pipeline_session(spark, {**ending, **self._engine.settings, **own, **self._settings.spark})

    def _prepare_cluster(self, spark: SparkSession) -> None:
        """See to it that executors elsewhere find the program's modules, and can find its state."""
        from moldau.pipeline.spark.driver.masters import Executors, is_local_master
        from moldau.pipeline.spark.driver.user_modules import ship_modules

        if is_local_master(spark.sparkContext.master):
            return
        self.executors = Executors(spark)
        ship_modules(spark)
        if self._folder.is_local and not self._settings.state_dir.startswith("file:"):
            logger.warning(
                "state.dir is %s, and every executor of the cluster must see that folder; if they do, write it as "
                "file://%s, and a URI such as hdfs://… otherwise",
                self._folder.location,
                self._folder.location.removesuffix(f"/{self._settings.application_id}"),
            )

    def _frozen_state_partitions(self, files: Files) -> str | None:
        before = Layout.load(self._folder.layout_file, files)
        return None if before is None else str(before.state_partitions)

    def _files(self, spark: SparkSession) -> Files:
        from moldau.pipeline.spark.driver.hadoop_files import HadoopFiles

        return LocalFiles() if self._folder.is_local else HadoopFiles(spark)

    def _open_sink(self) -> Progress | None:
        if not self._settings.is_exactly_once:
            self._sink = AtLeastOnceSink(self._settings, self._presence)
            return None
        sink = ExactlyOnceSink(self._settings)
        self._sink = sink
        return sink.open()

    def _plan(self, checkpoint: Checkpoint, progress: Progress | None, counts: Mapping[str, int]) -> StartPlan:
        self._committed = committed_offsets(self._settings, self._read_partitions(counts))
        return start_plan(
            Facts(
                application_id=self._settings.application_id,
                state_dir=self._folder.location,
                is_exactly_once=self._settings.is_exactly_once,
                is_stateless=self._is_stateless,
                checkpoint=checkpoint.identity,
                last_planned=checkpoint.last_planned,
                progress=progress,
                group_offsets=self._committed,
                is_reset=checkpoint.identity is None and self._is_reset(),
            )
        )

    def _is_reset(self) -> bool:
        return is_reset(self._cluster.admin, self._settings.application_id, self._committed)

    def _begin(self, plan: StartPlan, checkpoint: Checkpoint) -> None:
        if plan.warning is not None:
            logger.warning(plan.warning)
        if plan.restored is not None:
            checkpoint.restore_entry(plan.restored.batch, plan.restored.entry)
        identity, done = checkpoint.identity, checkpoint.last_committed
        if identity is None or done is None:
            self._stores.clear()
            return
        last = self._stores.last_batch(identity)
        if self._stores.stores and (last is None or last < done):
            raise StateLostError(
                f"{self._folder.stores_file} is missing or older than the checkpoint beside it, so stores would be "
                "incomplete; restore it, or begin anew: "
                f"moldau streams reset --application-id {self._settings.application_id}"
            )

    def _layout(self, spark: SparkSession, counts: Mapping[str, int]) -> Layout:
        partitions = {at.topic: counts[at.topic] for at in self._read_partitions(counts)}
        return Layout(
            self._topology.describe(),
            {} if self._is_stateless else partitions,
            int(spark.conf.get("spark.sql.shuffle.partitions") or 1),
        )

    def _layout_before(self, files: Files, checkpoint: Checkpoint) -> Layout | None:
        """What the checkpoint was made for; None where it has planned no batch yet."""
        return None if checkpoint.last_planned is None else Layout.load(self._folder.layout_file, files)

    def _earlier_run(self, before: Layout | None, checkpoint: Checkpoint) -> EarlierRun | None:
        """What the checkpoint holds; where its description is lost, it is taken for one of an old version."""
        if checkpoint.last_planned is None:
            return None
        return EarlierRun(None) if before is None else before.earlier_run

    def _begins_at(
        self, plan: StartPlan, checkpoint: Checkpoint, counts: Mapping[str, int]
    ) -> dict[TopicPartition, int]:
        done = checkpoint.last_committed
        entry = None if done is None else checkpoint.entry(done)
        if entry is not None:
            return end_offsets(entry)
        which = EARLIEST if self._settings.offset_reset.value == "earliest" else LATEST
        asked = self._cluster.admin.try_list_offsets(dict.fromkeys(self._read_partitions(counts), which))
        found = {place: offset for place, offset in asked.items() if isinstance(offset, int)}
        return {**found, **plan.starting_offsets}

    def _recommit(self, checkpoint: Checkpoint, progress: Progress | None) -> None:
        """Offsets may have expired while the application was down: let lag be seen again before the next batch."""
        if progress is not None and self._sink is not None:
            if any(offset != self._committed.get(place) for place, offset in progress.ends.items()):
                self._sink.refresh()
        elif not self._settings.is_exactly_once and checkpoint.last_committed is not None:
            self._presence.commit_soon(self._metrics.ends)

    def _started(self, compiled: Compiled, checkpoint: Checkpoint) -> Query:
        name = self._settings.application_id
        if self._settings.latency is Latency.REALTIME:
            refusal = "it is at-least-once" if self._settings.is_exactly_once else compiled.realtime_refusal
            if refusal is not None:
                raise StreamsError(
                    f"moldau.latency=realtime is not possible: {refusal}; leave the setting out for micro-batches"
                )
            options = connector_properties(self._settings, "producer")
            return start_realtime_query(
                compiled.frame_with_topics, name=name, checkpoint=checkpoint.location, options=options
            )
        return start_query(
            compiled.frame,
            name=name,
            checkpoint=checkpoint.location,
            mode=compiled.output_mode,
            interval_ms=self._settings.commit_interval_ms,
            on_batch=lambda rows, number: self._on_batch(
                Results(compiled.finished(rows), compiled.plan.outputs), number, checkpoint
            ),
        )

    # Batches

    def _on_batch(self, results: Results, number: int, checkpoint: Checkpoint) -> None:
        # A stop waits for a batch that has begun to be written, and not for one that is still being computed.
        results.is_empty()
        with self._batch_lock:
            if self._is_stopping:
                raise StoppedError("the pipeline is stopping")
            self._deliver(results, number, checkpoint)

    def _deliver(self, results: Results, number: int, checkpoint: Checkpoint) -> None:
        assert self._sink is not None
        self._identity = self._identity or checkpoint.identity
        batch = planned_batch(checkpoint, self._identity or "", number)
        written = self._sink.deliver(results, batch)
        results.wait()
        if self._stores.stores:
            # After the commit, so that nobody is told what is not there yet.
            self._stores.apply(batch.checkpoint, number, results.of_stores())
        self._last_word = time.monotonic()
        self._metrics.batch_done(number, batch.ends, written)

    # Facts

    @property
    def _is_stateless(self) -> bool:
        return all(is_stateless(piece) for piece in self._topology.subtopologies)

    def _read_partitions(self, counts: Mapping[str, int]) -> list[TopicPartition]:
        found: dict[str, int] = {}
        for source in self._topology.sources:
            found.update({topic: counts[topic] for topic in source.topics})
            if source.topic_pattern is not None:
                found.update({t: n for t, n in counts.items() if re.fullmatch(source.topic_pattern, t)})
        return [TopicPartition(topic, number) for topic, count in found.items() for number in range(count)]
