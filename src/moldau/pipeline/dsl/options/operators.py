"""The options of sources, sinks, grouping, repartitioning and branches: serdes, names, timestamps, partitions.

Each is an immutable object with Kafka Streams' constructors and methods (`with_` and `as_`, because `with` and `as` are
Python keywords); keyword arguments also work: `Consumed(key_serde=..., value_serde=...)`. Without a serde, the one
known from upstream is used, or else the default serde of the settings. Other options are in `joins`, `materialized`
and `suppressed`. Start at `Consumed`.
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
"""(topic, key, value, partition count) -> one partition, several (an empty collection drops the record), or None,
which means the hash of the key."""


def partitioner_of(given: Partitioner | None) -> PythonFunction | None:
    """A partitioner as the function of a node."""
    return None if given is None else callable_of(given, "the partitioner", "topic", "key", "value", "partition count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed(SerdesOption[K, V]):
    """How a topic is read: serdes, timestamps, and where to start.

    `timestamp_extractor` is (record, previous timestamp) -> ms since the epoch and replaces the record's timestamp;
    `offset_reset` is where to start without a committed offset: "earliest" or "latest", by default as in the settings.

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
        """Options with serdes, and optionally a timestamp extractor and an offset reset; None means the default."""
        return cls(
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
            offset_reset=offset_reset,
        )

    def with_timestamp_extractor(self, timestamp_extractor: Extractor) -> Self:
        """These options with a function (record, previous timestamp) that returns each record's timestamp in ms."""
        return replace(self, timestamp_extractor=timestamp_extractor)

    def with_offset_reset_policy(self, offset_reset: OffsetReset | str) -> Self:
        """These options with "earliest" or "latest" as the start position if no offset is committed."""
        return replace(self, offset_reset=offset_reset)

    @property
    def reset(self) -> OffsetReset | None:
        """Where to start without a committed offset; None means as in the settings."""
        return None if self.offset_reset is None else OffsetReset(self.offset_reset)


def _offset_reset(word: str) -> OffsetReset:
    try:
        return OffsetReset(word)
    except ValueError:
        raise TopologyError(f"a topic is read from 'earliest' or 'latest', not {word!r}", callers_origin()) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced(SerdesOption[K, V]):
    """How a topic is written: serdes and partitioner."""

    partitioner: Partitioner | None = None

    @classmethod
    def with_(
        cls, key_serde: Serde[K] | None, value_serde: Serde[V] | None, partitioner: Partitioner | None = None
    ) -> Self:
        """Options with these serdes, and optionally a partitioner; None means the default."""
        return cls(key_serde=key_serde, value_serde=value_serde, partitioner=partitioner)

    def with_stream_partitioner(self, partitioner: Partitioner) -> Self:
        """These options with a function (topic, key, value, partition count) that chooses the partition.

        It returns one partition, a collection of partitions (the record is written to each; an empty one drops it), or
        None, which means the hash of the key.

        `Produced.with_(text, text).with_stream_partitioner(lambda topic, key, value, count: range(count))`
        """
        return replace(self, partitioner=partitioner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped(SerdesOption[K, V]):
    """How records are grouped: serdes for repartitioning, and a name, which also names the repartition topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartitioned(SerdesOption[K, V]):
    """How a stream is repartitioned: serdes, number of partitions, partitioner."""

    number_of_partitions: int | None = None
    partitioner: Partitioner | None = None

    def __post_init__(self) -> None:
        SerdesOption.__post_init__(self)
        if self.number_of_partitions is not None and self.number_of_partitions < 1:
            raise TopologyError(
                f"{self.number_of_partitions} partitions are too few: at least 1 is needed", callers_origin()
            )

    def with_number_of_partitions(self, count: int) -> Self:
        """These options with `count` partitions."""
        return replace(self, number_of_partitions=count)

    def with_stream_partitioner(self, partitioner: Partitioner) -> Self:
        """These options with a function (topic, key, value, partition count) that chooses the partition."""
        return replace(self, partitioner=partitioner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branched(NamedOption):
    """The options of one branch of a split: a name, and a function that continues or consumes the branch."""

    function: Callable[[KStream], KStream | None] | None = None
    consumer: Callable[[KStream], object] | None = None

    @classmethod
    def with_function(cls, function: Callable[[KStream], KStream | None], name: str | None = None) -> Branched:
        """Apply `function` to the branch; its result replaces the branch in the dict of branches, None removes it.

        `orders.split().branch(is_big, Branched.with_function(lambda big: big.map_values(total), "big"))`
        """
        return cls(function=function, name=name)

    @classmethod
    def with_consumer(cls, consumer: Callable[[KStream], object], name: str | None = None) -> Branched:
        """Pass the branch to `consumer`; the dict of branches does not contain it."""
        return cls(consumer=consumer, name=name)
