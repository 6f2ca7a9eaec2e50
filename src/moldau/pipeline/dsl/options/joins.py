"""The options of joins: serdes, names, grace, partitioners. Start at `StreamJoined`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moldau.pipeline.dsl.options.given import Duration, check_serdes, milliseconds
from moldau.pipeline.dsl.options.named import NamedOption
from moldau.pipeline.dsl.options.operators import Partitioner
from moldau.pipeline.ir.naming import checked_name
from moldau.serdes.serde import Serde

__all__ = ["Joined", "StreamJoined", "TableJoined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(NamedOption):
    """Options of a stream-table join: serdes for repartitioning the stream, and grace for a versioned table."""

    key_serde: Serde | None = None
    left_value_serde: Serde | None = None
    right_value_serde: Serde | None = None
    grace_ms: int | None = None

    def __post_init__(self) -> None:
        NamedOption.__post_init__(self)
        check_serdes(self.key_serde, self.left_value_serde, self.right_value_serde)

    @classmethod
    def with_(
        cls,
        key_serde: Serde | None = None,
        left_value_serde: Serde | None = None,
        right_value_serde: Serde | None = None,
        name: str | None = None,
        grace: Duration | None = None,
    ) -> Joined:
        """Options with these serdes, and optionally a name and a grace period."""
        grace_ms = None if grace is None else milliseconds(grace, "the grace of a join")
        return cls(key_serde=key_serde, left_value_serde=left_value_serde, right_value_serde=right_value_serde,
                   name=name, grace_ms=grace_ms)  # fmt: skip

    def with_grace_period(self, grace: Duration) -> Joined:
        """Hold each stream record for `grace` before joining it, so that late updates of the table are included."""
        return replace(self, grace_ms=milliseconds(grace, "the grace of a join"))

    def with_key_serde(self, key_serde: Serde) -> Joined:
        """These options with another serde for keys."""
        return replace(self, key_serde=key_serde)

    def with_left_value_serde(self, left_value_serde: Serde) -> Joined:
        """These options with another serde for the stream's values."""
        return replace(self, left_value_serde=left_value_serde)

    def with_right_value_serde(self, right_value_serde: Serde) -> Joined:
        """These options with another serde for the table's values."""
        return replace(self, right_value_serde=right_value_serde)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoined(NamedOption):
    """Options of a stream-stream join: the serdes of both sides, and the name of their stores."""

    key_serde: Serde | None = None
    value_serde: Serde | None = None
    other_value_serde: Serde | None = None
    store_name: str | None = None
    is_logging: bool = True

    def __post_init__(self) -> None:
        NamedOption.__post_init__(self)
        check_serdes(self.key_serde, self.value_serde, self.other_value_serde)

    @classmethod
    def with_(
        cls,
        key_serde: Serde | None = None,
        value_serde: Serde | None = None,
        other_value_serde: Serde | None = None,
    ) -> StreamJoined:
        """Options with only serdes: of the keys, of this stream's values, and of the other stream's values."""
        return cls(key_serde=key_serde, value_serde=value_serde, other_value_serde=other_value_serde)

    def with_store_name(self, store_name: str) -> StreamJoined:
        """These options with `store_name` as the prefix of both sides' store names."""
        return replace(self, store_name=checked_name(store_name))

    def with_key_serde(self, key_serde: Serde) -> StreamJoined:
        """These options with another serde for keys."""
        return replace(self, key_serde=key_serde)

    def with_value_serde(self, value_serde: Serde) -> StreamJoined:
        """These options with another serde for this stream's values."""
        return replace(self, value_serde=value_serde)

    def with_other_value_serde(self, other_value_serde: Serde) -> StreamJoined:
        """These options with another serde for the other stream's values."""
        return replace(self, other_value_serde=other_value_serde)

    def with_logging_enabled(self) -> StreamJoined:
        """Accepted for compatibility with Kafka Streams; no effect: all state is kept in the checkpoint."""
        return replace(self, is_logging=True)

    def with_logging_disabled(self) -> StreamJoined:
        """Accepted for compatibility with Kafka Streams; no effect, see `with_logging_enabled`."""
        return replace(self, is_logging=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoined(NamedOption):
    """Options of a foreign-key join: the partitioners of the two tables, if not the default hash of the key."""

    partitioner: Partitioner | None = None
    other_partitioner: Partitioner | None = None

    @classmethod
    def with_(cls, partitioner: Partitioner | None, other_partitioner: Partitioner | None) -> TableJoined:
        """Options with only partitioners: of the left and of the right table."""
        return cls(partitioner=partitioner, other_partitioner=other_partitioner)

    def with_partitioner(self, partitioner: Partitioner) -> TableJoined:
        """These options with a partitioner (topic, key, value, partition count) for the left table's keys."""
        return replace(self, partitioner=partitioner)

    def with_other_partitioner(self, other_partitioner: Partitioner) -> TableJoined:
        """These options with a partitioner (topic, key, value, partition count) for the right table's keys."""
        return replace(self, other_partitioner=other_partitioner)
