"""The nodes of a pipeline: sources, operators and sinks.

A node references its inputs, so the sinks reference the whole graph. Names are Kafka Streams'
(`KSTREAM-FILTER-0000000003`), and so is the meaning of each node: a *stream* carries records, a *table* carries changes
of (new, old) per key. A `PythonFunction` gets plain values; the arguments are given in the docstring of each node.
Nodes depend neither on an engine nor on a front end. Start at `Node`, then `topology.Topology`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar, dataclass_transform

from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.origin import UNKNOWN, Origin
from moldau.pipeline.ir.row_functions import RowAggregates, RowTimestamp
from moldau.pipeline.ir.windows import AggregationWindow, JoinWindow
from moldau.serdes.serde import Serde


class OffsetReset(Enum):
    """Where a source without committed offsets starts."""

    EARLIEST = "earliest"
    LATEST = "latest"


class JoinKind(Enum):
    """Which records of a join are emitted without a match."""

    INNER = "inner"
    LEFT = "left"
    OUTER = "outer"


class EmitStrategy(Enum):
    """When a windowed aggregation emits its result."""

    ON_UPDATE = "on update"
    """With every change of a window, the default."""
    ON_WINDOW_CLOSE = "on window close"
    """Once, when the window has closed."""

    @classmethod
    def on_window_update(cls) -> EmitStrategy:
        """Kafka Streams' spelling of `ON_UPDATE`."""
        return cls.ON_UPDATE

    @classmethod
    def on_window_close(cls) -> EmitStrategy:
        """Kafka Streams' spelling of `ON_WINDOW_CLOSE`."""
        return cls.ON_WINDOW_CLOSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialization:
    """How the state of a node is stored. A store that the user did not name is internal and cannot be queried."""

    store: str
    key_serde: Serde
    value_serde: Serde
    is_queryable: bool = False
    is_caching: bool = True
    is_logging: bool = True
    retention_ms: int | None = None
    history_ms: int | None = None
    """How long a versioned table keeps old versions of its rows; None for all other tables."""


class StoreKind(Enum):
    """The kinds of stores that users' processors can have."""

    KEY_VALUE = "key-value"
    TIMESTAMPED_KEY_VALUE = "timestamped key-value"
    VERSIONED_KEY_VALUE = "versioned key-value"
    WINDOW = "window"
    TIMESTAMPED_WINDOW = "timestamped window"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateStore:
    """A store of a user's processor.

    Windows and sessions are kept for `table.retention_ms`, old versions in a versioned store for `table.history_ms`.
    """

    kind: StoreKind
    table: Materialization
    window_size_ms: int | None = None
    retain_duplicates: bool = False


NodeClass = TypeVar("NodeClass")


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
def node(node_class: type[NodeClass]) -> type[NodeClass]:
    """Make a class a node: frozen, keyword-only, compared by identity (comparing by value would walk both graphs)."""
    return dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)(node_class)


@node
class Node:
    """Base of all nodes; `name` is unique in its topology."""

    name: str
    origin: Origin = UNKNOWN
    parts: tuple[str, ...] = ()
    """Kafka Streams' names of the processors, sources and sinks that implement this node there, for `describe()`.

    Empty where it is a single processor with this node's own name.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


# --- sources -------------------------------------------------------------------------------------------------


@node
class Source(Node):
    """Topics that feed a pipeline; `timestamps` is (record, previous timestamp) -> ms and replaces the record's own."""

    topics: tuple[str, ...]
    key_serde: Serde
    value_serde: Serde
    topic_pattern: str | None = None
    timestamps: PythonFunction | RowTimestamp | None = None
    offset_reset: OffsetReset | None = None


@node
class StreamSource(Source):
    """Topics read as a stream of records."""


@node
class TableSource(Source):
    """A topic read as a table: a record replaces the row of its key, a null value deletes it.

    Rows are stored only if something downstream needs them, see `old_values`.
    """

    table: Materialization


@node
class GlobalTableSource(Source):
    """A topic read as a table that every task has as a whole, with all partitions."""

    table: Materialization


@node
class GlobalStoreSource(GlobalTableSource):
    """A topic that a user's processor writes to a store which every task has whole; `supplier` is as in `Process`."""

    supplier: PythonFunction
    kind: StoreKind
    window_size_ms: int | None = None
    retain_duplicates: bool = False

    @property
    def store(self) -> StateStore:
        """The store that the processor writes."""
        return StateStore(
            kind=self.kind,
            table=self.table,
            window_size_ms=self.window_size_ms,
            retain_duplicates=self.retain_duplicates,
        )


