"""What one partition's log needs to know of its topic's configuration.

The keys, their defaults and their checks live in `core.config`; here is their typed, resolved form.
Start at `LogConfig.of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["LogConfig"]

INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """One topic's log settings; each field is Kafka's key with `_` for `.`."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    confluent_key_schema_validation: bool = False
    confluent_key_subject_name_strategy: str = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
    confluent_value_schema_validation: bool = False
    confluent_value_subject_name_strategy: str = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = INT64_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_after_max_ms: int = 3_600_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False
    moldau_flush_on_ack: bool = False
    moldau_validate_records: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> LogConfig:
        """Build from parsed values under Kafka's topic keys; keys that are not the log's are passed over."""
        known = {field.name for field in fields(cls)}
        chosen = {key.replace(".", "_"): value for key, value in values.items()}
        if "cleanup_policy" in chosen:
            chosen["cleanup_policy"] = frozenset(chosen["cleanup_policy"])
        return cls(**{name: value for name, value in chosen.items() if name in known})

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """How long a segment may be appended to: compaction cannot reach a record before its segment is closed."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    @property
    def opens_bodies(self) -> bool:
        """Whether a produce must look inside the batch and not only at its header."""
        return (
            self.is_compacted
            or self.confluent_key_schema_validation
            or self.confluent_value_schema_validation
            or self.moldau_validate_records
            or self.compression_type != "producer"
            or self.message_timestamp_before_max_ms != INT64_MAX
        )
