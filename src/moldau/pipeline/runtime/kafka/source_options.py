"""How Spark's Kafka connector is told to read: where, from which offsets, how much. Start at `SourceReading`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.core.ids import TopicPartition
from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.runtime.identity import PipelineOptions
from moldau.pipeline.runtime.kafka.clients import KafkaClients

__all__ = ["SourceReading"]

LATEST, EARLIEST = -1, -2
"""The connector's numbers for the two ends of a partition."""

_DEFAULTS: Mapping[str, str] = {
    # A consumer that has read all there is waits this long for more, and the next batch waits with it.
    "fetch.max.wait.ms": "10",
    "max.partition.fetch.bytes": "10485760",
    # After every poll the connector asks for the partition's first and last offset: two more requests.
    "max.poll.records": "10000",
}


@dataclass(frozen=True, slots=True)
class SourceReading:
    """Reads the topics of one pipeline; `starts` holds offsets that replace `auto.offset.reset`."""

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
            **{f"kafka.{key}": value for key, value in _DEFAULTS.items()},
            "kafka.isolation.level": isolation,
            **self.clients.connector_properties("consumer"),
            **wanted,
            "startingOffsets": self._starting_offsets(self._known(topics, pattern), first, is_global),
            **({} if is_global else self._limit()),
            "failOnDataLoss": "true" if self.options.fails_on_data_loss else "false",
            "includeHeaders": "true",
        }

    def _limit(self) -> dict[str, str]:
        """How much one batch takes; a global table is there as a whole before the first record meets it."""
        if self.options.is_realtime:
            # Its batches end by the clock, and the connector refuses another end.
            return {}
        return {"maxOffsetsPerTrigger": str(self.options.max_batch_records)}

    def _known(self, topics: tuple[str, ...] | None, pattern: str | None) -> list[str]:
        if pattern is None:
            return list(topics or ())
        return [topic for topic in self.partition_counts if re.fullmatch(pattern, topic)]

    def _starting_offsets(self, topics: list[str], reset: OffsetReset, is_global: bool) -> str:
        if is_global or not any(at.topic in topics for at in self.starts):
            return reset.value
        # The connector wants to be told about every partition, or about none.
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
