"""How the state of an operator is kept, and stores for processors.

A store that has a name can be queried. Where it is kept is the engine's business: persistent and in-memory stores of
Kafka Streams are the same here. Start at `Materialized`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from moldau.pipeline.dsl.durations import Duration, milliseconds
from moldau.pipeline.dsl.hints import Hinting
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.naming import checked_name
from moldau.pipeline.ir.nodes import Materialization, StateStore, StoreKind
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.serdes import DefaultSerde, Serde

__all__ = ["Materialized", "StoreBuilder", "StoreSupplier", "Stores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSupplier:
    """A store's name and kind, without serdes; made by `Stores`."""

    name: str
    kind: StoreKind
    retention_ms: int | None = None
    window_size_ms: int | None = None
    retain_duplicates: bool = False
    history_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized(Hinting):
    """How a table is stored: under which name, with which serdes, cached or not, for how long."""

    store_name: str | None = None
    key_serde: Serde | None = None
    value_serde: Serde | None = None
    is_caching: bool = True
    is_logging: bool = True
    retention_ms: int | None = None
    history_ms: int | None = None

    def __post_init__(self) -> None:
        if self.store_name is not None:
            checked_name(self.store_name)

    @classmethod
    def as_(cls, store: str | StoreSupplier) -> Materialized:
        """A store with a name, which can be queried by it."""
        if isinstance(store, StoreSupplier):
            return cls(store_name=store.name, retention_ms=store.retention_ms, history_ms=store.history_ms)
        return cls(store_name=store)

    @classmethod
    def with_(cls, key_serde: Serde | None, value_serde: Serde | None) -> Materialized:
        """Only serdes."""
        return cls(key_serde=key_serde, value_serde=value_serde)

    def with_key_serde(self, key_serde: Serde) -> Materialized:
        return replace(self, key_serde=key_serde)

    def with_value_serde(self, value_serde: Serde) -> Materialized:
        return replace(self, value_serde=value_serde)

    def with_caching_enabled(self) -> Materialized:
        """Changes of one key between two commits may become one, the default."""
        return replace(self, is_caching=True)

    def with_caching_disabled(self) -> Materialized:
        """Every change goes on, whatever the cache of the application."""
        return replace(self, is_caching=False)

    def with_logging_enabled(self) -> Materialized:
        return replace(self, is_logging=True)

    def with_logging_disabled(self) -> Materialized:
        return replace(self, is_logging=False)

    def with_retention(self, retention: Duration) -> Materialized:
        """Keep windows for this long, which must be at least their size and grace."""
        return replace(self, retention_ms=milliseconds(retention, "the retention of a store"))

    def or_serdes(self, key_serde: Serde | None, value_serde: Serde | None) -> Materialized:
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

    def retained(self, least_ms: int) -> Materialized:
        """The same with a retention, which cannot be less than what its windows need."""
        if self.retention_ms is not None and self.retention_ms < least_ms:
            raise TopologyError(
                f"a retention of {self.retention_ms} ms is too short: these windows need {least_ms} ms",
                callers_origin(),
            )
        return replace(self, retention_ms=least_ms if self.retention_ms is None else self.retention_ms)


@dataclass(frozen=True, slots=True)
class StoreBuilder(Hinting):
    """A store for processors: give it to `StreamsBuilder.add_state_store`, or let a supplier's `stores()` return it."""

    store: StateStore

    @property
    def name(self) -> str:
        return self.store.table.store

    def with_caching_enabled(self) -> StoreBuilder:
        return self._with(is_caching=True)

    def with_caching_disabled(self) -> StoreBuilder:
        return self._with(is_caching=False)

    def with_logging_enabled(self) -> StoreBuilder:
        return self._with(is_logging=True)

    def with_logging_disabled(self) -> StoreBuilder:
        return self._with(is_logging=False)

    def _with(self, **changes: bool) -> StoreBuilder:
        return StoreBuilder(replace(self.store, table=replace(self.store.table, **changes)))  # type: ignore[arg-type]


