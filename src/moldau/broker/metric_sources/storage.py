"""Metrics of logs, partitions, data folders and the cleaner."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from moldau.broker.context import Broker
from moldau.broker.metric_sources.attach import Parts
from moldau.broker.metric_sources.families import gauge, plain
from moldau.broker.metrics import Family, Kind, Sample, Tags
from moldau.broker.partition import Partition
from moldau.log.cleaning.cleaner import Cleaner
from moldau.log.partition_log import PartitionLog

__all__ = ["families"]

LOG = "kafka.log:Log"
LOG_MANAGER = "kafka.log:LogManager"
PARTITION = "kafka.cluster:Partition"

LOG_GAUGES: tuple[tuple[str, Callable[[PartitionLog], float], str], ...] = (
    ("Size", lambda log: log.size_in_bytes, "Bytes in all segments."),
    ("NumLogSegments", lambda log: len(log.segments), "Segments."),
    ("LogStartOffset", lambda log: log.log_start_offset, "The first offset that can be read."),
    ("LogEndOffset", lambda log: log.log_end_offset, "The offset the next record gets."),
)

PARTITION_GAUGES: tuple[tuple[str, Callable[[Partition], float], str], ...] = (
    ("UnderReplicated", lambda one: len(one.isr) < len(one.replicas), "Fewer in-sync replicas than replicas."),
    ("UnderMinIsr", lambda one: len(one.isr) < _min_isr(one), "Refuses acks=all."),
    ("AtMinIsr", lambda one: len(one.isr) == _min_isr(one), "Cannot lose another replica."),
    ("InSyncReplicasCount", lambda one: len(one.isr), "In-sync replicas."),
    ("ReplicasCount", lambda one: len(one.replicas), "Replicas."),
    ("LastStableOffsetLag", lambda one: _stable_offset_lag(one.log), "Records that wait for a transaction to end."),
)


def families(broker: Broker, parts: Parts) -> Iterator[Family]:
    # One tuple of tags per partition, created once and shared by a dozen families for thousands of partitions. As in
    # Kafka, an offline log has no values: those of a log that was never opened would be wrong.
    partitions = [(_tags(one), one) for one in broker.partitions if one.offline_error is None]
    led = [(tags, partition) for tags, partition in partitions if partition.is_leader]
    for name, log_value, text in LOG_GAUGES:
        yield Family(LOG, name, Kind.GAUGE, text, (Sample(tags, log_value(one.log)) for tags, one in partitions))
    for name, partition_value, text in PARTITION_GAUGES:
        yield Family(PARTITION, name, Kind.GAUGE, text, (Sample(tags, int(partition_value(one))) for tags, one in led))
    yield from _exporter_names(broker, partitions)
    yield from _folders(broker)
    cleaner = parts.cleaner()
    if cleaner is not None:
        yield from _cleaner(cleaner, broker)


def _tags(partition: Partition) -> Tags:
    return (("topic", partition.topic.name), ("partition", str(partition.index)))


def _min_isr(partition: Partition) -> int:
    return min(partition.topic.config.min_insync_replicas, len(partition.replicas))


def _stable_offset_lag(log: PartitionLog) -> int:
    """How far the last stable offset is behind the high watermark; 0 while the producer state is not loaded."""
    return 0 if log.loaded_producers is None else log.high_watermark - log.last_stable_offset


def _exporter_names(broker: Broker, partitions: list[tuple[Tags, Partition]]) -> Iterator[Family]:
    """The metrics of the usual Kafka exporter under its names, for dashboards built on it."""
    yield plain("kafka_brokers", len(broker.image.alive_brokers()), "Brokers in the cluster.")
    yield plain(
        "kafka_topic_partitions",
        [Sample((("topic", topic.name),), len(topic.partitions)) for topic in broker.image.topics.values()],
        "Partitions of a topic.",
    )
    values: tuple[tuple[str, Callable[[Partition], float], str], ...] = (
        ("current_offset", lambda one: one.log.high_watermark, "The high watermark."),
        ("oldest_offset", lambda one: one.log.log_start_offset, "The first offset that can be read."),
        ("in_sync_replica", lambda one: len(one.isr), "In-sync replicas."),
        ("replicas", lambda one: len(one.replicas), "Replicas."),
        ("leader", lambda one: one.leader_id, "The broker that leads."),
        ("leader_is_preferred", lambda one: one.leader_id == one.replicas[0], "Whether the first replica leads."),
        ("under_replicated_partition", lambda one: len(one.isr) < len(one.replicas), "Whether a replica is missing."),
    )
    for name, value, text in values:
        yield plain(f"kafka_topic_partition_{name}", (Sample(tags, int(value(one))) for tags, one in partitions), text)


def _folders(broker: Broker) -> Iterator[Family]:
    folders = broker.logs.directories
    offline = [folder.error is not None for folder in folders]
    yield gauge(LOG_MANAGER, "OfflineLogDirectoryCount", sum(offline), "Data folders that cannot be used.")
    yield Family(
        LOG_MANAGER,
        "LogDirectoryOffline",
        Kind.GAUGE,
        "Whether a data folder cannot be used.",
        [
            Sample((("logDirectory", f'"{folder.path}"'),), int(is_offline))
            for folder, is_offline in zip(folders, offline, strict=True)
        ],
    )
    yield Family(
        LOG_MANAGER,
        "remainingLogsToRecover",
        Kind.GAUGE,
        "Logs still to be recovered.",
        [Sample((("dir", f'"{folder.path}"'),), 0) for folder in folders],
    )


def _cleaner(cleaner: Cleaner, broker: Broker) -> Iterator[Family]:
    rounds = list(cleaner.last_rounds.items())
    group, manager = "kafka.log:LogCleaner", "kafka.log:LogCleanerManager"
    read = sum(one.bytes_read for _, one in rounds)
    written = sum(one.bytes_written for _, one in rounds)
    for name, value, text in (
        ("DeadThreadCount", cleaner.dead_thread_count, "Cleaners that have died."),
        ("max-clean-time-secs", max((one.seconds for _, one in rounds), default=0), "The longest last round."),
        (
            "max-buffer-utilization-percent",
            max((one.buffer_utilization_percent for _, one in rounds), default=0),
            "How full the map of newest offsets got.",
        ),
        ("cleaner-recopy-percent", 100 * written / read if read else 0, "What was left of what was cleaned."),
        ("max-compaction-delay-secs", cleaner.max_compaction_delay_secs, "The longest a log is overdue."),
    ):
        yield gauge(group, name, value, text)
    yield gauge(manager, "max-dirty-percent", cleaner.max_dirty_percent, "The filthiest log's dirty share.")
    yield from _uncleanable(cleaner, broker)
    yield plain(
        "moldau_log_cleaner_last_round_bytes",
        [
            Sample((("topic", partition.topic), ("partition", str(partition.partition)), ("kind", kind)), count)
            for partition, one in rounds
            for kind, count in (("read", one.bytes_read), ("written", one.bytes_written))
        ],
        "Bytes of the last round over a partition.",
    )


def _uncleanable(cleaner: Cleaner, broker: Broker) -> Iterator[Family]:
    manager = "kafka.log:LogCleanerManager"
    found = [log for log in map(broker.logs.get, list(cleaner.uncleanable)) if log is not None]
    counts, sizes = [], []
    for folder in broker.logs.directories:
        tags: Tags = (("logDirectory", f'"{folder.path}"'),)
        here = [log for log in found if log.directory.startswith(folder.path + "/")]
        counts.append(Sample(tags, len(here)))
        sizes.append(Sample(tags, sum(log.size_in_bytes for log in here)))
    yield Family(manager, "uncleanable-partitions-count", Kind.GAUGE, "Partitions given up on.", counts)
    yield Family(manager, "uncleanable-bytes", Kind.GAUGE, "Bytes in them.", sizes)
