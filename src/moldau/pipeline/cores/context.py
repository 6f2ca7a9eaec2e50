"""What the processors of one task share: stores, cells, stream time, the current record, and the outputs.

The context does not run anything; `task.Task` does. Start at `TaskContext`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from moldau.pipeline.cores.failures import RecordError, RecordPlace, StateError
from moldau.pipeline.cores.handlers import dead_letter_headers
from moldau.pipeline.cores.processing_log_output import ProcessingLogOutput
from moldau.pipeline.cores.processor import TableView
from moldau.pipeline.cores.punctuation import Cancellable, Punctuations, PunctuationType
from moldau.pipeline.cores.records import NO_TIMESTAMP, Headers, OutputRow
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stores.backends import Backends, StateBackend
from moldau.pipeline.cores.stores.cells import Cell, open_cell
from moldau.pipeline.cores.stores.key_value_store import KeyValueStore, TimestampedStore
from moldau.pipeline.cores.stores.session_store import SessionStore
from moldau.pipeline.cores.stores.store import Codec, Store, StoreChange, codec_of
from moldau.pipeline.cores.stores.window_store import DuplicatesWindowStore, TimestampedWindowStore, WindowStore
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import Materialization, Node

if TYPE_CHECKING:
    from moldau.pipeline.ir.old_values import TableTraits

__all__ = ["CELLS", "DEAD_LETTERS", "Cell", "RecordContext", "TaskContext"]

CELLS = "task-cells"
"""The backend that holds the cells of a task."""


DEAD_LETTERS = "dead-letters"
"""The name of the dead-letter output; no node has this name."""

AnyStore = TypeVar("AnyStore", bound=Store)
AnyWindowStore = TypeVar("AnyWindowStore", bound=WindowStore)


class RecordContext(NamedTuple):
    """The input record that is being processed."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    headers: Headers


