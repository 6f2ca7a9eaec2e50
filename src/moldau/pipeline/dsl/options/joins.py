"""What may be said about a join beside its function: serdes, names, grace, partitioners. Start at `StreamJoined`."""

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
    """A stream-table join: the serdes that repartitioning the stream needs, and grace for a versioned table."""

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
        """Serdes, and what else is to be said."""
        grace_ms = None if grace is None else milliseconds(grace, "the grace of a join")
        return cls(key_serde=key_serde, left_value_serde=left_value_serde, right_value_serde=right_value_serde,
                   name=name, grace_ms=grace_ms)  # fmt: skip

    def with_grace_period(self, grace: Duration) -> Joined:
        """Let records of the stream wait this long for older rows of the table."""
        return replace(self, grace_ms=milliseconds(grace, "the grace of a join"))

    def with_key_serde(self, key_serde: Serde) -> Joined:
        """The same with another serde for keys."""
        return replace(self, key_serde=key_serde)

    def with_left_value_serde(self, left_value_serde: Serde) -> Joined:
        """The same with another serde for the stream's values."""
        return replace(self, left_value_serde=left_value_serde)

    def with_right_value_serde(self, right_value_serde: Serde) -> Joined:
        """The same with another serde for the table's values."""
        return replace(self, right_value_serde=right_value_serde)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoined(NamedOption):
    """A stream-stream join: the serdes of both sides, the name of their stores."""

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
        """Only serdes."""
        return cls(key_serde=key_serde, value_serde=value_serde, other_value_serde=other_value_serde)

    def with_store_name(self, store_name: str) -> StreamJoined:
        """Name the stores of both sides after this."""
        return replace(self, store_name=checked_name(store_name))

    def with_key_serde(self, key_serde: Serde) -> StreamJoined:
        """The same with another serde for keys."""
        return replace(self, key_serde=key_serde)

    def with_value_serde(self, value_serde: Serde) -> StreamJoined:
        """The same with another serde for this stream's values."""
        return replace(self, value_serde=value_serde)

    def with_other_value_serde(self, other_value_serde: Serde) -> StreamJoined:
        """The same with another serde for the other stream's values."""
        return replace(self, other_value_serde=other_value_serde)

    def with_logging_enabled(self) -> StreamJoined:
        """As in Kafka Streams, and without effect: all state is kept in the checkpoint."""
        return replace(self, is_logging=True)

    def with_logging_disabled(self) -> StreamJoined:
        """As in Kafka Streams, and without effect, as `with_logging_enabled`."""
        return replace(self, is_logging=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoined(NamedOption):
    """A foreign-key join: how left and right keys were partitioned, where that was not by their hash."""

    partitioner: Partitioner | None = None
    other_partitioner: Partitioner | None = None

    @classmethod
    def with_(cls, partitioner: Partitioner | None, other_partitioner: Partitioner | None) -> TableJoined:
        """Only partitioners, of the left and of the right table."""
        return cls(partitioner=partitioner, other_partitioner=other_partitioner)

    def with_partitioner(self, partitioner: Partitioner) -> TableJoined:
        """The same with a partitioner (topic, key, value, partition count) of the left table's keys."""
        return replace(self, partitioner=partitioner)

    def with_other_partitioner(self, other_partitioner: Partitioner) -> TableJoined:
        """The same with a partitioner (topic, key, value, partition count) of the right table's keys."""
        return replace(self, other_partitioner=other_partitioner)
