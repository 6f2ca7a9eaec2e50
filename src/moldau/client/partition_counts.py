"""How many partitions a topic has, as a partitioner in Python needs to know for every record.

Asked once per topic and again after a while, since partitions may be added. Start at `PartitionCounts.of`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from moldau.client.errors import ClientError, UnreachableError, client_error
from moldau.client.waiting import interruptible, served
from moldau.core.errors import ErrorCode

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka import Producer as RdkafkaProducer

__all__ = ["PartitionCounts"]

REFRESH_S = 60.0
ATTEMPT_S = 2.0
PAUSE_S = 0.1


class PartitionCounts:
    """Partition counts by topic, kept for `REFRESH_S`. Asking for a topic creates it where the broker allows that."""

    def __init__(self, rdkafka: RdkafkaProducer, max_block_s: float) -> None:
        self._rdkafka = rdkafka
        self._max_block_s = max_block_s
        self._known: dict[str, tuple[int, float]] = {}

    def of(self, topic: str) -> int:
        """The count, at least 1; raises `ClientError` where the topic does not come to exist within `max.block.ms`."""
        count, asked_at = self._known.get(topic, (0, 0.0))
        if count and time.monotonic() < asked_at + REFRESH_S:
            return count
        count = self._ask(topic)
        self._known[topic] = (count, time.monotonic())
        return count

    def _ask(self, topic: str) -> int:
        deadline = time.monotonic() + self._max_block_s
        while True:
            found = self._ask_once(topic, max(0.1, min(ATTEMPT_S, deadline - time.monotonic())))
            if isinstance(found, int) and found:
                return found
            if time.monotonic() >= deadline:
                raise found if isinstance(found, ClientError) else _not_there(topic)
            if isinstance(found, ClientError) and not _may_pass(found):
                raise found
            served(self._rdkafka.poll, PAUSE_S)

    def _ask_once(self, topic: str, timeout_s: float) -> int | ClientError:
        from confluent_kafka import KafkaException

        try:
            metadata = interruptible(lambda: self._rdkafka.list_topics(topic, timeout=timeout_s))
            found = metadata.topics[topic]
        except KafkaException as error:
            return client_error(error.args[0], about=f"Topic {topic}")
        refusal: KafkaError | None = found.error
        return len(found.partitions) if refusal is None else client_error(refusal, about=f"Topic {topic}")


def _may_pass(error: ClientError) -> bool:
    code = error.error_code
    return isinstance(error, UnreachableError) or (code is not None and code.is_retriable)


def _not_there(topic: str) -> ClientError:
    return ClientError(f"Topic {topic} has no partitions", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
