"""The settings of topics, and the broker key that is the default of each.

Limits are Kafka's, except that segments may be as small as 14 bytes (as they could before 4.0), since
teaching material and tests use tiny ones. Start at `TOPIC_KEYS`.
"""

from __future__ import annotations

from typing import Any

from moldau.core.config.key import (
    ConfigType,
    TopicConfigKey,
    Validator,
    at_least,
    between,
    each_of,
    keys_by_name,
    one_of,
)
from moldau.core.ids import INT64_MAX

__all__ = ["CLEANUP_POLICIES", "COMPRESSION_TYPES", "SUBJECT_STRATEGIES", "TIMESTAMP_TYPES", "TOPIC_KEYS"]

CLEANUP_POLICIES = ("compact", "delete")
COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_STRATEGY_PACKAGE = "io.confluent.kafka.serializers.subject."
_STRATEGY_CLASSES = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
SUBJECT_STRATEGIES = (*(_STRATEGY_PACKAGE + name for name in _STRATEGY_CLASSES), *_STRATEGY_CLASSES)
"""By Java's class names, full or simple; the first is the default."""

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
LONG, DOUBLE, LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST


def _only(default: Any) -> Validator:
    """For unsupported features: their keys are accepted, but only with the value that means "off"."""
    return lambda value: None if value == default else "tiered storage is not available here"


def _throttled_replicas(values: Any) -> str | None:
    if values == ["*"]:
        return None
    for value in values:
        partition, colon, broker = value.partition(":")
        if not (colon and partition.isdigit() and broker.isdigit()):
            return "must be * or a list of partition:broker"
    return None


