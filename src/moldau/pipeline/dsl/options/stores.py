"""State stores for processors, and for tables with a store of their own: their names, kinds and serdes.

The engine decides where they are kept: persistent and in-memory stores are the same here. Start at `Stores`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from moldau.pipeline.dsl.options.given import Duration, check_serdes, milliseconds
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.naming import checked_name
from moldau.pipeline.ir.nodes import Materialization, StateStore, StoreKind
from moldau.pipeline.ir.origin import callers_origin
from moldau.serdes.serde import Serde

__all__ = ["StoreBuilder", "StoreSupplier", "Stores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSupplier:
    """The name and kind of a store, without serdes; created by `Stores`."""

    name: str
    kind: StoreKind
    retention_ms: int | None = None
    window_size_ms: int | None = None
    retain_duplicates: bool = False
    history_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StoreBuilder(Hinting):
    """A store for processors: pass it to `StreamsBuilder.add_state_store`, or return it in a supplier's `stores()`."""

    store: StateStore

    @property
    def name(self) -> str:
        """The name by which processors get the store."""
        return self.store.table.store

    def with_caching_enabled(self) -> StoreBuilder:
        """Accepted for compatibility with Kafka Streams; no effect: a batch's writes stay in memory until its end."""
        return self._with(is_caching=True)

    def with_caching_disabled(self) -> StoreBuilder:
        """Accepted for compatibility with Kafka Streams; no effect, see `with_caching_enabled`."""
        return self._with(is_caching=False)

    def with_logging_enabled(self) -> StoreBuilder:
        """Accepted for compatibility with Kafka Streams; no effect: all state is kept in the checkpoint."""
        return self._with(is_logging=True)

    def with_logging_disabled(self) -> StoreBuilder:
        """Accepted for compatibility with Kafka Streams; no effect, see `with_logging_enabled`."""
        return self._with(is_logging=False)

    def _with(self, **changes: bool) -> StoreBuilder:
        return StoreBuilder(replace(self.store, table=replace(self.store.table, **changes)))  # type: ignore[arg-type]


