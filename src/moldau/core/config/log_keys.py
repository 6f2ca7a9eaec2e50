"""Broker settings for logs: the defaults that topics inherit, and background work on all logs."""

from __future__ import annotations

from typing import Any

from moldau.core.config.key import (
    ConfigKey,
    ConfigType,
    Dynamic,
    UnitSynonym,
    at_least,
    between,
    each_of,
    one_of,
)
from moldau.core.config.topic_keys import CLEANUP_POLICIES, COMPRESSION_TYPES, TIMESTAMP_TYPES
from moldau.core.ids import INT64_MAX

__all__ = ["LOG_KEYS"]

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
LONG, DOUBLE, LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST
CLUSTER = Dynamic.CLUSTER

MINUTE_MS, HOUR_MS = 60_000, 3_600_000


def _retention(value: Any) -> str | None:
    return None if value >= 1 or value == -1 else "must be at least 1, or -1 for no limit"


TOPIC_DEFAULTS = [
    ConfigKey(
        "log.cleanup.policy", LIST, ["delete"], "Default of cleanup.policy.", each_of(*CLEANUP_POLICIES), CLUSTER
    ),
    ConfigKey(
        "compression.type", STRING, "producer", "Default of compression.type.", one_of(*COMPRESSION_TYPES), CLUSTER
    ),
    ConfigKey("compression.gzip.level", INT, -1, "Default of compression.gzip.level.", between(1, 9, also=-1), CLUSTER),
    ConfigKey("compression.lz4.level", INT, 9, "Default of compression.lz4.level.", between(1, 17), CLUSTER),
    ConfigKey("compression.zstd.level", INT, 3, "Default of compression.zstd.level.", between(-131072, 22), CLUSTER),
    ConfigKey(
        "log.cleaner.delete.retention.ms", LONG, 86_400_000, "Default of delete.retention.ms.", at_least(0), CLUSTER
    ),
    ConfigKey("log.segment.delete.delay.ms", LONG, 60_000, "Default of file.delete.delay.ms.", at_least(0), CLUSTER),
    ConfigKey("log.flush.interval.messages", LONG, INT64_MAX, "Default of flush.messages.", at_least(1), CLUSTER),
    ConfigKey(
        "log.flush.interval.ms",
        LONG,
        None,
        "Default of flush.ms; log.flush.scheduler.interval.ms when not given.",
        at_least(0),
        CLUSTER,
        (UnitSynonym("log.flush.scheduler.interval.ms"),),
    ),
    ConfigKey("log.index.interval.bytes", INT, 4096, "Default of index.interval.bytes.", at_least(0), CLUSTER),
    ConfigKey(
        "log.cleaner.max.compaction.lag.ms", LONG, INT64_MAX, "Default of max.compaction.lag.ms.", at_least(1), CLUSTER
    ),
    ConfigKey("message.max.bytes", INT, 1_048_588, "Default of max.message.bytes.", at_least(0), CLUSTER),
    ConfigKey(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        "Default of message.timestamp.type.",
        one_of(*TIMESTAMP_TYPES),
        CLUSTER,
    ),
    ConfigKey(
        "log.message.timestamp.before.max.ms",
        LONG,
        INT64_MAX,
        "Default of message.timestamp.before.max.ms.",
        at_least(0),
        CLUSTER,
    ),
    ConfigKey(
        "log.message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        "Default of message.timestamp.after.max.ms.",
        at_least(0),
        CLUSTER,
    ),
    ConfigKey(
        "log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, "Default of min.cleanable.dirty.ratio.", between(0, 1), CLUSTER
    ),
    ConfigKey("log.cleaner.min.compaction.lag.ms", LONG, 0, "Default of min.compaction.lag.ms.", at_least(0), CLUSTER),
    ConfigKey("min.insync.replicas", INT, 1, "Default of min.insync.replicas.", at_least(1), CLUSTER),
    ConfigKey("log.preallocate", BOOLEAN, False, "Default of preallocate.", None, CLUSTER),
    ConfigKey("log.retention.bytes", LONG, -1, "Default of retention.bytes.", None, CLUSTER),
    ConfigKey(
        "log.retention.ms",
        LONG,
        None,
        "Default of retention.ms; beats the minutes, which beat the hours.",
        _retention,
        CLUSTER,
        (UnitSynonym("log.retention.minutes", MINUTE_MS), UnitSynonym("log.retention.hours", HOUR_MS)),
    ),
    ConfigKey("log.retention.minutes", INT, None, "Default of retention.ms, in minutes.", _retention),
    ConfigKey("log.retention.hours", INT, 168, "Default of retention.ms, in hours.", _retention),
    ConfigKey("log.segment.bytes", INT, 1_073_741_824, "Default of segment.bytes.", at_least(14), CLUSTER),
    ConfigKey("log.index.size.max.bytes", INT, 10_485_760, "Default of segment.index.bytes.", at_least(4), CLUSTER),
    ConfigKey(
        "log.roll.jitter.ms",
        LONG,
        None,
        "Default of segment.jitter.ms; beats the hours.",
        at_least(0),
        CLUSTER,
        (UnitSynonym("log.roll.jitter.hours", HOUR_MS),),
    ),
    ConfigKey("log.roll.jitter.hours", INT, 0, "Default of segment.jitter.ms, in hours.", at_least(0)),
    ConfigKey(
        "log.roll.ms",
        LONG,
        None,
        "Default of segment.ms; beats the hours.",
        at_least(1),
        CLUSTER,
        (UnitSynonym("log.roll.hours", HOUR_MS),),
    ),
    ConfigKey("log.roll.hours", INT, 168, "Default of segment.ms, in hours.", at_least(1)),
    ConfigKey(
        "unclean.leader.election.enable", BOOLEAN, False, "Default of unclean.leader.election.enable.", None, CLUSTER
    ),
    ConfigKey("moldau.flush.on.ack", BOOLEAN, False, "Default of moldau.flush.on.ack.", None, CLUSTER),
    ConfigKey("moldau.validate.records", BOOLEAN, False, "Default of moldau.validate.records.", None, CLUSTER),
]

