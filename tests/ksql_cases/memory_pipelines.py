"""Persistent queries that run in this process without Spark, over a real broker: for the cases over HTTP.

The same plans and the same operators as on Spark, one record after the other. Start at `MemoryBuilder`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from confluent_kafka import Consumer, Message, TopicPartition
from tests.ksql_cases.world import CaseRecord

from moldau.core.errors import MoldauError
from moldau.ksql.pipelines import hosted_query
from moldau.ksql.schemas import prepared_serdes
from moldau.ksql.settings import KsqlSettings
from moldau.ksql.statements.state import HostedQuery
from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.partitioning import partition_hash
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.runtime.hosting.host import PipelineSpec
from moldau.pipeline.runtime.metrics import MetricsSnapshot, PipelineMetrics
from moldau.pipeline.runtime.states import State, StateMachine

Send = Callable[[str, int, CaseRecord], None]
"""Writes a record to a partition of a topic, and returns when it is stored."""


class MemoryPipeline:
    """A thread that feeds one query."""

    def __init__(self, settings: KsqlSettings, hosted: HostedQuery, send: Send) -> None:
        self.states = StateMachine()
        self.failure: MoldauError | None = None
        self._settings, self._hosted = settings, hosted
        self._send = send
        self._hash = partition_hash()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.positions: dict[tuple[str, int], int] = {}

    def start(self) -> None:
        self.states.move(State.REBALANCING)
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        self._stop.set()
        if self._thread.ident is not None:  # else it ends as soon as it is started
            self._thread.join(timeout_s)
        return True

    def metrics(self) -> MetricsSnapshot:
        return PipelineMetrics().snapshot({})

    def explain(self) -> str:
        return "one record after the other, in memory"

    @property
    def query_id(self) -> str:
        return self._hosted.query_id

    def _work(self) -> None:
        servers = {"bootstrap.servers": self._settings["bootstrap.servers"]}
        consumer = Consumer(
            {**servers, "group.id": "x", "enable.auto.commit": "false", "fetch.wait.max.ms": "5", "log_level": "2"}
        )
        query = self._hosted.query
        logs = self._settings["ksql.logging.processing.topic.auto.create"]
        log_topic = self._settings.processing_log_topic if logs else None
        settings = TaskSettings(
            cache_max_bytes=0, deserialization_handler=log_and_continue, processing_log_topic=log_topic
        )
        counts = {topic: self._partitions(consumer, topic) for topic in query.source_topics}
        run = InMemoryRun(
            prepared_serdes(query.topology, self._settings), settings, partitions=max(counts.values(), default=1)
        )
        sinks = self._partitions(consumer, query.sink_topic)
        try:
            consumer.assign(
                [
                    TopicPartition(topic, number, self._first(topic, number))
                    for topic, count in counts.items()
                    for number in range(count)
                ]
            )
            self.states.move(State.RUNNING)
            while not self._stop.is_set():
                self._feed(run, consumer.poll(0.05), sinks)
            self.states.move(State.PENDING_SHUTDOWN)
            self.states.move(State.NOT_RUNNING)
        finally:
            consumer.close()
            run.close()

    def _feed(self, run: InMemoryRun, message: Message | None, sinks: int) -> None:
        if message is None or message.error() is not None:
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        headers = tuple(message.headers() or ())
        time = message.timestamp()[1]
        run.pipe(
            topic,
            message.key(),
            message.value(),
            time,
            headers=headers,  # type: ignore[arg-type]
            partition=partition,
            offset=offset,
        )
        for made in run.drain():
            if made.topic == self._hosted.query.sink_topic:
                number = made.partition
                if number is None:
                    number = 0 if made.key is None else self._hash(made.key, sinks)
                self._send(made.topic, number, CaseRecord(made.key, made.value, made.timestamp, made.headers))
            elif made.topic == self._settings.processing_log_topic:
                self._send(made.topic, 0, CaseRecord(made.key, made.value, made.timestamp))
        self.positions[topic, partition] = offset + 1

    def _first(self, topic: str, number: int) -> int:
        return self._hosted.start_offsets.get(topic, {}).get(str(number), 0)

    @staticmethod
    def _partitions(consumer: Consumer, topic: str) -> int:
        return len(consumer.list_topics(topic, timeout=10).topics[topic].partitions) or 1


class MemoryBuilder:
    """Makes such pipelines, and knows them all."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.pipelines: list[MemoryPipeline] = []

    def build(self, spec: PipelineSpec) -> MemoryPipeline:
        pipeline = MemoryPipeline(*hosted_query(spec), self._send)
        self.pipelines.append(pipeline)
        return pipeline

    def delete_state(self, spec: PipelineSpec) -> None:
        """They keep none."""
