"""Metrics of the controller and its quorum."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.broker.context import Broker
from moldau.broker.metric_sources.attach import Parts
from moldau.broker.metric_sources.families import attribute, gauge, meter
from moldau.broker.metrics import Distribution, Family, Kind, Sample
from moldau.controller.features import METADATA_VERSION
from moldau.controller.image import NO_LEADER

__all__ = ["families"]

CONTROLLER = "kafka.controller:KafkaController"
STATS = "kafka.controller:ControllerStats"
RAFT = "kafka.server:raft-metrics"
STATES = ("leader", "candidate", "prospective", "voted", "follower", "unattached", "observer", "resigned")


def families(broker: Broker, parts: Parts) -> Iterator[Family]:
    yield from _cluster(broker)
    yield meter(STATS, "UncleanLeaderElectionsPerSec", 0, "Elections that lost data.")
    yield meter(STATS, "ElectionFromEligibleLeaderReplicasPerSec", 0, "Elections outside of the in-sync replicas.")
    yield Family(
        STATS,
        "LeaderElectionRateAndTimeMs",
        Kind.HISTOGRAM,
        "Elections and how long they took.",
        [Sample((), Distribution(0, ()))],
    )
    yield from _raft(broker)
    yield from _metadata(broker, parts)


def _cluster(broker: Broker) -> Iterator[Family]:
    image = broker.image
    partitions = leaderless = imbalanced = 0
    for topic in image.topics.values():
        for number, partition in topic.partitions.items():
            partitions += 1
            lost = broker.partitions.lost_replicas(topic.name, number)
            leaderless += partition.leader == NO_LEADER or partition.leader in lost
            imbalanced += partition.leader != partition.replicas[0]
    alive = [one for one in image.brokers.values() if not one.is_fenced]
    for name, value, text in (
        ("ActiveControllerCount", int(broker.controller.is_active), "1 on the controller that leads."),
        ("OfflinePartitionsCount", leaderless, "Partitions without a leader."),
        ("PreferredReplicaImbalanceCount", imbalanced, "Partitions not led by their first replica."),
        ("ActiveBrokerCount", len(alive), "Brokers that serve."),
        ("FencedBrokerCount", len(image.brokers) - len(alive), "Brokers registered but not serving."),
        ("ControlledShutdownBrokerCount", sum(one.is_in_controlled_shutdown for one in alive), "Brokers leaving."),
        ("GlobalTopicCount", len(image.topics), "Topics."),
        ("GlobalPartitionCount", partitions, "Partitions."),
        ("MetadataErrorCount", 0, "Records of the metadata that could not be applied."),
        ("LastAppliedRecordOffset", image.offset, "How far the metadata is applied."),
        ("LastCommittedRecordOffset", image.offset, "How far the metadata is committed."),
        ("LastAppliedRecordLagMs", 0, "How far behind that is."),
        ("TimedOutBrokerHeartbeatCount", 0, "Brokers that fell silent."),
        ("NewActiveControllersCount", 1, "Controllers seen to take over."),
        ("TopicsToDeleteCount", 0, "Kept for old dashboards."),
        ("ReplicasToDeleteCount", 0, "Kept for old dashboards."),
        ("TopicsIneligibleToDeleteCount", 0, "Kept for old dashboards."),
        ("ReplicasIneligibleToDeleteCount", 0, "Kept for old dashboards."),
    ):
        yield gauge(CONTROLLER, name, value, text)


def _raft(broker: Broker) -> Iterator[Family]:
    """The quorum's state; the text of `current-state` becomes a label, with value 1 for the current state."""
    quorum, offset = broker.controller.quorum, broker.image.offset
    yield Family(
        RAFT,
        "current-state",
        Kind.ATTRIBUTE,
        "What this node is to the quorum.",
        [Sample((("state", state),), int(state == "leader")) for state in STATES],
    )
    for name, value, text in (
        ("current-leader", broker.node_id, "Who leads the quorum."),
        ("current-vote", broker.node_id, "Whom this node voted for."),
        ("current-epoch", quorum.epoch, "The epoch."),
        ("high-watermark", offset + 1, "What is committed."),
        ("log-end-offset", quorum.next_offset, "What is written."),
        ("log-end-epoch", quorum.epoch, "The epoch of the newest record."),
        ("number-of-voters", 1, "Voters."),
        ("number-of-observers", 0, "Observers."),
        ("number-unknown-voter-connections", 0, "Voters whose address is not known."),
        ("uncommitted-voter-change", 0, "Whether the voters are being changed."),
    ):
        yield attribute(RAFT, name, value, text)


def _metadata(broker: Broker, parts: Parts) -> Iterator[Family]:
    image = broker.image
    group = "kafka.server:broker-metadata-metrics"
    yield attribute(group, "last-applied-record-offset", image.offset, "How far this broker has applied the metadata.")
    yield attribute(group, "last-applied-record-lag-ms", 0, "How far behind that is.")
    yield attribute(group, "metadata-load-error-count", 0, "Records that could not be read.")
    yield attribute(group, "metadata-apply-error-count", 0, "Changes that could not be carried out.")
    loader = "kafka.server:MetadataLoader"
    yield gauge(loader, "CurrentMetadataVersion", image.features.get(METADATA_VERSION, 0), "The metadata version.")
    yield gauge(loader, "CurrentControllerId", broker.node_id, "Who leads the quorum.")
    log = parts.metadata_log
    if log is not None:
        loaded = int(log.last_snapshot is not None)
        age_ms = broker.clock.monotonic_ms() - log.last_snapshot_ms
        yield gauge(loader, "HandleLoadSnapshotCount", loaded, "Snapshots loaded.")
        emitter = "kafka.server:SnapshotEmitter"
        yield gauge(emitter, "LatestSnapshotGeneratedBytes", log.last_snapshot_bytes, "Size of the newest snapshot.")
        yield gauge(emitter, "LatestSnapshotGeneratedAgeMs", age_ms, "Age of the newest snapshot.")