HOUSEKEEPING = [
    ConfigKey(
        "log.dirs",
        LIST,
        None,
        "The data folders; log.dir when not given.",
        None,
        synonyms=(UnitSynonym("log.dir", is_told=False),),
    ),
    ConfigKey("log.dir", LIST, ["/tmp/kafka-logs"], "The data folder, where log.dirs is not given."),
    ConfigKey("cordoned.log.dirs", LIST, [], "Data folders that get no new partitions.", None, Dynamic.BROKER),
    ConfigKey(
        "moldau.auto.format",
        BOOLEAN,
        False,
        "Format data folders that are not formatted yet when the broker starts, instead of refusing.",
    ),
    ConfigKey(
        "moldau.recovery.truncate",
        BOOLEAN,
        False,
        "Consent to cut a log at the first corrupt batch even where valid ones follow. Without it such a "
        "partition stays offline until someone decides.",
    ),
    ConfigKey(
        "moldau.append.thread",
        BOOLEAN,
        False,
        "Append in a thread from the first write on, instead of only while the disk is slow. A disk that stalls then "
        "never holds up clients that do not write, and small produce requests cost more.",
    ),
    ConfigKey("num.partitions", INT, 1, "Partitions of a topic created without a number of them.", at_least(1)),
    ConfigKey("default.replication.factor", INT, 1, "Replicas of a topic created without a number of them."),
    ConfigKey("auto.create.topics.enable", BOOLEAN, True, "Create a topic when a client asks for its metadata."),
    ConfigKey("delete.topic.enable", BOOLEAN, True, "Allow topics to be deleted."),
    ConfigKey("log.retention.check.interval.ms", LONG, 300_000, "How often retention is applied.", at_least(1)),
    ConfigKey("log.flush.scheduler.interval.ms", LONG, INT64_MAX, "How often logs are checked for a due flush."),
    ConfigKey(
        "log.flush.offset.checkpoint.interval.ms", INT, 60_000, "How often recovery points are written.", at_least(0)
    ),
    ConfigKey(
        "log.flush.start.offset.checkpoint.interval.ms", INT, 60_000, "How often log starts are written.", at_least(0)
    ),
    ConfigKey("log.dir.failure.timeout.ms", LONG, 30_000, "How long a failed folder may go unreported.", at_least(1)),
    ConfigKey("log.cleaner.enable", BOOLEAN, True, "The cleaner always runs; false has no effect."),
    ConfigKey("log.cleaner.threads", INT, 1, "Cleaners at work at once.", at_least(0), CLUSTER),
    ConfigKey(
        "log.cleaner.dedupe.buffer.size", LONG, 134_217_728, "Memory for the map of newest offsets.", None, CLUSTER
    ),
    ConfigKey(
        "log.cleaner.io.buffer.size", INT, 524_288, "Memory for the cleaner's reads and writes.", at_least(0), CLUSTER
    ),
    ConfigKey(
        "log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, "How full the map of newest offsets may get.", None, CLUSTER
    ),
    ConfigKey(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        1.7976931348623157e308,
        "The most the cleaner reads and writes per second.",
        None,
        CLUSTER,
    ),
    ConfigKey(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        "How long an idle cleaner waits before it looks again.",
        at_least(0),
        CLUSTER,
    ),
    ConfigKey(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        "How long after start housekeeping begins.",
        at_least(0),
        is_hidden=True,
    ),
    ConfigKey(
        "producer.id.expiration.ms",
        INT,
        86_400_000,
        "How long an idle producer's sequence is remembered.",
        at_least(1),
        CLUSTER,
    ),
    ConfigKey(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        "How often forgotten producers are looked for.",
        at_least(1),
        is_hidden=True,
    ),
]

LOG_KEYS = [*TOPIC_DEFAULTS, *HOUSEKEEPING]
