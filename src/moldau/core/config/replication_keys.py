"""Broker settings for replication, the controller and its metadata log."""

from __future__ import annotations

from moldau.core.config.key import ConfigKey, ConfigType, Dynamic, at_least
from moldau.core.ids import INT64_MAX

__all__ = ["REPLICATION_KEYS"]

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
LONG, CLASS = ConfigType.LONG, ConfigType.CLASS
CLUSTER = Dynamic.CLUSTER

REPLICAS = [
    ConfigKey("replica.lag.time.max.ms", LONG, 30_000, "How long a follower may be behind and still count as in sync."),
    ConfigKey("replica.socket.timeout.ms", INT, 30_000, "How long a follower waits for its leader."),
    ConfigKey("replica.socket.receive.buffer.bytes", INT, 65_536, "Receive buffer of replication sockets."),
    ConfigKey("replica.fetch.max.bytes", INT, 1_048_576, "What a follower asks of one partition.", at_least(0)),
    ConfigKey("replica.fetch.response.max.bytes", INT, 10_485_760, "What a follower asks of one leader.", at_least(0)),
    ConfigKey("replica.fetch.wait.max.ms", INT, 500, "How long a follower's fetch may wait for data."),
    ConfigKey("replica.fetch.min.bytes", INT, 1, "Bytes worth answering a follower's fetch for."),
    ConfigKey("replica.fetch.backoff.ms", INT, 1000, "A follower's pause after a failed fetch.", at_least(0)),
    ConfigKey("num.replica.fetchers", INT, 1, "Connections a follower uses per leader.", None, CLUSTER),
    ConfigKey(
        "num.replica.alter.log.dirs.threads",
        INT,
        None,
        "Moves between data folders at once; one per folder when not given.",
    ),
    ConfigKey("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, "How often high watermarks are written."),
    ConfigKey("replica.selector.class", CLASS, None, "Which replica a consumer should read from."),
    ConfigKey("fetch.purgatory.purge.interval.requests", INT, 1000, "Kept for Kafka's files; has no effect."),
    ConfigKey("producer.purgatory.purge.interval.requests", INT, 1000, "Kept for Kafka's files; has no effect."),
    ConfigKey("delete.records.purgatory.purge.interval.requests", INT, 1, "Kept for Kafka's files; has no effect."),
    ConfigKey(
        "auto.leader.rebalance.enable", BOOLEAN, True, "Give leadership back to preferred replicas now and then."
    ),
    ConfigKey("leader.imbalance.check.interval.seconds", LONG, 300, "How often that is looked at.", at_least(1)),
    ConfigKey("leader.imbalance.per.broker.percentage", INT, 10, "Kept for Kafka's files; has no effect."),
    ConfigKey("controlled.shutdown.enable", BOOLEAN, True, "Hand over leadership before stopping."),
    ConfigKey("controlled.shutdown.max.retries", INT, 3, "Kept for Kafka's files; has no effect."),
    ConfigKey("controlled.shutdown.retry.backoff.ms", LONG, 5000, "Kept for Kafka's files; has no effect."),
    ConfigKey(
        "leader.replication.throttled.rate",
        LONG,
        INT64_MAX,
        "Bytes per second sent to throttled replicas.",
        at_least(0),
        CLUSTER,
        is_hidden=True,
    ),
    ConfigKey(
        "follower.replication.throttled.rate",
        LONG,
        INT64_MAX,
        "Bytes per second received by throttled replicas.",
        at_least(0),
        CLUSTER,
        is_hidden=True,
    ),
    ConfigKey(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        INT64_MAX,
        "Bytes per second copied between data folders.",
        at_least(0),
        CLUSTER,
        is_hidden=True,
    ),
]

CONTROLLER = [
    ConfigKey("controller.socket.timeout.ms", INT, 30_000, "How long a broker waits for the controller."),
    ConfigKey("broker.heartbeat.interval.ms", INT, 2000, "How often a broker reports to the controller."),
    ConfigKey("broker.session.timeout.ms", INT, 9000, "Silence after which the controller fences a broker."),
    ConfigKey("initial.broker.registration.timeout.ms", INT, 60_000, "How long a starting broker tries to register."),
    ConfigKey(
        "controller.quorum.election.timeout.ms", INT, 1000, "How long a voter waits for a leader before it stands."
    ),
    ConfigKey(
        "controller.quorum.fetch.timeout.ms",
        INT,
        2000,
        "How long a follower goes without its leader before an election.",
    ),
    ConfigKey("controller.quorum.election.backoff.max.ms", INT, 1000, "The longest pause between two elections."),
    ConfigKey(
        "controller.quorum.append.linger.ms", INT, 25, "How long the controller gathers writes before an append."
    ),
    ConfigKey("controller.quorum.request.timeout.ms", INT, 2000, "How long quorum requests may take."),
    ConfigKey("controller.quorum.retry.backoff.ms", INT, 20, "The pause before a quorum request is repeated."),
    ConfigKey("controller.quorum.auto.join.enable", BOOLEAN, False, "Let a controller add itself to the voters."),
    ConfigKey(
        "metadata.log.dir", STRING, None, "The folder of the metadata log; the first data folder when not given."
    ),
    ConfigKey(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20_971_520,
        "Bytes of metadata records after which a snapshot is made.",
        at_least(1),
    ),
    ConfigKey(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        3_600_000,
        "The longest time without a snapshot; 0 is no limit.",
        at_least(0),
    ),
    ConfigKey("metadata.log.segment.bytes", INT, 1_073_741_824, "Segment size of the metadata log.", at_least(14)),
    ConfigKey("metadata.log.segment.ms", LONG, 604_800_000, "Segment age of the metadata log."),
    ConfigKey("metadata.max.retention.bytes", LONG, 104_857_600, "Bytes of metadata log and snapshots kept."),
    ConfigKey("metadata.max.retention.ms", LONG, 604_800_000, "How long metadata log and snapshots are kept."),
    ConfigKey(
        "metadata.max.idle.interval.ms", INT, 500, "How often an idle controller writes a sign of life.", at_least(0)
    ),
    ConfigKey(
        "unstable.api.versions.enable", BOOLEAN, False, "Announce API versions still in the making.", is_hidden=True
    ),
    ConfigKey(
        "unstable.feature.versions.enable", BOOLEAN, False, "Allow feature levels still in the making.", is_hidden=True
    ),
]

REPLICATION_KEYS = [*REPLICAS, *CONTROLLER]
