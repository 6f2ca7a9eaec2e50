"""Sections: frozen dataclasses of typed settings, each field bound to one of Kafka's keys.

A section is defined next to the code that reads it (`net.limits`, `log.config`, `coordinator.group.settings`); those
that are read in several places are below. Defaults are defined once, in the tables of keys: a section created without
a configuration, as in tests, has them too.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class FetchSettings:
        max_bytes: int = setting("fetch.max.bytes")

    config.section(FetchSettings).max_bytes

Start at `setting` and `read_section`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.core.config.broker_keys import default_value
from moldau.core.config.topic_keys import TOPIC_KEYS

__all__ = [
    "ClusterSettings",
    "CoordinatorSettings",
    "FetchSettings",
    "MetadataLogSettings",
    "NodeSettings",
    "QuorumTimes",
    "ReplicationSettings",
    "Section",
    "StorageSettings",
    "TopicSettings",
    "read_section",
    "setting",
    "topic_setting",
]

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Section = TypeVar("Section", bound="DataclassInstance")


def setting(key: str, convert: Callable[[Any], Any] | None = None) -> Any:
    """A field of a section: the value of a broker key, converted by `convert` if given."""
    return _field(key, default_value(key), convert)


def topic_setting(key: str, convert: Callable[[Any], Any] | None = None) -> Any:
    """The same for a topic key; its default is the broker's."""
    topic_key = TOPIC_KEYS[key]
    default = topic_key.default if topic_key.broker_key is None else default_value(topic_key.broker_key)
    return _field(key, default, convert)


def read_section(kind: type[Section], value: Callable[[str], Any]) -> Section:
    """Fill a section from a configuration, which is given as a lookup function by key."""
    return kind(**{each.name: _read(each.metadata, value) for each in fields(kind)})


def _field(key: str, default: Any, convert: Callable[[Any], Any] | None) -> Any:
    metadata = {"key": key, "convert": convert}
    return field(default_factory=lambda: default if convert is None else convert(default), metadata=metadata)


def _read(metadata: Any, value: Callable[[str], Any]) -> Any:
    found, convert = value(metadata["key"]), metadata["convert"]
    return found if convert is None else convert(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The process: its roles, its rack, and the port for metrics and health."""

    roles: list[str] = setting("process.roles")
    rack: str | None = setting("broker.rack")
    may_format: bool = setting("moldau.auto.format")
    metrics_host: str = setting("metrics.http.host")
    metrics_port: int = setting("metrics.http.port")
    heartbeat_interval_ms: int = setting("broker.heartbeat.interval.ms")
    registration_timeout_ms: int = setting("initial.broker.registration.timeout.ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """Log directories and the regular work on them."""

    log_dirs: list[str] = setting("log.dirs")
    metadata_log_dir: str | None = setting("metadata.log.dir")
    reserved_broker_max_id: int = setting("reserved.broker.max.id")
    truncate_corruption: bool = setting("moldau.recovery.truncate")
    recovery_threads: int = setting("num.recovery.threads.per.data.dir")
    producer_id_expiration_ms: int = setting("producer.id.expiration.ms")
    is_append_thread_always_on: bool = setting("moldau.append.thread")
    initial_task_delay_ms: int = setting("log.initial.task.delay.ms")
    retention_check_interval_ms: int = setting("log.retention.check.interval.ms")
    checkpoint_interval_ms: int = setting("log.flush.offset.checkpoint.interval.ms")
    high_watermark_checkpoint_interval_ms: int = setting("replica.high.watermark.checkpoint.interval.ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogSettings:
    snapshot_after_bytes: int = setting("metadata.log.max.record.bytes.between.snapshots")
    retention_bytes: int = setting("metadata.max.retention.bytes")
    segment_bytes: int = setting("metadata.log.segment.bytes")
    segment_ms: int = setting("metadata.log.segment.ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumTimes:
    """How long controllers wait for each other."""

    election_timeout_ms: int = setting("controller.quorum.election.timeout.ms")
    election_backoff_max_ms: int = setting("controller.quorum.election.backoff.max.ms")
    fetch_timeout_ms: int = setting("controller.quorum.fetch.timeout.ms")
    request_timeout_ms: int = setting("controller.quorum.request.timeout.ms")
    retry_backoff_ms: int = setting("controller.quorum.retry.backoff.ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """What the active controller expects of brokers."""

    session_timeout_ms: int = setting("broker.session.timeout.ms")
    is_rebalancing: bool = setting("auto.leader.rebalance.enable")
    rebalance_interval_s: int = setting("leader.imbalance.check.interval.seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSettings:
    """How followers fetch, and when a leader counts them as in sync."""

    lag_time_max_ms: int = setting("replica.lag.time.max.ms")
    socket_timeout_ms: int = setting("replica.socket.timeout.ms")
    fetch_max_bytes: int = setting("replica.fetch.max.bytes")
    response_max_bytes: int = setting("replica.fetch.response.max.bytes")
    wait_max_ms: int = setting("replica.fetch.wait.max.ms")
    min_bytes: int = setting("replica.fetch.min.bytes")
    backoff_ms: int = setting("replica.fetch.backoff.ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    max_bytes: int = setting("fetch.max.bytes")
    session_cache_slots: int = setting("max.incremental.fetch.session.cache.slots")
    replica_selector: str | None = setting("replica.selector.class")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    load_buffer_size: int = setting("offsets.load.buffer.size")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """How topics are created and deleted."""

    auto_create_topics_enable: bool = setting("auto.create.topics.enable")
    delete_topic_enable: bool = setting("delete.topic.enable")
    num_partitions: int = setting("num.partitions")
    default_replication_factor: int = setting("default.replication.factor")
    max_request_partition_size_limit: int = setting("max.request.partition.size.limit")