TOPIC_KEYS = keys_by_name(
    [
        TopicConfigKey(
            "cleanup.policy",
            LIST,
            ["delete"],
            "What happens to old segments: delete drops them by age and size, compact keeps the newest value "
            "of every key. Both may be given; an empty list keeps everything.",
            each_of(*CLEANUP_POLICIES),
            "log.cleanup.policy",
        ),
        TopicConfigKey(
            "compression.type",
            STRING,
            "producer",
            "The codec batches are stored with; producer keeps the one they came with.",
            one_of(*COMPRESSION_TYPES),
            "compression.type",
        ),
        TopicConfigKey(
            "compression.gzip.level",
            INT,
            -1,
            "The level used when compression.type is gzip; -1 leaves it to the codec.",
            between(1, 9, also=-1),
            "compression.gzip.level",
        ),
        TopicConfigKey(
            "compression.lz4.level",
            INT,
            9,
            "The level used when compression.type is lz4.",
            between(1, 17),
            "compression.lz4.level",
        ),
        TopicConfigKey(
            "compression.zstd.level",
            INT,
            3,
            "The level used when compression.type is zstd; negative levels are faster.",
            between(-131072, 22),
            "compression.zstd.level",
        ),
        *(
            TopicConfigKey(
                f"confluent.{side}.schema.validation",
                BOOLEAN,
                False,
                f"Refuse records whose {side} does not carry the id of a schema that is registered under the subject "
                f"which confluent.{side}.subject.name.strategy gives.",
                None,
                f"confluent.{side}.schema.validation",
            )
            for side in ("key", "value")
        ),
        *(
            TopicConfigKey(
                f"confluent.{side}.subject.name.strategy",
                STRING,
                SUBJECT_STRATEGIES[0],
                f"How the subject of a {side}'s schema is named, for confluent.{side}.schema.validation.",
                one_of(*SUBJECT_STRATEGIES),
                f"confluent.{side}.subject.name.strategy",
            )
            for side in ("key", "value")
        ),
        TopicConfigKey(
            "delete.retention.ms",
            LONG,
            86_400_000,
            "How long a delete marker stays readable in a compacted log after the cleaner first passed it.",
            at_least(0),
            "log.cleaner.delete.retention.ms",
        ),
        TopicConfigKey(
            "file.delete.delay.ms",
            LONG,
            60_000,
            "How long a removed segment's files linger under a .deleted name.",
            at_least(0),
            "log.segment.delete.delay.ms",
        ),
        TopicConfigKey(
            "flush.messages",
            LONG,
            INT64_MAX,
            "Force the log to disk after this many records; usually left to the operating system.",
            at_least(1),
            "log.flush.interval.messages",
        ),
        TopicConfigKey(
            "flush.ms",
            LONG,
            INT64_MAX,
            "Force the log to disk when its oldest unflushed record is this old.",
            at_least(0),
            "log.flush.interval.ms",
        ),
        TopicConfigKey(
            "follower.replication.throttled.replicas",
            LIST,
            [],
            "Replicas whose incoming replication is throttled: partition:broker pairs, or * for all.",
            _throttled_replicas,
        ),
        TopicConfigKey(
            "index.interval.bytes",
            INT,
            4096,
            "Bytes of log between two entries of the offset index; smaller finds faster and costs more index.",
            at_least(0),
            "log.index.interval.bytes",
        ),
        TopicConfigKey(
            "leader.replication.throttled.replicas",
            LIST,
            [],
            "Replicas whose outgoing replication is throttled: partition:broker pairs, or * for all.",
            _throttled_replicas,
        ),
        TopicConfigKey("local.retention.bytes", LONG, -2, "Part of tiered storage; only -2.", _only(-2)),
        TopicConfigKey("local.retention.ms", LONG, -2, "Part of tiered storage; only -2.", _only(-2)),
        TopicConfigKey(
            "max.compaction.lag.ms",
            LONG,
            INT64_MAX,
            "The longest a record may stay out of the cleaner's reach, however clean the log is.",
            at_least(1),
            "log.cleaner.max.compaction.lag.ms",
        ),
        TopicConfigKey(
            "max.message.bytes",
            INT,
            1_048_588,
            "The largest batch accepted, after compression and with its 12 bytes of framing.",
            at_least(0),
            "message.max.bytes",
        ),
        TopicConfigKey(
            "message.timestamp.after.max.ms",
            LONG,
            3_600_000,
            "How far a producer's timestamp may lie ahead of the broker's clock.",
            at_least(0),
            "log.message.timestamp.after.max.ms",
        ),
        TopicConfigKey(
            "message.timestamp.before.max.ms",
            LONG,
            INT64_MAX,
            "How far a producer's timestamp may lie behind the broker's clock.",
            at_least(0),
            "log.message.timestamp.before.max.ms",
        ),
        TopicConfigKey(
            "message.timestamp.type",
            STRING,
            "CreateTime",
            "Whose clock a record carries: the producer's (CreateTime) or the broker's (LogAppendTime).",
            one_of(*TIMESTAMP_TYPES),
            "log.message.timestamp.type",
        ),
        TopicConfigKey(
            "min.cleanable.dirty.ratio",
            DOUBLE,
            0.5,
            "The share of not yet compacted bytes from which on a compacted log is worth cleaning.",
            between(0, 1),
            "log.cleaner.min.cleanable.ratio",
        ),
        TopicConfigKey(
            "min.compaction.lag.ms",
            LONG,
            0,
            "The time a record is safe from compaction, so that readers see every value of a key for a while.",
            at_least(0),
            "log.cleaner.min.compaction.lag.ms",
        ),
        TopicConfigKey(
            "min.insync.replicas",
            INT,
            1,
            "In-sync replicas that must hold a record before acks=all is answered; fewer refuse the write.",
            at_least(1),
            "min.insync.replicas",
        ),
        TopicConfigKey(
            "moldau.flush.on.ack",
            BOOLEAN,
            False,
            "Answer a produce only once its records are on disk; produces under way share one fsync.",
            None,
            "moldau.flush.on.ack",
        ),
        TopicConfigKey(
            "moldau.validate.records",
            BOOLEAN,
            False,
            "Open every produced batch and check its records, and not only its header.",
            None,
            "moldau.validate.records",
        ),
        TopicConfigKey(
            "preallocate",
            BOOLEAN,
            False,
            "Reserve a new segment's whole size on disk at once.",
            None,
            "log.preallocate",
        ),
        TopicConfigKey("remote.log.copy.disable", BOOLEAN, False, "Part of tiered storage; only false.", _only(False)),
        TopicConfigKey(
            "remote.log.delete.on.disable", BOOLEAN, False, "Part of tiered storage; only false.", _only(False)
        ),
        TopicConfigKey("remote.storage.enable", BOOLEAN, False, "Part of tiered storage; only false.", _only(False)),
        TopicConfigKey(
            "retention.bytes",
            LONG,
            -1,
            "The size a partition may reach before its oldest segments are deleted; -1 is no limit.",
            None,
            "log.retention.bytes",
        ),
        TopicConfigKey(
            "retention.ms",
            LONG,
            604_800_000,
            "The age at which closed segments are deleted; -1 is no limit.",
            at_least(-1),
            "log.retention.ms",
        ),
        TopicConfigKey(
            "segment.bytes",
            INT,
            1_073_741_824,
            "The size at which a new segment is begun; retention and compaction only touch closed ones.",
            at_least(14),
            "log.segment.bytes",
        ),
        TopicConfigKey(
            "segment.index.bytes",
            INT,
            10_485_760,
            "The largest an index may grow; a full one begins a new segment.",
            at_least(4),
            "log.index.size.max.bytes",
        ),
        TopicConfigKey(
            "segment.jitter.ms",
            LONG,
            0,
            "A random part taken off segment.ms, so that partitions do not all roll together.",
            at_least(0),
            "log.roll.jitter.ms",
        ),
        TopicConfigKey(
            "segment.ms",
            LONG,
            604_800_000,
            "The age at which a new segment is begun even if the current one is not full.",
            at_least(1),
            "log.roll.ms",
        ),
        TopicConfigKey(
            "unclean.leader.election.enable",
            BOOLEAN,
            False,
            "Let a replica that is behind become leader when none in sync is left: available again, with loss.",
            None,
            "unclean.leader.election.enable",
        ),
    ]
)
"""Every topic setting by its name."""
