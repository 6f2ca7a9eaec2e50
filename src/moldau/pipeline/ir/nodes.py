"""The nodes of a pipeline: sources, what happens to records on their way, and sinks.

A node names its inputs, so the sinks hold the whole graph. Names are Kafka Streams' (`KSTREAM-FILTER-0000000003`), and
so is the meaning of each node: a *stream* carries records, a *table* carries changes of (new, old) per key. A function
that is a `PythonFunction` gets plain values; its arguments are written next to each field. Nodes know neither their
engine nor their front end. Start at `Node`, then `topology.Topology`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar, dataclass_transform

from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.origin import UNKNOWN, Origin
from moldau.pipeline.ir.windows import AggregationWindow, JoinWindow
from moldau.serdes.serde import Serde


class OffsetReset(Enum):
    """Where a source starts that has no position yet."""

    EARLIEST = "earliest"
    LATEST = "latest"


class JoinKind(Enum):
    """Which records of a join may stay without a partner."""

    INNER = "inner"
    LEFT = "left"
    OUTER = "outer"


class EmitStrategy(Enum):
    """When a windowed aggregation tells its result."""

    ON_UPDATE = "on update"
    """With every change of a window, the default."""
    ON_WINDOW_CLOSE = "on window close"
    """Once, when nothing can change the window any more."""

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
    """How the state of a node is kept. A store that nobody named is internal and cannot be queried."""

    store: str
    key_serde: Serde
    value_serde: Serde
    is_queryable: bool = False
    is_caching: bool = True
    is_logging: bool = True
    retention_ms: int | None = None
    history_ms: int | None = None
    """A versioned table also knows what its rows were, for this long; None for all other tables."""


class StoreKind(Enum):
    """The stores that processors may ask for."""

    KEY_VALUE = "key-value"
    TIMESTAMPED_KEY_VALUE = "timestamped key-value"
    VERSIONED_KEY_VALUE = "versioned key-value"
    WINDOW = "window"
    TIMESTAMPED_WINDOW = "timestamped window"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateStore:
    """A store that a user's processor asked for.

    Windows and sessions are kept for `table.retention_ms`, the past of a versioned one for `table.history_ms`.
    """

    kind: StoreKind
    table: Materialization
    window_size_ms: int | None = None
    retain_duplicates: bool = False


NodeClass = TypeVar("NodeClass")


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
def node(node_class: type[NodeClass]) -> type[NodeClass]:
    """Frozen, by keyword, and equal only to itself: comparing two nodes by value would walk both graphs."""
    return dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)(node_class)


@node
class Node:
    """Anything in a pipeline; `name` is unique in its topology."""

    name: str
    origin: Origin = UNKNOWN
    parts: tuple[str, ...] = ()
    """What Kafka Streams calls the processors, sources and sinks that together do what this node does.

    Empty where it has one processor of this node's own name; `describe()` needs the rest.
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
    timestamps: PythonFunction | None = None
    offset_reset: OffsetReset | None = None


@node
class StreamSource(Source):
    """Topics read as a stream of records."""


@node
class TableSource(Source):
    """A topic read as a table: a record replaces the one before of its key, a null value deletes it.

    Whether rows are stored depends on who asks for them; `old_values` tells.
    """

    table: Materialization


@node
class GlobalTableSource(Source):
    """A topic whose every partition is known to every task."""

    table: Materialization


@node
class GlobalStoreSource(GlobalTableSource):
    """A topic that a user's processor puts into a store which every task has whole; `supplier` is as in `Process`."""

    supplier: PythonFunction
    kind: StoreKind
    window_size_ms: int | None = None
    retain_duplicates: bool = False

    @property
    def store(self) -> StateStore:
        """What the processor fills."""
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
    """Call `action` (key, value); nothing follows."""

    action: PythonFunction


