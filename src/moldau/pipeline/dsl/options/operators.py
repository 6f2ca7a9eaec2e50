"""What may be said about an operator beside its function: serdes, names, timestamps, partitions.

Each is a frozen object with Kafka Streams' constructors (`with_`, `as_`, since `with` and `as` are Python's) and
methods; plain keyword arguments do as well: `Consumed(key_serde=..., value_serde=...)`. A serde left out is the one
known from upstream, else the default of the settings. `join_options`, `materialized` and `suppressed` have the others.
Start at `Consumed`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from moldau.pipeline.dsl.functions import callable_of
from moldau.pipeline.dsl.options.named import NamedOption, SerdesOption
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.type_variables import K, V
from moldau.serdes.serde import Serde

if TYPE_CHECKING:
    from moldau.pipeline.dsl.kstream import KStream

__all__ = ["Branched", "Consumed", "Grouped", "Partitioner", "Produced", "Repartitioned", "partitioner_of"]

Extractor = Callable[[Any, int], int]
"""(record, previous timestamp) -> ms since the epoch."""

Partitioner = Callable[[str, Any, Any, int], int | Collection[int] | None]
"""(topic, key, value, partition count) -> partition, or several; none drops the record, None leaves it to the hash."""


def partitioner_of(given: Partitioner | None) -> PythonFunction | None:
    """A partitioner as the function of a node."""
    return None if given is None else callable_of(given, "the partitioner", "topic", "key", "value", "partition count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed(SerdesOption[K, V]):
    """How a topic is read.

    `timestamp_extractor` is (record, previous timestamp) -> ms since the epoch and replaces the record's own time;
    `offset_reset` says where to start without a committed position ("earliest" or "latest"; else the setting).

        Consumed.with_(Serdes.string(), Serdes.json(), lambda record, previous: record.value["at_ms"])
    """

    timestamp_extractor: Extractor | None = None
    offset_reset: OffsetReset | str | None = None

    def __post_init__(self) -> None:
        SerdesOption.__post_init__(self)
        if self.timestamp_extractor is not None:
            callable_of(self.timestamp_extractor, "timestamp_extractor", "record", "previous timestamp")
        if isinstance(self.offset_reset, str):
            object.__setattr__(self, "offset_reset", _offset_reset(self.offset_reset))

    @classmethod
    def with_(
        cls,
        key_serde: Serde[K] | None,
        value_serde: Serde[V] | None,
        timestamp_extractor: Extractor | None = None,
        offset_reset: OffsetReset | str | None = None,
    ) -> Self:
        """Serdes, and what else is to be said; None where the defaults are right."""
        return cls(
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
            offset_reset=offset_reset,
        )

    def with_timestamp_extractor(self, timestamp_extractor: Extractor) -> Self:
        """The same with times that a function (record, previous timestamp) reads from the records."""
        return replace(self, timestamp_extractor=timestamp_extractor)

    def with_offset_reset_policy(self, offset_reset: OffsetReset | str) -> Self:
        """The same, starting at "earliest" or "latest" where no position is committed."""
        return replace(self, offset_reset=offset_reset)

    @property
    def reset(self) -> OffsetReset | None:
        """Where to start, None where the settings decide."""
        return None if self.offset_reset is None else OffsetReset(self.offset_reset)


def _offset_reset(word: str) -> OffsetReset:
    try:
        return OffsetReset(word)
    except ValueError:
        raise TopologyError(f"a topic is read from 'earliest' or 'latest', not {word!r}", callers_origin()) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced(SerdesOption[K, V]):
    """How a topic is written."""

    partitioner: Partitioner | None = None

    @classmethod
    def with_(
        cls, key_serde: Serde[K] | None, value_serde: Serde[V] | None, partitioner: Partitioner | None = None
    ) -> Self:
        """Serdes, and perhaps a partitioner; None where the defaults are right."""
        return cls(key_serde=key_serde, value_serde=value_serde, partitioner=partitioner)

    def with_stream_partitioner(self, partitioner: Partitioner) -> Self:
        """The same, to partitions that a function (topic, key, value, partition count) chooses.

        It returns a partition, several (the record is written to each of them, or to none where there are none), or
        None, which leaves it to the hash of the key.

        `Produced.with_(text, text).with_stream_partitioner(lambda topic, key, value, count: range(count))`
        """
        return replace(self, partitioner=partitioner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped(SerdesOption[K, V]):
    """How grouped records travel to their partition; the name also names the repartition topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartitioned(SerdesOption[K, V]):
    """How a stream is repartitioned, and into how many partitions."""

    number_of_partitions: int | None = None
    partitioner: Partitioner | None = None

    def __post_init__(self) -> None:
        SerdesOption.__post_init__(self)
        if self.number_of_partitions is not None and self.number_of_partitions < 1:
            raise TopologyError(f"{self.number_of_partitions} partitions hold nothing", callers_origin())

    def with_number_of_partitions(self, count: int) -> Self:
        """The same with so many partitions."""
        return replace(self, number_of_partitions=count)

    def with_stream_partitioner(self, partitioner: Partitioner) -> Self:
        """The same, to partitions that a function (topic, key, value, partition count) chooses."""
        return replace(self, partitioner=partitioner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branched(NamedOption):
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
