"""Metrics of groups: count, states, commits and lag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from moldau.broker.context import Broker
from moldau.broker.metric_sources.attach import Parts
from moldau.broker.metric_sources.families import attribute, gauge, plain
from moldau.broker.metrics import Family, Kind, Sample
from moldau.core.ids import TopicPartition

__all__ = ["families"]

GROUP = "kafka.server:group-coordinator-metrics"
OLD = ("kafka.coordinator.group:GroupMetadataManager", "kafka.server:GroupMetadataManager")
CLASSIC_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")


def families(broker: Broker, parts: Parts) -> Iterator[Family]:
    shards = broker.coordinators.groups.shards.values()
    cores = [shard.core for shard in shards if shard.is_active]
    groups = [group for core in cores for group in core.groups.values()]
    loading = sum(shard.is_loading for shard in shards)
    yield _by("num-partitions", "state", {"loading": loading, "active": len(cores), "failed": 0}, "Shards by state.")
    kinds = Counter(group.kind for group in groups)
    yield _by("group-count", "protocol", {kind: kinds[kind] for kind in ("classic", "consumer")}, "Groups by protocol.")
    states = Counter((group.kind, group.state_name) for group in groups)
    for kind, names in (("classic", CLASSIC_STATES), ("consumer", CONSUMER_STATES)):
        counts = {name: states[kind, name] for name in names}
        yield _by(f"{kind}-group-count", "state", counts, f"Groups of the {kind} protocol by state.")
    offset_count = sum(len(core.offsets) for core in cores)
    for name, value, text in (
        ("group-completed-rebalance-count", sum(core.classic.completed for core in cores), "Rebalances that ended."),
        ("offset-count", offset_count, "Offsets that are kept."),
        ("offset-commit-count", sum(core.offset_counts.committed for core in cores), "Offsets committed."),
        ("offset-expiration-count", sum(core.offset_counts.expired for core in cores), "Offsets that expired."),
        ("offset-deletion-count", sum(core.offset_counts.deleted for core in cores), "Offsets deleted on request."),
    ):
        yield attribute(GROUP, name, value, text)
    by_state = Counter(group.state_name for group in groups)
    for domain in OLD:
        yield gauge(domain, "NumGroups", len(groups), "Groups of this coordinator.")
        yield gauge(domain, "NumOffsets", offset_count, "Offsets that are kept.")
        for state in CLASSIC_STATES:
            yield gauge(domain, f"NumGroups{state}", by_state[state], f"Groups in state {state}.")
    yield from _lag(broker)


def _by(name: str, tag: str, counts: dict[str, int], text: str) -> Family:
    return Family(GROUP, name, Kind.ATTRIBUTE, text, [Sample(((tag, key),), value) for key, value in counts.items()])


def _lag(broker: Broker) -> Iterator[Family]:
    """The metrics of consumer lag exporters, under their names."""
    offsets, lags, members = [], [], []
    sums: Counter[tuple[str, str]] = Counter()
    for shard in broker.coordinators.groups.shards.values():
        if not shard.is_active:
            continue
        for group_id, group in shard.core.groups.items():
            members.append(Sample((("consumergroup", group_id),), len(group.members)))
            for (topic, number), committed in shard.core.offsets.of(group_id).items():
                tags = (("consumergroup", group_id), ("topic", topic), ("partition", str(number)))
                offsets.append(Sample(tags, committed.offset))
                partition = broker.partitions.get(TopicPartition(topic, number))
                if partition is not None and partition.offline_error is None and committed.offset >= 0:
                    lag = max(partition.log.high_watermark - committed.offset, 0)
                    lags.append(Sample(tags, lag))
                    sums[group_id, topic] += lag
    yield plain("kafka_consumergroup_members", members, "Members of a group.")
    yield plain("kafka_consumergroup_current_offset", offsets, "Where a group has got to.")
    yield plain("kafka_consumergroup_lag", lags, "Records a group has not got to yet.")
    totals = [Sample((("consumergroup", group), ("topic", topic)), lag) for (group, topic), lag in sums.items()]
    yield plain("kafka_consumergroup_lag_sum", totals, "The same for all partitions of a topic.")
