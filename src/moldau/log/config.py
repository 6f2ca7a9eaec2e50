"""A topic's log settings in typed, resolved form, as a partition's log uses them.

The keys, their defaults and their checks are in `core.config`.
Start at `LogConfig.of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.core.config.sections import read_section, topic_setting
from moldau.core.ids import INT64_MAX

__all__ = ["LogConfig", "is_flush_due"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """One topic's log settings; each field is Kafka's key with `_` for `.`."""

    cleanup_policy: frozenset[str] = topic_setting("cleanup.policy", frozenset)
    compression_type: str = topic_setting("compression.type")
    compression_gzip_level: int = topic_setting("compression.gzip.level")
    compression_lz4_level: int = topic_setting("compression.lz4.level")
    compression_zstd_level: int = topic_setting("compression.zstd.level")
    confluent_key_schema_validation: bool = topic_setting("confluent.key.schema.validation")
    confluent_key_subject_name_strategy: str = topic_setting("confluent.key.subject.name.strategy")
    confluent_value_schema_validation: bool = topic_setting("confluent.value.schema.validation")
    confluent_value_subject_name_strategy: str = topic_setting("confluent.value.subject.name.strategy")
    delete_retention_ms: int = topic_setting("delete.retention.ms")
    file_delete_delay_ms: int = topic_setting("file.delete.delay.ms")
    flush_messages: int = topic_setting("flush.messages")
    flush_ms: int = topic_setting("flush.ms")
    index_interval_bytes: int = topic_setting("index.interval.bytes")
    max_compaction_lag_ms: int = topic_setting("max.compaction.lag.ms")
    max_message_bytes: int = topic_setting("max.message.bytes")
    message_timestamp_type: str = topic_setting("message.timestamp.type")
    message_timestamp_before_max_ms: int = topic_setting("message.timestamp.before.max.ms")
    message_timestamp_after_max_ms: int = topic_setting("message.timestamp.after.max.ms")
    min_cleanable_dirty_ratio: float = topic_setting("min.cleanable.dirty.ratio")
    min_compaction_lag_ms: int = topic_setting("min.compaction.lag.ms")
    min_insync_replicas: int = topic_setting("min.insync.replicas")
    preallocate: bool = topic_setting("preallocate")
    retention_bytes: int = topic_setting("retention.bytes")
    retention_ms: int = topic_setting("retention.ms")
    segment_bytes: int = topic_setting("segment.bytes")
    segment_index_bytes: int = topic_setting("segment.index.bytes")
    segment_jitter_ms: int = topic_setting("segment.jitter.ms")
    segment_ms: int = topic_setting("segment.ms")
    unclean_leader_election_enable: bool = topic_setting("unclean.leader.election.enable")
    moldau_flush_on_ack: bool = topic_setting("moldau.flush.on.ack")
    moldau_validate_records: bool = topic_setting("moldau.validate.records")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> LogConfig:
        """Build from parsed values under Kafka's topic keys; keys that the log does not use are ignored."""
        return read_section(cls, values.__getitem__)

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """How long a segment may stay active: compaction cannot reach a record before its segment is closed."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    @property
    def opens_bodies(self) -> bool:
        """Whether a produce request has to decode the records and not only the batch header."""
        return (
            self.is_compacted
            or self.confluent_key_schema_validation
            or self.confluent_value_schema_validation
            or self.moldau_validate_records
            or self.compression_type != "producer"
            or self.message_timestamp_before_max_ms != INT64_MAX
        )


def is_flush_due(config: LogConfig, *, unflushed_messages: int, ms_since_flush: int) -> bool:
    """Whether `flush.messages` or `flush.ms` is reached; never when everything is flushed."""
    if unflushed_messages <= 0:
        return False
    return unflushed_messages >= config.flush_messages or ms_since_flush >= config.flush_ms
