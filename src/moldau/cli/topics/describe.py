"""kafka-topics --describe: the lines in Kafka's format, and the filters for partitions with problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from moldau.cli.options import Parsed
from moldau.cli.tool import say
from moldau.cli.topics.selection import matching, must_exist
from moldau.client.admin import Admin, ConfigEntry, PartitionDescription, TopicDescription
from moldau.client.errors import ClientError
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.core.java_order import java_hash_order

if TYPE_CHECKING:
    from moldau.client.wire_admin import Reassignment

__all__ = ["Described", "describe", "partition_line", "topic_line"]

TOPIC_LEVEL = "DYNAMIC_TOPIC_CONFIG"


@dataclass(frozen=True, slots=True)
class Described:
    """A topic, and the other data its lines show."""

    topic: TopicDescription
    overrides: Mapping[str, str]
    min_insync_replicas: int = 1
    reassignments: Mapping[TopicPartition, Reassignment] = field(default_factory=dict)
    eligible: Mapping[TopicPartition, tuple[Sequence[int], Sequence[int]]] | None = None
    """Eligible leader replicas and the last known ones; `None` if the cluster does not track them."""


def describe(admin: Admin, parsed: Parsed) -> None:
    topics = _select_topics(admin, parsed)
    configs = admin.describe_configs("topic", [topic.name for topic in topics]) if topics else {}
    live = {node.id for node in admin.describe_cluster().nodes} if parsed.has("unavailable-partitions") else set()
    wanted = _partition_filter(parsed, live)
    movements = _movements(admin, topics)
    for topic in topics:
        described = _describe_topic(topic, configs[topic.name], movements)
        if wanted is None and (described.overrides or not parsed.has("topics-with-overrides")):
            say(topic_line(described))
        if not parsed.has("topics-with-overrides"):
            for partition in topic.partitions:
                if wanted is None or wanted(partition, described):
                    say(partition_line(described, partition))


def topic_line(described: Described) -> str:
    topic = described.topic
    configs = ",".join(f"{key}={described.overrides[key]}" for key in java_hash_order(described.overrides))
    return "\t".join(
        [
            f"Topic: {topic.name}",
            f"TopicId: {topic.topic_id}",
            f"PartitionCount: {len(topic.partitions)}",
            f"ReplicationFactor: {_replication_factor(described)}",
            f"Configs: {configs}",
        ]
    )


def partition_line(described: Described, partition: PartitionDescription) -> str:
    leader = "none" if partition.leader is None else str(partition.leader)
    line = "\t".join(
        [
            f"\tTopic: {described.topic.name}",
            f"Partition: {partition.partition}",
            f"Leader: {leader}",
            f"Replicas: {_join_numbers(partition.replicas)}",
            f"Isr: {_join_numbers(partition.isr)}",
        ]
    )
    key = TopicPartition(described.topic.name, partition.partition)
    if described.eligible is not None:
        eligible, last_known = described.eligible.get(key, ((), ()))
        line += f"\tElr: {_join_numbers(eligible)}\tLastKnownElr: {_join_numbers(last_known)}"
    if moving := described.reassignments.get(key):
        line += (
            f"\tAdding Replicas: {_join_numbers(moving.adding)}\tRemoving Replicas: {_join_numbers(moving.removing)}"
        )
    return line


def _select_topics(admin: Admin, parsed: Parsed) -> list[TopicDescription]:
    if parsed.has("topic-id"):
        wanted = parsed.value("topic-id")
        found = [topic for topic in _describe_all(admin, admin.topic_names()) if topic.topic_id == wanted]
        must_exist(found, wanted, is_optional=parsed.has("if-exists"), kind="TopicId")
        return found
    wanted = parsed.value("topic")
    names = matching(admin.topic_names(), wanted, exclude_internal=parsed.has("exclude-internal"))
    must_exist(names, wanted, is_optional=parsed.has("if-exists"))
    return _describe_all(admin, names)


def _describe_all(admin: Admin, names: Sequence[str]) -> list[TopicDescription]:
    """Describe all topics at once; topics deleted since they were listed are left out."""
    try:
        return admin.describe_topics(names)
    except ClientError as error:
        if error.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        still_there = [name for name in admin.topic_names() if name in set(names)]
        return admin.describe_topics(still_there)


class _Movements(NamedTuple):
    reassignments: Mapping[TopicPartition, Reassignment]
    eligible: Mapping[TopicPartition, tuple[Sequence[int], Sequence[int]]] | None


def _movements(admin: Admin, topics: Sequence[TopicDescription]) -> _Movements:
    """Reassignments and eligible leaders, which librdkafka cannot request; not needed with a single broker."""
    if all(topic.replication_factor <= 1 for topic in topics) and admin.broker_count() <= 1:
        return _Movements({}, None)
    from moldau.client import wire_admin

    with admin.wire() as client:
        names = [topic.name for topic in topics]
        eligible = wire_admin.eligible_leader_replicas(client, names) if wire_admin.is_elr_enabled(client) else None
        return _Movements(wire_admin.list_reassignments(client), eligible)


def _describe_topic(topic: TopicDescription, entries: Sequence[ConfigEntry], movements: _Movements) -> Described:
    overrides = {entry.name: entry.value or "" for entry in entries if entry.source == TOPIC_LEVEL}
    min_isr = next((int(entry.value or 1) for entry in entries if entry.name == "min.insync.replicas"), 1)
    return Described(topic, overrides, min_isr, movements.reassignments, movements.eligible)


PartitionFilter = Callable[[PartitionDescription, Described], bool]


def _partition_filter(parsed: Parsed, live: set[int]) -> PartitionFilter | None:
    """The union of the requested filters, or `None` if all partitions are shown."""
    filters: dict[str, PartitionFilter] = {
        "under-replicated-partitions": lambda p, d: len(p.isr) < len(p.replicas) - _adding_count(d, p),
        "unavailable-partitions": lambda p, d: p.leader is None or p.leader not in live,
        "under-min-isr-partitions": lambda p, d: len(p.isr) < d.min_insync_replicas,
        "at-min-isr-partitions": lambda p, d: len(p.isr) == d.min_insync_replicas,
    }
    chosen = [accept for name, accept in filters.items() if parsed.has(name)]
    if not chosen:
        return None
    return lambda partition, described: any(accept(partition, described) for accept in chosen)


def _adding_count(described: Described, partition: PartitionDescription) -> int:
    moving = described.reassignments.get(TopicPartition(described.topic.name, partition.partition))
    return len(moving.adding) if moving else 0


def _replication_factor(described: Described) -> int:
    """The replication factor; during a reassignment, the future one."""
    first = described.topic.partitions[:1]
    return described.topic.replication_factor - (_adding_count(described, first[0]) if first else 0)


def _join_numbers(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