# --- stateless, on streams -----------------------------------------------------------------------------------


@node
class OneInput(Node):
    """A node fed by one other."""

    input: Node


@node
class Filter(OneInput):
    """Keep records for which `predicate` (key, value) is true, or false where `is_negated`."""

    predicate: Function
    is_negated: bool = False


@node
class Map(OneInput):
    """Replace key and value: `mapper` (key, value) -> (key, value)."""

    mapper: Function


@node
class MapValues(OneInput):
    """Replace the value: `mapper` (value), or (key, value) where `has_key`."""

    mapper: Function
    has_key: bool = False


@node
class FlatMap(OneInput):
    """Replace a record by any number: `mapper` (key, value) -> iterable of (key, value)."""

    mapper: Function


@node
class FlatMapValues(OneInput):
    """Replace a value by any number: `mapper` (value) or (key, value) -> iterable of values."""

    mapper: Function
    has_key: bool = False


@node
class SelectKey(OneInput):
    """Replace the key: `selector` (key, value) -> key."""

    selector: Function


@node
class Peek(OneInput):
    """Call `action` (key, value) and pass the record on."""

    action: PythonFunction


@node
class ForEach(OneInput):
    """Call `action` (key, value); a terminal operator."""

    action: PythonFunction


@node
class Merge(Node):
    """Records of several streams in order of arrival."""

    inputs: tuple[Node, ...]
    is_copartitioned: bool = False
    """Whether all inputs must be copartitioned, since an aggregation follows without a repartitioning."""


@node
class Split(OneInput):
    """Give each record to the first branch whose predicate (key, value) holds; `BranchOutput`s follow."""

    predicates: tuple[Function, ...]
    has_default: bool


@node
class BranchOutput(OneInput):
    """One branch of a `Split`; the default branch has the index after the last predicate."""

    index: int


@node
class Repartition(OneInput):
    """Send records to the partition of their key, by murmur2 of the key bytes; the boundary of a sub-topology.

    `topic` is the topic name of Kafka Streams, without the application id. Without `partitions` the count is that of
    the sources upstream. `partitioner` is (topic, key, value, count) -> partition, or several.
    """

    topic: str
    key_serde: Serde
    value_serde: Serde
    partitions: int | None = None
    partitioner: PythonFunction | None = None
    carries_changes: bool = False
    """Whether the records are changes of a table, for an aggregation."""
    drops_null_keys: bool = False
    """Whether records without a key are dropped here, since nothing downstream accepts them."""
    copartitioned_with: Node | None = None
    """The node whose sources determine the partition count, if not those upstream."""
    is_automatic: bool = False
    """Whether the user did not ask for it: it may then be merged with others that carry the same records."""


@node
class ToStream(OneInput):
    """The new values of a table as a stream; `selector` (key, value) -> key where given."""

    selector: Function | None = None


@node
class ToTable(OneInput):
    """A stream read as a table, stored as in `TableSource`."""

    table: Materialization


# --- tables --------------------------------------------------------------------------------------------------


@node
class TableFilter(OneInput):
    """A row that stops passing becomes a tombstone."""

    predicate: Function
    is_negated: bool = False
    table: Materialization | None = None
    forgets_history: bool = False
    """Whether late changes of old versions are treated downstream as changes of the current row."""


@node
class TableMapValues(OneInput):
    """`mapper` (value), or (key, value) where `has_key`; never called with a null value."""

    mapper: Function
    has_key: bool = False
    table: Materialization | None = None
    forgets_history: bool = False
    """Whether late changes of old versions are treated downstream as changes of the current row."""


@node
class TableTransformValues(OneInput):
    """`supplier` () -> object with init(context), transform(key, value), close(); values change, keys stay."""

    supplier: PythonFunction
    stores: tuple[StateStore, ...] = ()
    table: Materialization | None = None
    forgets_history: bool = False
    """Whether late changes of old versions are treated downstream as changes of the current row."""
    connected: tuple[str, ...] = ()


@node
class GroupTable(OneInput):
    """Re-key the changes of a table for an aggregation: `selector` (key, value) -> (key, value)."""

    selector: Function


# --- aggregation ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Count:
    """The number of records with a value."""


@dataclass(frozen=True, slots=True)
class Reduce:
    """`adder` (aggregate, value) -> aggregate, the first value being the first aggregate; `subtractor` undoes."""

    adder: Function
    subtractor: Function | None = None


