"""Metrics for alerts: under-replicated and offline partitions, leaders, broker state, idle ratios."""

from __future__ import annotations

from collections.abc import Iterator

import moldau
from moldau.broker.cluster.figures import ReplicationFigures
from moldau.broker.context import Broker
from moldau.broker.metric_sources.attach import Parts
from moldau.broker.metric_sources.families import gauge, meter
from moldau.broker.metrics import Family, Kind, Sample
from moldau.coordinator.transaction.core import TransactionSettings

__all__ = ["families"]

FETCHER_MANAGER = "kafka.server:ReplicaFetcherManager"
FETCHER_LAG = "kafka.server:FetcherLagMetrics"
REPLICA_MANAGER = "kafka.server:ReplicaManager"
KAFKA_SERVER = "kafka.server:KafkaServer"

LATE_AFTER_MS = 300_000
"""How long after the maximum timeout an open transaction counts as late, as in Kafka."""


def families(broker: Broker, parts: Parts) -> Iterator[Family]:
    yield from _replicas(broker)
    yield gauge(KAFKA_SERVER, "BrokerState", parts.broker_state(), "0 not running, 1 starting, 2 recovery, 3 running.")
    yield Family(
        KAFKA_SERVER, "ClusterId", Kind.TEXT, "The cluster this broker belongs to.", [Sample((), broker.cluster_id)]
    )
    yield Family(
        "kafka.server:app-info",
        "",
        Kind.INFO,
        "What is running here, and since when.",
        [
            Sample(
                (("id", str(broker.node_id)),),
                {"version": moldau.__version__, "commit-id": "unknown", "start-time-ms": str(parts.started_ms)},
            )
        ],
    )
    idle = parts.loop_monitor.idle_ratio if parts.loop_monitor is not None else 1.0
    yield Family(
        "kafka.server:KafkaRequestHandlerPool",
        "RequestHandlerAvgIdlePercent",
        Kind.PERCENT,
        "Share of its time the event loop is idle.",
        [Sample((), idle)],
    )
    yield Family(
        "kafka.network:SocketServer",
        "NetworkProcessorAvgIdlePercent",
        Kind.PERCENT,
        "Share of its time the event loop is idle.",
        [Sample((), idle)],
    )
    yield Family(
        "kafka.network:Processor",
        "IdlePercent",
        Kind.PERCENT,
        "Share of its time the event loop is idle.",
        [Sample((("networkProcessor", "0"),), idle)],
    )


def _replicas(broker: Broker) -> Iterator[Family]:
    led = [one for one in broker.partitions if one.is_leader and one.offline_error is None]
    total = under = under_min = at_min = offline = producers = late = moving = 0
    too_long_ms = broker.config.section(TransactionSettings).max_timeout_ms + LATE_AFTER_MS
    for partition in broker.partitions:
        total += 1
        offline += partition.offline_error is not None
        known = partition.log.loaded_producers
        if known is not None:
            producers += len(known)
            late += known.has_late_transaction(broker.clock.now_ms() - too_long_ms)
    for partition in led:
        least = min(partition.topic.config.min_insync_replicas, len(partition.replicas))
        under += len(partition.isr) < len(partition.replicas)
        under_min += len(partition.isr) < least
        at_min += len(partition.isr) == least
        known_here = broker.image.partition(*partition.topic_partition)
        moving += known_here is not None and bool(known_here.adding_replicas or known_here.removing_replicas)
    for name, value, text in (
        ("UnderReplicatedPartitions", under, "Partitions led here with fewer in-sync replicas than replicas."),
        ("UnderMinIsrPartitionCount", under_min, "Partitions led here that refuse acks=all."),
        ("AtMinIsrPartitionCount", at_min, "Partitions led here that cannot lose another replica."),
        ("OfflineReplicaCount", offline, "Replicas here whose log cannot be used."),
        ("LeaderCount", len(led), "Partitions led here."),
        ("PartitionCount", total, "Partitions with a replica here."),
        ("ReassigningPartitions", moving, "Partitions led here that are on the move."),
        ("PartitionsWithLateTransactionsCount", late, "Partitions with a transaction open for too long."),
        ("ProducerIdCount", producers, "Producers whose sequences are held in memory."),
    ):
        yield gauge(REPLICA_MANAGER, name, value, text)
    figures = ReplicationFigures(0, 0, 0, ()) if broker.figures is None else broker.figures.replication()
    for name, count, text in (
        ("IsrShrinksPerSec", figures.isr_shrinks, "In-sync replica sets that lost a member."),
        ("IsrExpandsPerSec", figures.isr_expands, "In-sync replica sets that gained a member."),
        ("FailedIsrUpdatesPerSec", figures.failed_isr_updates, "Changes of in-sync replica sets that failed."),
    ):
        yield meter(REPLICA_MANAGER, name, count, text)
    if broker.figures is not None:
        yield from _followers(broker, figures)


def _followers(broker: Broker, figures: ReplicationFigures) -> Iterator[Family]:
    """How far the partitions that are followed here are behind their leaders."""
    most = max((lag for _, lag in figures.lags), default=0)
    labels = (("clientId", "Replica"),)
    text = "The most records that a partition here is behind its leader."
    yield Family(FETCHER_MANAGER, "MaxLag", Kind.GAUGE, text, [Sample(labels, most)])
    samples = []
    for partition, lag in figures.lags:
        topic, number = partition.topic_partition
        known = broker.image.partition(topic, number)
        fetcher = f"ReplicaFetcherThread-0-{-1 if known is None else known.leader}"
        samples.append(Sample((("clientId", fetcher), ("topic", topic), ("partition", str(number))), lag))
    yield Family(FETCHER_LAG, "ConsumerLag", Kind.GAUGE, "Records that a partition here is behind its leader.", samples)
