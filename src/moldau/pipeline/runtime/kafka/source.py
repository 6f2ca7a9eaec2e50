"""Topics as a pipeline's source: read by Spark's connector, while a group member shows that the pipeline runs.

Start at `KafkaSource`; `SourceReading` makes the connector's options: topics, starting offsets, batch size.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.client.errors import ClientError
from moldau.client.groups import commit_for_good, is_reset, remove_static_member
from moldau.core.ids import TopicPartition
from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.checkpoint import kafka_offsets, source_lines
from moldau.pipeline.runtime.identity import PipelineIdentity, PipelineOptions
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.kafka.cluster import Cluster
from moldau.pipeline.runtime.kafka.group_presence import GroupPresence, committed_offsets
from moldau.pipeline.runtime.source import Committed, Offsets, Position, read_topics
from moldau.pipeline.runtime.start_plan import StartPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.pipeline.spark.sources import Reader

__all__ = ["KafkaSource", "SourceReading"]

logger = logging.getLogger("moldau.streams")

LATEST, EARLIEST = -1, -2
"""The connector's codes for the two ends of a partition."""

_CONNECTOR_DEFAULTS: Mapping[str, str] = {
    # A consumer at the end of its partition waits this long for more, and the next batch waits with it.
    "fetch.max.wait.ms": "10",
    "max.partition.fetch.bytes": "10485760",
    # After every poll the connector requests the partition's first and last offset: two more requests.
    "max.poll.records": "10000",
}


class KafkaSource:
    """The topics that a topology reads."""

    counts: Mapping[str, int] = {}
    resumes_from_progress = True

    def __init__(
        self,
        topology: Topology,
        identity: PipelineIdentity,
        clients: KafkaClients,
        options: PipelineOptions,
        cluster: Cluster,
    ) -> None:
        self._topology = topology
        self._identity = identity
        self._clients = clients
        self._options = options
        self._cluster = cluster
        self._presence: GroupPresence | None = None
        self._is_taken_over = False

    def start(self, on_taken_over: Callable[[], None]) -> None:
        """Join the group in the background."""

        def note() -> None:
            self._is_taken_over = True
            on_taken_over()

        sources = self._topology.sources
        topics = dict.fromkeys(topic for source in sources for topic in source.topics)
        pattern = "|".join(source.topic_pattern for source in sources if source.topic_pattern is not None)
        self._presence = GroupPresence(self._identity, self._clients, topics, pattern or None, note)
        self._presence.start()

    def committed_offsets(self, counts: Mapping[str, int], *, has_checkpoint: bool) -> Committed:
        group_id = self._identity.group_id
        found = committed_offsets(group_id, self._clients, self._partitions(counts))
        return Committed(found, not has_checkpoint and is_reset(self._cluster.admin, group_id, found))

    def reader(self, spark: SparkSession, counts: Mapping[str, int], plan: StartPlan) -> Reader:
        from moldau.pipeline.spark.sources import KafkaReader

        return KafkaReader(spark, SourceReading(self._clients, self._options, counts, self._starts(plan)))

    def starting_offsets(self, counts: Mapping[str, int], plan: StartPlan) -> Offsets:
        which = EARLIEST if self._options.offset_reset is OffsetReset.EARLIEST else LATEST
        asked = self._cluster.admin.try_list_offsets(dict.fromkeys(self._partitions(counts), which))
        found = {place: offset for place, offset in asked.items() if isinstance(offset, int)}
        return {**found, **self._starts(plan)}

    def position(self, entry: str) -> Position:
        return Position(kafka_offsets(source_lines(entry)))

    def commit_soon(self, offsets: Offsets) -> None:
        if self._presence is not None:
            self._presence.commit_soon(offsets)

    def latest_offsets(self, offsets: Offsets) -> Offsets:
        try:
            answers = self._cluster.admin.try_list_offsets(dict.fromkeys(offsets, LATEST))
        except ClientError:
            return {}
        return {place: offset for place, offset in answers.items() if isinstance(offset, int)}

    def close(self, offsets: Offsets) -> None:
        """Leave the group with offsets that outlive its last member, however long the pipeline stays stopped."""
        presence, self._presence = self._presence, None
        if presence is None:
            return
        presence.close()
        if self._is_taken_over:
            return
        group_id = self._identity.group_id
        try:
            remove_static_member(self._cluster.admin, group_id, self._identity.name, presence.member_id)
            if offsets:
                commit_for_good(self._cluster.admin, group_id, offsets)
        except ClientError as error:
            logger.debug("%s: offsets keep the broker's retention: %s", self._identity.name, error)

    def _starts(self, plan: StartPlan) -> Offsets:
        found = plan.offsets if plan.begins_after is None else self.position(plan.begins_after.entry).offsets
        return {**self._options.first_offsets, **found}

    def _partitions(self, counts: Mapping[str, int]) -> list[TopicPartition]:
        topics = read_topics(self._topology, counts)
        return [TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)]


@dataclass(frozen=True, slots=True)
class SourceReading:
    """The connector's options for one pipeline; `starts` holds offsets that replace `auto.offset.reset`."""

    clients: KafkaClients
    options: PipelineOptions
    partition_counts: Mapping[str, int]
    starts: Mapping[TopicPartition, int]

    def __call__(
        self, topics: tuple[str, ...] | None, pattern: str | None, reset: OffsetReset | None, *, is_global: bool
    ) -> dict[str, str]:
        """All options for these topics, or for those that match a pattern."""
        first = OffsetReset.EARLIEST if is_global else reset or self.options.offset_reset
        isolation = "read_committed" if self.options.is_exactly_once else "read_uncommitted"
        wanted = {"subscribePattern": pattern} if pattern is not None else {"subscribe": ",".join(topics or ())}
        return {
            **{f"kafka.{key}": value for key, value in _CONNECTOR_DEFAULTS.items()},
            "kafka.isolation.level": isolation,
            **self.clients.connector_properties("consumer"),
            **wanted,
            "startingOffsets": self._starting_offsets(self._known_topics(topics, pattern), first, is_global),
            **({} if is_global else self._limit()),
            "failOnDataLoss": "true" if self.options.fails_on_data_loss else "false",
            "includeHeaders": "true",
        }

    def _limit(self) -> dict[str, str]:
        """The batch size limit; a global table is read completely before the first record is joined with it."""
        if self.options.is_realtime:
            # Real-time batches end by time, and the connector rejects another limit.
            return {}
        return {"maxOffsetsPerTrigger": str(self.options.max_batch_records)}

    def _known_topics(self, topics: tuple[str, ...] | None, pattern: str | None) -> list[str]:
        if pattern is None:
            return list(topics or ())
        return [topic for topic in self.partition_counts if re.fullmatch(pattern, topic)]

    def _starting_offsets(self, topics: list[str], reset: OffsetReset, is_global: bool) -> str:
        if is_global or not any(at.topic in topics for at in self.starts):
            return reset.value
        # The connector needs an offset for every partition, or for none.
        otherwise = LATEST if reset is OffsetReset.LATEST else EARLIEST
        return json.dumps(
            {
                topic: {
                    str(number): self.starts.get(TopicPartition(topic, number), otherwise)
                    for number in range(self.partition_counts[topic])
                }
                for topic in topics
            }
        )