class Stores(Hinting):
    """Creates stores for processors and for `Materialized.as_`.

    `Stores.key_value_store_builder(Stores.persistent_key_value_store("seen"), Serdes.string(), Serdes.long())`
    """

    @staticmethod
    def persistent_key_value_store(name: str) -> StoreSupplier:
        """A store with one value per key."""
        return StoreSupplier(name=checked_name(name), kind=StoreKind.KEY_VALUE)

    @staticmethod
    def persistent_timestamped_key_value_store(name: str) -> StoreSupplier:
        """The same store as without timestamps: its builder or table decides whether values have timestamps."""
        return Stores.persistent_key_value_store(name)

    @staticmethod
    def persistent_versioned_key_value_store(name: str, history_retention: Duration) -> StoreSupplier:
        """A store that also keeps older values of each key, for as long as `history_retention`.

        A stream that joins such a table gets the row as of the record's timestamp; the join may have a grace period.
        """
        history_ms = milliseconds(history_retention, "the history retention of a versioned store")
        return StoreSupplier(name=checked_name(name), kind=StoreKind.VERSIONED_KEY_VALUE, history_ms=history_ms)

    @staticmethod
    def persistent_window_store(
        name: str, retention: Duration, window_size: Duration, *, retain_duplicates: bool = False
    ) -> StoreSupplier:
        """A store of values by key and time, kept for `retention`.

        `retain_duplicates` allows several values with the same key and time.
        """
        return StoreSupplier(
            name=checked_name(name),
            kind=StoreKind.WINDOW,
            retention_ms=milliseconds(retention, "the retention of a store"),
            window_size_ms=milliseconds(window_size, "the size of a window"),
            retain_duplicates=retain_duplicates,
        )

    @staticmethod
    def persistent_timestamped_window_store(
        name: str, retention: Duration, window_size: Duration, *, retain_duplicates: bool = False
    ) -> StoreSupplier:
        """The same store as without timestamps: its builder or table decides whether values have timestamps."""
        return Stores.persistent_window_store(name, retention, window_size, retain_duplicates=retain_duplicates)

    @staticmethod
    def persistent_session_store(name: str, retention: Duration) -> StoreSupplier:
        """A store of values by key and session, kept for `retention`."""
        retention_ms = milliseconds(retention, "the retention of a store")
        return StoreSupplier(name=checked_name(name), kind=StoreKind.SESSION, retention_ms=retention_ms)

    in_memory_key_value_store = persistent_key_value_store
    in_memory_window_store = persistent_window_store
    in_memory_session_store = persistent_session_store

    @staticmethod
    def key_value_store_builder(supplier: StoreSupplier, key_serde: Serde, value_serde: Serde) -> StoreBuilder:
        """A builder for a store of values by key."""
        return _store_builder(supplier, StoreKind.KEY_VALUE, StoreKind.KEY_VALUE, key_serde, value_serde)

    @staticmethod
    def timestamped_key_value_store_builder(
        supplier: StoreSupplier, key_serde: Serde, value_serde: Serde
    ) -> StoreBuilder:
        """A builder for a store of values by key, each with the timestamp of its record."""
        return _store_builder(supplier, StoreKind.KEY_VALUE, StoreKind.TIMESTAMPED_KEY_VALUE, key_serde, value_serde)

    @staticmethod
    def versioned_key_value_store_builder(
        supplier: StoreSupplier, key_serde: Serde, value_serde: Serde
    ) -> StoreBuilder:
        """A builder for a store with `put(key, value, timestamp)`, `get(key)` and `get_as_of(key, timestamp)`."""
        kind = StoreKind.VERSIONED_KEY_VALUE
        return _store_builder(supplier, kind, kind, key_serde, value_serde)

    @staticmethod
    def window_store_builder(supplier: StoreSupplier, key_serde: Serde, value_serde: Serde) -> StoreBuilder:
        """A builder for a store of values by key and window start."""
        return _store_builder(supplier, StoreKind.WINDOW, StoreKind.WINDOW, key_serde, value_serde)

    @staticmethod
    def timestamped_window_store_builder(supplier: StoreSupplier, key_serde: Serde, value_serde: Serde) -> StoreBuilder:
        """A builder for a store of values by key and window start, each with the timestamp of its record."""
        return _store_builder(supplier, StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW, key_serde, value_serde)

    @staticmethod
    def session_store_builder(supplier: StoreSupplier, key_serde: Serde, value_serde: Serde) -> StoreBuilder:
        """A builder for a store of values by key and session."""
        return _store_builder(supplier, StoreKind.SESSION, StoreKind.SESSION, key_serde, value_serde)


def _store_builder(
    supplier: StoreSupplier, wanted: StoreKind, kind: StoreKind, key_serde: Serde, value_serde: Serde
) -> StoreBuilder:
    if not isinstance(supplier, StoreSupplier):
        example = f"Stores.persistent_{wanted.value.replace('-', '_')}_store(...)"
        raise TopologyError(
            f"a {wanted.value} store is needed here, such as {example}, not {supplier!r}", callers_origin()
        )
    if supplier.kind is not wanted:
        raise TopologyError(
            f"store {supplier.name} is used as a {wanted.value} store but is a {supplier.kind.value} store",
            callers_origin(),
        )
    check_serdes(key_serde, value_serde)
    # As in Kafka Streams, caching is off by default for the stores of processors.
    table = Materialization(
        store=supplier.name,
        key_serde=key_serde,
        value_serde=value_serde,
        is_queryable=True,
        is_caching=False,
        retention_ms=supplier.retention_ms,
        history_ms=supplier.history_ms,
    )
    return StoreBuilder(
        StateStore(
            kind=kind,
            table=table,
            window_size_ms=supplier.window_size_ms,
            retain_duplicates=supplier.retain_duplicates,
        )
    )