class Stores(Hinting):
    """Makes stores for processors and for `Materialized.as_`.

    `Stores.key_value_store_builder(Stores.persistent_key_value_store("seen"), Serdes.string(), Serdes.long())`
    """

    @staticmethod
    def persistent_key_value_store(name: str) -> StoreSupplier:
        return StoreSupplier(name=checked_name(name), kind=StoreKind.KEY_VALUE)

    @staticmethod
    def persistent_versioned_key_value_store(name: str, history_retention: Duration) -> StoreSupplier:
        """A table that also knows what its rows were, for as long as `history_retention`.

        Joins with it look a row up as of the time of the stream's record, and may have a grace period.
        """
        history_ms = milliseconds(history_retention, "the history retention of a versioned store")
        return StoreSupplier(name=checked_name(name), kind=StoreKind.KEY_VALUE, history_ms=history_ms)

    @staticmethod
    def persistent_window_store(
        name: str, retention: Duration, window_size: Duration, *, retain_duplicates: bool = False
    ) -> StoreSupplier:
        """Values by key and time, kept for `retention`; with duplicates, several per key and time."""
        return StoreSupplier(
            name=checked_name(name),
            kind=StoreKind.WINDOW,
            retention_ms=milliseconds(retention, "the retention of a store"),
            window_size_ms=milliseconds(window_size, "the size of a window"),
            retain_duplicates=retain_duplicates,
        )

    @staticmethod
    def persistent_session_store(name: str, retention: Duration) -> StoreSupplier:
        """Values by key and session, kept for `retention`."""
        retention_ms = milliseconds(retention, "the retention of a store")
        return StoreSupplier(name=checked_name(name), kind=StoreKind.SESSION, retention_ms=retention_ms)

    in_memory_key_value_store = persistent_key_value_store
    in_memory_window_store = persistent_window_store
    in_memory_session_store = persistent_session_store

    @staticmethod
    def key_value_store_builder(supplier: StoreSupplier, key_serde: Serde, value_serde: Serde) -> StoreBuilder:
        """Values by key."""
        return _store_builder(supplier, StoreKind.KEY_VALUE, StoreKind.KEY_VALUE, key_serde, value_serde)

    @staticmethod
    def timestamped_key_value_store_builder(
        supplier: StoreSupplier, key_serde: Serde, value_serde: Serde
    ) -> StoreBuilder:
        """Values by key, each with the time of its record."""
        return _store_builder(supplier, StoreKind.KEY_VALUE, StoreKind.TIMESTAMPED_KEY_VALUE, key_serde, value_serde)

    @staticmethod
    def window_store_builder(supplier: StoreSupplier, key_serde: Serde, value_serde: Serde) -> StoreBuilder:
        """Values by key and the start of a window."""
        return _store_builder(supplier, StoreKind.WINDOW, StoreKind.WINDOW, key_serde, value_serde)

    @staticmethod
    def timestamped_window_store_builder(supplier: StoreSupplier, key_serde: Serde, value_serde: Serde) -> StoreBuilder:
        """Values by key and the start of a window, each with the time of its record."""
        return _store_builder(supplier, StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW, key_serde, value_serde)

    @staticmethod
    def session_store_builder(supplier: StoreSupplier, key_serde: Serde, value_serde: Serde) -> StoreBuilder:
        """Values by key and session."""
        return _store_builder(supplier, StoreKind.SESSION, StoreKind.SESSION, key_serde, value_serde)


def _store_builder(
    supplier: StoreSupplier, wanted: StoreKind, kind: StoreKind, key_serde: Serde, value_serde: Serde
) -> StoreBuilder:
    if supplier.kind is not wanted:
        raise TopologyError(
            f"store {supplier.name} was asked for as a {wanted.value} store but is a {supplier.kind.value} store",
            callers_origin(),
        )
    # Kafka Streams caches the stores of processors only on demand.
    table = Materialization(
        store=supplier.name,
        key_serde=key_serde,
        value_serde=value_serde,
        is_queryable=True,
        is_caching=False,
        retention_ms=supplier.retention_ms,
    )
    return StoreBuilder(
        StateStore(
            kind=kind,
            table=table,
            window_size_ms=supplier.window_size_ms,
            retain_duplicates=supplier.retain_duplicates,
        )
    )
