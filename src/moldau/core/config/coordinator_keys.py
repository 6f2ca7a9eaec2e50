"""Broker settings for consumer groups, their offsets, and transactions."""

from __future__ import annotations

from moldau.core.config.key import ConfigKey, ConfigType, Dynamic, at_least, each_of, one_of
from moldau.core.ids import INT32_MAX

__all__ = ["COORDINATOR_KEYS"]

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
SHORT, LONG, LIST = ConfigType.SHORT, ConfigType.LONG, ConfigType.LIST
CLUSTER = Dynamic.CLUSTER

GROUPS = [
    ConfigKey(
        "group.coordinator.rebalance.protocols",
        LIST,
        ["classic", "consumer"],
        "The group protocols offered.",
        each_of("classic", "consumer", "streams", "share"),
    ),
    ConfigKey(
        "group.coordinator.threads", INT, 4, "Kept for Kafka's files: one event loop does this work.", at_least(1)
    ),
    ConfigKey(
        "group.coordinator.append.linger.ms",
        INT,
        -1,
        "How long group changes gather before an append; -1 adapts.",
        at_least(-1),
        CLUSTER,
    ),
    ConfigKey("group.initial.rebalance.delay.ms", INT, 3000, "How long an empty group waits for more members."),
    ConfigKey("group.min.session.timeout.ms", INT, 6000, "The shortest session a member may ask for."),
    ConfigKey("group.max.session.timeout.ms", INT, 1_800_000, "The longest session a member may ask for."),
    ConfigKey("group.max.size", INT, INT32_MAX, "Members in one group.", at_least(1)),
    ConfigKey(
        "group.consumer.session.timeout.ms", INT, 45_000, "Silence after which a member is removed.", at_least(1)
    ),
    ConfigKey("group.consumer.min.session.timeout.ms", INT, 45_000, "The least a group may set it to.", at_least(1)),
    ConfigKey("group.consumer.max.session.timeout.ms", INT, 60_000, "The most a group may set it to.", at_least(1)),
    ConfigKey("group.consumer.heartbeat.interval.ms", INT, 5000, "How often members report.", at_least(1)),
    ConfigKey("group.consumer.min.heartbeat.interval.ms", INT, 5000, "The least a group may set it to.", at_least(1)),
    ConfigKey("group.consumer.max.heartbeat.interval.ms", INT, 15_000, "The most a group may set it to.", at_least(1)),
    ConfigKey("group.consumer.max.size", INT, INT32_MAX, "Members in one group.", at_least(1)),
    ConfigKey("group.consumer.assignors", LIST, ["uniform", "range"], "Assignors on offer; the first is the default."),
    ConfigKey(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Whether groups may change protocol while members are in them.",
        one_of("bidirectional", "upgrade", "downgrade", "disabled"),
    ),
    ConfigKey(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600_000,
        "How often pattern subscriptions are matched anew.",
        at_least(10_000),
    ),
]

OFFSETS = [
    ConfigKey(
        "offsets.topic.num.partitions", INT, 50, "Partitions of __consumer_offsets; fixed once it exists.", at_least(1)
    ),
    ConfigKey("offsets.topic.replication.factor", SHORT, 3, "Replicas of __consumer_offsets.", at_least(1)),
    ConfigKey("offsets.topic.segment.bytes", INT, 104_857_600, "Segment size of __consumer_offsets.", at_least(1)),
    ConfigKey("offsets.topic.compression.codec", INT, 0, "Codec number of batches in __consumer_offsets."),
    ConfigKey("offsets.retention.minutes", INT, 10_080, "How long an empty group's offsets are kept.", at_least(1)),
    ConfigKey(
        "offsets.retention.check.interval.ms", LONG, 600_000, "How often expired offsets are looked for.", at_least(1)
    ),
    ConfigKey("offsets.commit.timeout.ms", INT, 5000, "How long a commit may wait for its replicas.", at_least(1)),
    ConfigKey("offsets.load.buffer.size", INT, 5_242_880, "Bytes read at a time when offsets are loaded.", at_least(1)),
    ConfigKey("offset.metadata.max.bytes", INT, 4096, "The longest note on a committed offset."),
]

TRANSACTIONS = [
    ConfigKey(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "Partitions of __transaction_state; fixed once it exists.",
        at_least(1),
    ),
    ConfigKey("transaction.state.log.replication.factor", SHORT, 3, "Replicas of __transaction_state.", at_least(1)),
    ConfigKey("transaction.state.log.min.isr", INT, 2, "In-sync replicas __transaction_state needs.", at_least(1)),
    ConfigKey(
        "transaction.state.log.segment.bytes", INT, 104_857_600, "Segment size of __transaction_state.", at_least(1)
    ),
    ConfigKey(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        "Bytes read at a time when transactions are loaded.",
        at_least(1),
    ),
    ConfigKey("transaction.max.timeout.ms", INT, 900_000, "The longest a transaction may take.", at_least(1)),
    ConfigKey(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        "How long an unused transactional id is remembered.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        "How often overdue transactions are aborted.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        "How often expired transactional ids are removed.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Check that a partition is part of the transaction.",
        None,
        CLUSTER,
    ),
    ConfigKey("transaction.two.phase.commit.enable", BOOLEAN, False, "Allow transactions without a time limit."),
    ConfigKey(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        "The first pause before a partition is added again.",
        at_least(0),
    ),
    ConfigKey("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, "The longest such pause.", at_least(0)),
]

COORDINATOR_KEYS = [*GROUPS, *OFFSETS, *TRANSACTIONS]