@dataclass(frozen=True, slots=True)
class Fold:
    """`initializer` () , `adder` (key, value, aggregate), `subtractor` the same, `merger` (key, one, other)."""

    initializer: PythonFunction
    adder: Function
    subtractor: Function | None = None
    merger: Function | None = None


Aggregator = Count | Reduce | Fold | RowAggregates


@node
class Aggregate(OneInput):
    """Aggregate the records per key, and per window where there is one; gives a table."""

    aggregator: Aggregator
    table: Materialization
    window: AggregationWindow | None = None
    emit: EmitStrategy = EmitStrategy.ON_UPDATE


@node
class AggregateTable(OneInput):
    """Aggregate the rows of a grouped table; a change subtracts the old row, then adds the new one."""

    aggregator: Aggregator
    table: Materialization


@node
class Cogroup(Node):
    """Aggregate several grouped streams into one table; `adders[i]` (key, value, aggregate) serves `inputs[i]`."""

    inputs: tuple[Node, ...]
    adders: tuple[Function, ...]
    initializer: PythonFunction
    table: Materialization
    merger: Function | None = None
    window: AggregationWindow | None = None
    emit: EmitStrategy = EmitStrategy.ON_UPDATE


# --- joins ---------------------------------------------------------------------------------------------------


@node
class Join(Node):
    """Two inputs and a `joiner` (left value, right value), or (key, left value, right value) where `has_key`."""

    left: Node
    right: Node
    joiner: Function
    kind: JoinKind
    has_key: bool = False


@node
class StreamStreamJoin(Join):
    """Records of two streams with equal keys, within a time window of each other."""

    window: JoinWindow
    left_store: Materialization
    right_store: Materialization
    outer_store: str | None = None
    """The store of unmatched records that wait for their window to close, in left and outer joins."""
    is_self_join: bool = False
    """Whether both sides are the same stream, stored once in `left_store`."""


@node
class StreamTableJoin(Join):
    """Each record of the left stream with the current row of its key in the table.

    With a grace period the stream's records wait in `buffer` until stream time is that much past their timestamp.
    """

    grace_ms: int | None = None
    buffer: Materialization | None = None


@node
class StreamGlobalTableJoin(Join):
    """As `StreamTableJoin`, by a key that `selector` (key, value) returns for the stream's record."""

    selector: Function


@node
class TableTableJoin(Join):
    """Rows of two tables with equal keys."""

    table: Materialization | None = None


@node
class ForeignKeyJoin(Join):
    """Rows of the left table with the right row whose key `extractor` (value), or (key, value), returns for them."""

    extractor: Function
    extractor_has_key: bool = False
    left_table: Materialization
    """The serdes of left keys and values in the repartitioning to the right side."""
    right_table: Materialization
    subscriptions: str
    """The store next to the right table that maps right keys to the left rows subscribed to them."""
    subscription_topic: str
    response_topic: str
    left_partitioner: PythonFunction | None = None
    right_partitioner: PythonFunction | None = None
    table: Materialization


# --- suppression, processors, sinks --------------------------------------------------------------------------


@node
class Suppress(OneInput):
    """Hold back changes of a table until their window has closed, or for `wait_ms` of stream time.

    A full buffer stops the pipeline where `is_strict`, else it emits the oldest change early.
    """

    until_window_close: bool
    wait_ms: int = 0
    grace_ms: int = 0
    max_records: int | None = None
    max_bytes: int | None = None
    is_strict: bool = True
    buffer: Materialization


@node
class Process(OneInput):
    """A user's processor: `supplier` () -> object with init(context), process(record), close()."""

    supplier: PythonFunction
    stores: tuple[StateStore, ...] = ()
    keeps_key: bool = False
    """Whether the processor may change values only."""
    connected: tuple[str, ...] = ()
    """Names of stores of other nodes that this processor uses."""


@node
class Sink(OneInput):
    """Write to a topic; `chooser` (key, value, record) -> topic where the topic depends on the record.

    `partitioner` is (topic, key, value, partition count) -> partition, or several.
    """

    topic: str | None
    key_serde: Serde
    value_serde: Serde
    chooser: PythonFunction | None = None
    partitioner: PythonFunction | None = None


def inputs_of(node: Node) -> tuple[Node, ...]:
    """The nodes that feed this one, left before right."""
    match node:
        case OneInput():
            return (node.input,)
        case Join():
            return (node.left, node.right)
        case Merge() | Cogroup():
            return node.inputs
        case _:
            return ()
