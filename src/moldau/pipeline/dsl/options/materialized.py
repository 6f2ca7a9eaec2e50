"""How the state of a table is kept: under which name, with which serdes, cached or not, for how long.

A store that has a name can be queried. Where it is kept is the engine's business: persistent and in-memory stores of
Kafka Streams are the same here. Stores for processors are in `stores`. Start at `Materialized`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, Self

from moldau.pipeline.dsl.options.given import Duration, check_serdes, milliseconds
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.dsl.options.stores import StoreSupplier
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.naming import checked_name
from moldau.pipeline.ir.nodes import Materialization
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.serdes import DefaultSerde
from moldau.pipeline.ir.type_variables import K, V
from moldau.serdes.serde import Serde

__all__ = ["Materialized"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized(Hinting, Generic[K, V]):
    """How a table is stored: under which name, with which serdes, cached or not, for how long.

    `grouped.count(Materialized.as_("visits").with_value_serde(Serdes.long()).with_caching_disabled())`
    """

    store_name: str | None = None
    key_serde: Serde[K] | None = None
    value_serde: Serde[V] | None = None
    is_caching: bool = True
    is_logging: bool = True
    retention_ms: int | None = None
    history_ms: int | None = None

    def __post_init__(self) -> None:
        if self.store_name is not None:
            checked_name(self.store_name)
        check_serdes(self.key_serde, self.value_serde)

    @classmethod
    def as_(cls, store: str | StoreSupplier) -> Self:
        """A store with a name, which can be queried by it."""
        if isinstance(store, StoreSupplier):
            return cls(store_name=store.name, retention_ms=store.retention_ms, history_ms=store.history_ms)
        return cls(store_name=store)

    @classmethod
    def with_(cls, key_serde: Serde[K] | None, value_serde: Serde[V] | None) -> Self:
        """Only serdes."""
        return cls(key_serde=key_serde, value_serde=value_serde)

    def with_key_serde(self, key_serde: Serde[K]) -> Self:
        """The same with another serde for keys."""
        return replace(self, key_serde=key_serde)

    def with_value_serde(self, value_serde: Serde[V]) -> Self:
        """The same with another serde for values."""
        return replace(self, value_serde=value_serde)

    def with_caching_enabled(self) -> Self:
        """Changes of one key between two commits may become one, the default."""
        return replace(self, is_caching=True)

    def with_caching_disabled(self) -> Self:
        """Every change goes on, whatever the cache of the application."""
        return replace(self, is_caching=False)

    def with_logging_enabled(self) -> Self:
        """As in Kafka Streams, and without effect: all state is kept in the checkpoint."""
        return replace(self, is_logging=True)

    def with_logging_disabled(self) -> Self:
        """As in Kafka Streams, and without effect, as `with_logging_enabled`."""
        return replace(self, is_logging=False)

    def with_retention(self, retention: Duration) -> Self:
        """Keep windows for this long, which must be at least their size and grace."""
        return replace(self, retention_ms=milliseconds(retention, "the retention of a store"))

    def or_serdes(self, key_serde: Serde | None, value_serde: Serde | None) -> Materialized[Any, Any]:
        """The same with these serdes where it names none."""
        return replace(self, key_serde=self.key_serde or key_serde, value_serde=self.value_serde or value_serde)

    def under(self, store: str) -> Materialization:
        """The state of a node, under the user's name or, where there is none, under `store`."""
        return Materialization(
            store=self.store_name or store,
            key_serde=self.key_serde or DefaultSerde("key"),
            value_serde=self.value_serde or DefaultSerde("value"),
            is_queryable=self.store_name is not None,
            is_caching=self.is_caching,
            is_logging=self.is_logging,
            retention_ms=self.retention_ms,
            history_ms=self.history_ms,
        )

    def retained(self, least_ms: int) -> Self:
        """The same with a retention, which cannot be less than what its windows need."""
        if self.retention_ms is not None and self.retention_ms < least_ms:
            raise TopologyError(
                f"a retention of {self.retention_ms} ms is too short: these windows need {least_ms} ms",
                callers_origin(),
            )
        return replace(self, retention_ms=least_ms if self.retention_ms is None else self.retention_ms)
