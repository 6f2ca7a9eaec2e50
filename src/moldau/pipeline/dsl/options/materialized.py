"""The options of a table's store: name, serdes, caching, retention.

A store with a name can be queried. The engine decides where it is kept: persistent and in-memory stores of Kafka
Streams are the same here. Stores for processors are in `stores`. Start at `Materialized`.
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
    """How a table is stored: the store's name, serdes, caching and retention.

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
        """A store with this name, by which it can be queried; `store` is a name or a supplier made by `Stores`."""
        if isinstance(store, StoreSupplier):
            return cls(store_name=store.name, retention_ms=store.retention_ms, history_ms=store.history_ms)
        return cls(store_name=store)

    @classmethod
    def with_(cls, key_serde: Serde[K] | None, value_serde: Serde[V] | None) -> Self:
        """Options with only serdes; the store has no name and cannot be queried."""
        return cls(key_serde=key_serde, value_serde=value_serde)

    def with_key_serde(self, key_serde: Serde[K]) -> Self:
        """These options with another serde for keys."""
        return replace(self, key_serde=key_serde)

    def with_value_serde(self, value_serde: Serde[V]) -> Self:
        """These options with another serde for values."""
        return replace(self, value_serde=value_serde)

    def with_caching_enabled(self) -> Self:
        """Several changes of one key between two commits may be emitted as one; this is the default."""
        return replace(self, is_caching=True)

    def with_caching_disabled(self) -> Self:
        """Emit every change, whatever the application's cache setting."""
        return replace(self, is_caching=False)

    def with_logging_enabled(self) -> Self:
        """Accepted for compatibility with Kafka Streams; no effect: all state is kept in the checkpoint."""
        return replace(self, is_logging=True)

    def with_logging_disabled(self) -> Self:
        """Accepted for compatibility with Kafka Streams; no effect, see `with_logging_enabled`."""
        return replace(self, is_logging=False)

    def with_retention(self, retention: Duration) -> Self:
        """Keep windows for `retention`, which must be at least their size plus grace."""
        return replace(self, retention_ms=milliseconds(retention, "the retention of a store"))

    def or_serdes(self, key_serde: Serde | None, value_serde: Serde | None) -> Materialized[Any, Any]:
        """These options, with the given serdes where they have none."""
        return replace(self, key_serde=self.key_serde or key_serde, value_serde=self.value_serde or value_serde)

    def under(self, store: str) -> Materialization:
        """The node's materialization, with the user's store name, or `store` if there is none."""
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

    def with_least_retention(self, least_ms: int) -> Self:
        """These options with a retention, `least_ms` by default; raises `TopologyError` if theirs is shorter."""
        if self.retention_ms is not None and self.retention_ms < least_ms:
            raise TopologyError(
                f"a retention of {self.retention_ms} ms is too short: these windows need {least_ms} ms",
                callers_origin(),
            )
        return replace(self, retention_ms=least_ms if self.retention_ms is None else self.retention_ms)