class TaskContext:
    """Everything that processors may use of their task."""

    def __init__(
        self,
        *,
        partition: int,
        partition_counts: Mapping[str, int],
        backends: Backends,
        settings: TaskSettings,
        traits: Mapping[str, TableTraits],
    ) -> None:
        self.partition = partition
        self.partition_counts = partition_counts
        self.settings = settings
        self.outputs: list[OutputRow] = []
        self.current: tuple[Any, ...] | None = None
        """The current input row, in the order of `InputRecord`; None outside of any record, as in a punctuation."""
        self.views: dict[str, TableView] = {}
        self.stores: dict[str, Store] = {}
        self.global_stores: set[str] = set()
        """Stores of global tables, which every processor may read."""
        self.dropped: Counter[tuple[str, str]] = Counter()
        self.at_commit: list[Callable[[], None]] = []
        """Callbacks that forward what caching held back, in the order of the topology."""
        self.at_record_end: list[Callable[[], None]] = []
        """Callbacks that run after everything else that a record causes in this task."""
        self.at_flush: list[Callable[[], None]] = []
        """Callbacks with which buffers that are not stores write to their backends."""
        self._backends = backends
        self._traits = traits
        self._cells: dict[str, Cell] = {}
        self._cell_backend = backends(CELLS)
        self.stream_time_cell = self.cell("stream-time", NO_TIMESTAMP)
        self.punctuations = Punctuations(self)
        self.processing_log = ProcessingLogOutput(self)

    # --- time and record

    @property
    def stream_time(self) -> int:
        """The largest timestamp this task has seen, or -1."""
        return int(self.stream_time_cell.value)

    @property
    def record_context(self) -> RecordContext | None:
        """Topic, partition, offset and so on of the current record."""
        row = self.current
        return None if row is None else RecordContext(*row[:5])

    @property
    def place(self) -> RecordPlace | None:
        """The same in the form for error messages."""
        row = self.current
        return None if row is None else RecordPlace(row[0], row[1], row[2])

    def finish_record(self) -> None:
        """Run the callbacks for the end of a record, a punctuation or a commit."""
        for finish in self.at_record_end:
            finish()

    def drop(self, node: Node, reason: str) -> None:
        """Count a record that is deliberately skipped."""
        self.dropped[node.name, reason] += 1

    def dead_letter(self, error: RecordError) -> None:
        """Send the current record to the dead-letter topic, if there is one."""
        topic, row = self.settings.dead_letter_topic, self.current
        if topic is not None and row is not None:
            self.outputs.append((DEAD_LETTERS, topic, row[5], row[6], row[3], dead_letter_headers(error), None))

    def schedule(self, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Schedule a periodic callback by stream time or wall clock; returns its handle."""
        return self.punctuations.schedule(interval_ms, kind, callback)

    # --- state

    def store(self, name: str) -> Store:
        """A store by name."""
        try:
            return self.stores[name]
        except KeyError:
            known = ", ".join(sorted(self.stores)) or "none"
            raise StateError(f"there is no store {name!r} here; the stores of this task are: {known}") from None

    def cell(self, name: str, default: Any) -> Cell:
        """A persistent scalar, with its stored value or the default."""
        if name not in self._cells:
            self._cells[name] = open_cell(name, default, self._cell_backend)
        return self._cells[name]

    def key_value_store(self, table: Materialization) -> KeyValueStore:
        """The key-value store of a materialisation, created on first use."""
        return self.open(
            table, KeyValueStore, lambda: KeyValueStore(table.store, self.backend(table.store), self.codec(table))
        )

    def timestamped_store(self, table: Materialization) -> TimestampedStore:
        """The same with a timestamp beside each value."""
        if table.history_ms is not None:
            raise TopologyError(
                f"store {table.store!r} cannot keep history: only tables read from topics or streams, results of"
                " foreign-key joins, and filters and mappings of such tables can"
            )
        return self.open(
            table, TimestampedStore, lambda: TimestampedStore(table.store, self.backend(table.store), self.codec(table))
        )

    def window_store(
        self, table: Materialization, *, retention_ms: int, window_size_ms: int, retain_duplicates: bool = False
    ) -> WindowStore:
        """The window store of a materialisation."""
        kind = DuplicatesWindowStore if retain_duplicates else WindowStore
        return self.open(table, kind, lambda: self._windows(kind, table, retention_ms, window_size_ms, None))

    def timestamped_window_store(
        self, table: Materialization, *, retention_ms: int, window_size_ms: int, shown_ms: int | None = None
    ) -> TimestampedWindowStore:
        """The same with a timestamp beside each value."""
        kind = TimestampedWindowStore
        return self.open(table, kind, lambda: self._windows(kind, table, retention_ms, window_size_ms, shown_ms))

    def session_store(self, table: Materialization, *, retention_ms: int, shown_ms: int | None = None) -> SessionStore:
        """The session store of a materialisation."""
        return self.open(
            table,
            SessionStore,
            lambda: SessionStore(
                table.store,
                self.backend(table.store),
                self.codec(table),
                observed=self.cell(f"store-time {table.store}", NO_TIMESTAMP),
                retention_ms=retention_ms,
                shown_ms=shown_ms,
            ),
        )

    def _windows(
        self, kind: type[AnyWindowStore], table: Materialization, retention_ms: int, size_ms: int, shown_ms: int | None
    ) -> AnyWindowStore:
        return kind(
            table.store,
            self.backend(table.store),
            self.codec(table),
            observed=self.cell(f"store-time {table.store}", NO_TIMESTAMP),
            retention_ms=retention_ms,
            window_size_ms=size_ms,
            shown_ms=shown_ms,
        )

    def backend(self, name: str) -> StateBackend:
        """The backend of a name, for buffers that are not stores."""
        return self._backends(name)

    def codec(self, table: Materialization) -> Codec:
        """How this task serializes keys and values of a materialisation."""
        return codec_of(table, self.settings.internal_topic(f"{table.store}-changelog"))

    def open(self, table: Materialization, kind: type[AnyStore], make: Callable[[], AnyStore]) -> AnyStore:
        """The store of a materialisation, created on first use; requesting another kind later is an error."""
        store = self.stores.get(table.store)
        if store is None:
            store = self.stores[table.store] = make()
            store.is_queryable = table.is_queryable
        if type(store) is not kind:
            raise StateError(f"store {table.store!r} is a {type(store).__name__}, not a {kind.__name__}")
        return store

    # --- tables

    def traits(self, node: Node) -> TableTraits:
        """Whether a table is stored, and whether its changes carry old values."""
        return self._traits[node.name]

    def view(self, node: Node) -> TableView:
        """A table as other nodes read it; its builder has registered it in `views`."""
        return self.views[node.name]

    def flush(self) -> dict[str, list[StoreChange]]:
        """Write stores and cells to their backends; returns the changes of queryable stores."""
        changes: dict[str, list[StoreChange]] = {}
        for store in self.stores.values():
            written = store.flush()
            if written:
                changes[store.name] = written
        for flush in self.at_flush:
            flush()
        for cell in self._cells.values():
            cell.flush(self._cell_backend)
        return changes