@node
class Merge(Node):
    """Records of several streams as they come."""

    inputs: tuple[Node, ...]
    is_copartitioned: bool = False
    """Whether records of one key must come from the same partition of all: a fold follows without a repartitioning."""


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
    """Send records to the partition of their key, by murmur2 of its bytes; ends a sub-topology.

    `topic` is the name that Kafka Streams would give the topic, without the application id. Without `partitions` the
    count is that of the sources upstream. `partitioner` is (topic, key, value, count) -> partition, or several.
    """

    topic: str
    key_serde: Serde
    value_serde: Serde
    partitions: int | None = None
    partitioner: PythonFunction | None = None
    carries_changes: bool = False
    """Whether the records are changes of a table on their way to an aggregation."""
    drops_null_keys: bool = False
    """Whether records without a key end here: nothing after it would take them."""
    copartitioned_with: Node | None = None
    """Whose sources decide the partition count, where it is not those upstream."""
    is_automatic: bool = False
    """Whether nobody asked for it by name: it may be merged with others that carry the same records."""


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
    """Whether changes of a versioned table's past count as changes of its row from here on."""


@node
class TableMapValues(OneInput):
    """`mapper` (value), or (key, value) where `has_key`; never called with a null value."""

    mapper: Function
    has_key: bool = False
    table: Materialization | None = None
    forgets_history: bool = False
    """Whether changes of a versioned table's past count as changes of its row from here on."""


@node
class TableTransformValues(OneInput):
    """`supplier` () -> object with init(context), transform(key, value), close(); values change, keys stay."""

    supplier: PythonFunction
    stores: tuple[StateStore, ...] = ()
    table: Materialization | None = None
    forgets_history: bool = False
    """Whether changes of a versioned table's past count as changes of its row from here on."""
    connected: tuple[str, ...] = ()


@node
class GroupTable(OneInput):
    """Re-key the changes of a table for an aggregation: `selector` (key, value) -> (key, value)."""

    selector: Function


# --- aggregation ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Count:
    """How many records with a value."""


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


Aggregator = Count | Reduce | Fold


@node
class Aggregate(OneInput):
    """Fold the records of each key, and of each window where there is one; gives a table."""

    aggregator: Aggregator
    table: Materialization
    window: AggregationWindow | None = None
    emit: EmitStrategy = EmitStrategy.ON_UPDATE


@node
class AggregateTable(OneInput):
    """Fold the rows of a grouped table; a change undoes the old row, then adds the new one."""

    aggregator: Aggregator
    table: Materialization


@node
class Cogroup(Node):
    """Fold several grouped streams into one aggregate; `adders[i]` (key, value, aggregate) serves `inputs[i]`."""

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
    """Records of two streams with one key, near in time."""

    window: JoinWindow
    left_store: Materialization
    right_store: Materialization
    outer_store: str | None = None
    """What the store of records that wait for a partner is called, where any may have to."""
    is_self_join: bool = False
    """Whether both sides are one stream, kept once in `left_store`."""


@node
class StreamTableJoin(Join):
    """Each record of the left stream with the row its key has in the table at that moment.

    With a grace the stream's records wait in `buffer` until stream time has passed them by that much.
    """

    grace_ms: int | None = None
    buffer: Materialization | None = None


@node
class StreamGlobalTableJoin(Join):
    """As `StreamTableJoin`, by a key that `selector` (key, value) reads from the stream's record."""

    selector: Function


@node
class TableTableJoin(Join):
    """Rows of two tables with one key."""

    table: Materialization | None = None


@node
class ForeignKeyJoin(Join):
    """Rows of the left table with the right row whose key `extractor` (value), or (key, value), finds in them."""

    extractor: Function
    extractor_has_key: bool = False
    left_table: Materialization
    """How left keys and values are written on their way to the right side."""
    right_table: Materialization
    subscriptions: str
    """The store that knows, next to the right table, which left rows want which right key."""
    subscription_topic: str
    response_topic: str
    left_partitioner: PythonFunction | None = None
    right_partitioner: PythonFunction | None = None
    table: Materialization


# --- suppression, processors, sinks --------------------------------------------------------------------------


@node
class Suppress(OneInput):
    """Hold changes of a table back until their window has closed, or for `wait_ms` of stream time.

    A full buffer ends the pipeline where `is_strict`, else it lets the oldest change go early.
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
    """Names of stores that other nodes own."""


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
