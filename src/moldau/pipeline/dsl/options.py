"""What may be said about an operator beside its function: serdes, names, timestamps, partitions.

Each is a frozen object with Kafka Streams' constructors (`with_`, `as_`, since `with` and `as` are Python's) and
methods; plain keyword arguments do as well: `Consumed(key_serde=..., value_serde=...)`. A serde left out is the one
known from upstream, else the default of the settings. `materialized` and `suppressed` have their own modules. Start at
`Consumed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.pipeline.dsl.durations import Duration, milliseconds
from moldau.pipeline.dsl.functions import callable_of
from moldau.pipeline.dsl.given_options import option_of
from moldau.pipeline.dsl.hints import Hinting
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.naming import checked_name
from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.serdes import Serde

if TYPE_CHECKING:
    from moldau.pipeline.dsl.kstream import KStream

__all__ = [
    "Branched",
    "Consumed",
    "Grouped",
    "Joined",
    "Named",
    "Produced",
    "Repartitioned",
    "StreamJoined",
    "TableJoined",
    "name_of",
]

Self = TypeVar("Self", bound="_Named")
SelfWithSerdes = TypeVar("SelfWithSerdes", bound="_WithSerdes")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named(Hinting):
    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            checked_name(self.name)

    @classmethod
    def as_(cls: type[Self], name: str) -> Self:
        """Only a name, for the operator's node and what belongs to it."""
        return cls(name=name)

    def with_name(self: Self, name: str) -> Self:
        return replace(self, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(_Named):
    """The name of one operator; wherever one is taken, a plain string will do."""


def name_of(named: Named | str | None) -> str | None:
    """The name in either form."""
    if isinstance(named, str):
        return named
    return option_of(named, Named).name


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithSerdes(_Named):
    key_serde: Serde | None = None
    value_serde: Serde | None = None

    def __post_init__(self) -> None:
        _Named.__post_init__(self)
        for serde in (self.key_serde, self.value_serde):
            _check_serde(serde)

    @classmethod
    def with_(cls: type[SelfWithSerdes], key_serde: Serde | None, value_serde: Serde | None) -> SelfWithSerdes:
        """Only serdes; None where the one known from upstream, or the default, is right."""
        return cls(key_serde=key_serde, value_serde=value_serde)

    def with_key_serde(self: SelfWithSerdes, key_serde: Serde) -> SelfWithSerdes:
        return replace(self, key_serde=key_serde)

    def with_value_serde(self: SelfWithSerdes, value_serde: Serde) -> SelfWithSerdes:
        return replace(self, value_serde=value_serde)


def _check_serde(serde: Any) -> None:
    if serde is not None and (isinstance(serde, type) or not hasattr(serde, "serialize")):
        hint = f"; call it: {serde.__name__}()" if isinstance(serde, type) else ""
        raise TopologyError(f"{serde!r} is not a serde: it needs serialize and deserialize{hint}", callers_origin())


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed(_WithSerdes):
    """How a topic is read.

    `timestamp_extractor` is (record, previous timestamp) -> ms since the epoch and replaces the record's own time;
    `offset_reset` says where to start without a committed position ("earliest" or "latest"; else the setting).
    """

    timestamp_extractor: Callable[[Any, int], int] | None = None
    offset_reset: OffsetReset | str | None = None

    def __post_init__(self) -> None:
        _WithSerdes.__post_init__(self)
        if self.timestamp_extractor is not None:
            callable_of(self.timestamp_extractor, "timestamp_extractor", "record", "previous timestamp")
        if isinstance(self.offset_reset, str):
            object.__setattr__(self, "offset_reset", _offset_reset(self.offset_reset))

    def with_timestamp_extractor(self, timestamp_extractor: Callable[[Any, int], int]) -> Consumed:
        return replace(self, timestamp_extractor=timestamp_extractor)

    def with_offset_reset_policy(self, offset_reset: OffsetReset | str) -> Consumed:
        return replace(self, offset_reset=offset_reset)

    @property
    def reset(self) -> OffsetReset | None:
        return None if self.offset_reset is None else OffsetReset(self.offset_reset)


def _offset_reset(word: str) -> OffsetReset:
    try:
        return OffsetReset(word)
    except ValueError:
        raise TopologyError(f"a topic is read from 'earliest' or 'latest', not {word!r}", callers_origin()) from None


Partitioner = Callable[[str, Any, Any, int], int | None]
"""(topic, key, value, partition count) -> partition; None leaves it to the key's hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced(_WithSerdes):
    """How a topic is written."""

    partitioner: Partitioner | None = None

    def with_stream_partitioner(self, partitioner: Partitioner) -> Produced:
        return replace(self, partitioner=partitioner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped(_WithSerdes):
    """How grouped records travel to their partition; the name also names the repartition topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartitioned(_WithSerdes):
    """How a stream is repartitioned, and into how many partitions."""

    number_of_partitions: int | None = None
    partitioner: Partitioner | None = None

    def __post_init__(self) -> None:
        _WithSerdes.__post_init__(self)
        if self.number_of_partitions is not None and self.number_of_partitions < 1:
            raise TopologyError(f"{self.number_of_partitions} partitions hold nothing", callers_origin())

    def with_number_of_partitions(self, count: int) -> Repartitioned:
        return replace(self, number_of_partitions=count)

    def with_stream_partitioner(self, partitioner: Partitioner) -> Repartitioned:
        return replace(self, partitioner=partitioner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(_Named):
    """A stream-table join: the serdes that repartitioning the stream needs, and grace for a versioned table."""

    key_serde: Serde | None = None
    left_value_serde: Serde | None = None
    right_value_serde: Serde | None = None
    grace_ms: int | None = None

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
        return replace(self, key_serde=key_serde)

    def with_left_value_serde(self, left_value_serde: Serde) -> Joined:
        return replace(self, left_value_serde=left_value_serde)

    def with_right_value_serde(self, right_value_serde: Serde) -> Joined:
        return replace(self, right_value_serde=right_value_serde)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoined(_Named):
    """A stream-stream join: the serdes of both sides, the name of their stores."""

    key_serde: Serde | None = None
    value_serde: Serde | None = None
    other_value_serde: Serde | None = None
    store_name: str | None = None
    is_logging: bool = True

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
        return replace(self, key_serde=key_serde)

    def with_value_serde(self, value_serde: Serde) -> StreamJoined:
        return replace(self, value_serde=value_serde)

    def with_other_value_serde(self, other_value_serde: Serde) -> StreamJoined:
        return replace(self, other_value_serde=other_value_serde)

    def with_logging_disabled(self) -> StreamJoined:
        return replace(self, is_logging=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoined(_Named):
    """A foreign-key join: how left and right keys were partitioned, where that was not by their hash."""

    partitioner: Partitioner | None = None
    other_partitioner: Partitioner | None = None

    @classmethod
    def with_(cls, partitioner: Partitioner | None, other_partitioner: Partitioner | None) -> TableJoined:
        """Only partitioners, of the left and of the right table."""
        return cls(partitioner=partitioner, other_partitioner=other_partitioner)

    def with_partitioner(self, partitioner: Partitioner) -> TableJoined:
        return replace(self, partitioner=partitioner)

    def with_other_partitioner(self, other_partitioner: Partitioner) -> TableJoined:
        return replace(self, other_partitioner=other_partitioner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branched(_Named):
    """What to do with one branch of a split: give it a name, go on with it, or use it up."""

    function: Callable[[KStream], KStream | None] | None = None
    consumer: Callable[[KStream], object] | None = None

    @classmethod
    def with_function(cls, function: Callable[[KStream], KStream | None], name: str | None = None) -> Branched:
        """Go on with the branch; what comes back takes its place in the dictionary of branches."""
        return cls(function=function, name=name)

    @classmethod
    def with_consumer(cls, consumer: Callable[[KStream], object], name: str | None = None) -> Branched:
        """Use the branch up; the dictionary of branches does not have it."""
        return cls(consumer=consumer, name=name)
