"""The number of messages and bytes in topics, with few requests for any number of partitions.

Offsets are requested once per leader, sizes once per broker. Start at `topic_totals`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moldau.client.admin import Admin, TopicDescription
from moldau.client.errors import ClientError
from moldau.client.wire_admin import describe_log_dirs
from moldau.core.ids import TopicPartition

__all__ = ["TopicTotals", "sum_of_known", "topic_totals"]

EARLIEST, LATEST = -2, -1


@dataclass(frozen=True, slots=True)
class TopicTotals:
    messages: int | None
    """The next offset minus the first; a compacted topic has fewer messages. `None` if unknown."""
    size_bytes: int | None
    """The size of all replicas on disk; `None` if the brokers do not return it."""


def topic_totals(admin: Admin, topics: Sequence[TopicDescription]) -> dict[str, TopicTotals]:
    messages, sizes = _messages(admin, topics), _sizes(admin)
    return {
        topic.name: TopicTotals(messages[topic.name], None if sizes is None else sizes.get(topic.name, 0))
        for topic in topics
    }


def sum_of_known(numbers: Sequence[int | None]) -> int | None:
    """The sum of the known numbers; `None` if none is known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known or not numbers else None


def _messages(admin: Admin, topics: Sequence[TopicDescription]) -> dict[str, int | None]:
    # A request for a partition without a leader would wait until the timeout.
    led = [TopicPartition(t.name, p.partition) for t in topics for p in t.partitions if p.leader is not None]
    first = admin.try_list_offsets(dict.fromkeys(led, EARLIEST))
    following = admin.try_list_offsets(dict.fromkeys(led, LATEST))
    spans: dict[str, list[int | None]] = {topic.name: [] for topic in topics}
    for partition in led:
        spans[partition.topic].append(_span(first, following, partition))
    return {name: sum_of_known(found) for name, found in spans.items()}


def _span(
    first: Mapping[TopicPartition, int | ClientError],
    following: Mapping[TopicPartition, int | ClientError],
    partition: TopicPartition,
) -> int | None:
    low, high = first.get(partition), following.get(partition)
    if not isinstance(low, int) or not isinstance(high, int):
        return None
    # Records may have been deleted between the two requests.
    return max(0, high - low)


def _sizes(admin: Admin) -> dict[str, int] | None:
    """The sizes by topic; `None` if a broker fails: it may be down, or may deny the request."""
    sizes: dict[str, int] = {}
    try:
        for node in admin.describe_cluster().nodes:
            with admin.wire(node.id) as client:
                for replica in (replica for log_dir in describe_log_dirs(client) for replica in log_dir.replicas):
                    sizes[replica.partition.topic] = sizes.get(replica.partition.topic, 0) + replica.size
    except ClientError:
        return None
    return sizes
