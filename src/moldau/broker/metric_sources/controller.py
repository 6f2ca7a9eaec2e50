"""Metrics of the controller and its quorum."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.broker.cluster.figures import QuorumFigures
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
    quorum = _quorum(broker)
    yield meter(STATS, "UncleanLeaderElectionsPerSec", quorum.unclean_elections, "Elections that lost data.")
    yield meter(STATS, "ElectionFromEligibleLeaderReplicasPerSec", 0, "Elections outside of the in-sync replicas.")
    yield Family(
        STATS,
        "LeaderElectionRateAndTimeMs",
        Kind.HISTOGRAM,
        "Elections and how long they took.",
        [Sample((), Distribution(quorum.elections, ()))],
    )
    yield from _raft(quorum)
    yield from _metadata(broker, parts)


def _quorum(broker: Broker) -> QuorumFigures:
    """The quorum as this node sees it; a node alone is all of it."""
    if broker.figures is not None:
        return broker.figures.quorum()
    quorum, me = broker.controller.quorum, broker.node_id
    offset, epoch = broker.image.offset, quorum.epoch
    return QuorumFigures("leader", me, epoch, offset + 1, quorum.next_offset, epoch, 1, 0, 0, 0, 0, 1)


def _cluster(broker: Broker) -> Iterator[Family]:
    image, quorum = broker.image, _quorum(broker)
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
        ("TimedOutBrokerHeartbeatCount", quorum.silent_brokers, "Brokers that fell silent."),
        ("NewActiveControllersCount", quorum.terms, "How often this controller took over."),
        ("TopicsToDeleteCount", 0, "Kept for old dashboards."),
        ("ReplicasToDeleteCount", 0, "Kept for old dashboards."),
        ("TopicsIneligibleToDeleteCount", 0, "Kept for old dashboards."),
        ("ReplicasIneligibleToDeleteCount", 0, "Kept for old dashboards."),
    ):
        yield gauge(CONTROLLER, name, value, text)


def _raft(quorum: QuorumFigures) -> Iterator[Family]:
    """The quorum's state; the text of `current-state` becomes a label, with value 1 for the current state."""
    yield Family(
        RAFT,
        "current-state",
        Kind.ATTRIBUTE,
        "What this node is to the quorum.",
        [Sample((("state", state),), int(state == quorum.state)) for state in STATES],
    )
    for name, value, text in (
        ("current-leader", quorum.leader_id, "Who leads the quorum."),
        ("current-vote", quorum.leader_id if quorum.state == "leader" else -1, "Whom this node voted for."),
        ("current-epoch", quorum.epoch, "The epoch."),
        ("high-watermark", quorum.high_watermark, "What is committed."),
        ("log-end-offset", quorum.end_offset, "What is written."),
        ("log-end-epoch", quorum.end_epoch, "The epoch of the newest record."),
        ("number-of-voters", quorum.voters, "Voters."),
        ("number-of-observers", quorum.observers, "Observers, as far as the leader knows."),
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
    yield gauge(loader, "CurrentControllerId", _quorum(broker).leader_id, "Who leads the quorum.")
    log = parts.metadata_log
    if log is not None:
        loaded = int(log.last_snapshot is not None)
        age_ms = broker.clock.monotonic_ms() - log.last_snapshot_ms
        yield gauge(loader, "HandleLoadSnapshotCount", loaded, "Snapshots loaded.")
        emitter = "kafka.server:SnapshotEmitter"
        yield gauge(emitter, "LatestSnapshotGeneratedBytes", log.last_snapshot_bytes, "Size of the newest snapshot.")
        yield gauge(emitter, "LatestSnapshotGeneratedAgeMs", age_ms, "Age of the newest snapshot.")
