"""The joins of a stream: with another stream, with a table, with a global table.

`KStream.join`, `left_join` and `outer_join` call them. Start at `join_streams`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.pipeline.dsl.functions import Given, WithKey, function_of, keyed_function_of
from moldau.pipeline.dsl.graph import Part
from moldau.pipeline.dsl.options.joins import Joined, StreamJoined
from moldau.pipeline.dsl.options.named import Named
from moldau.pipeline.dsl.options.windows import JoinWindows
from moldau.pipeline.dsl.versions import check_history
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.expressions import Expression
from moldau.pipeline.ir.functions import Function
from moldau.pipeline.ir.inference import with_types
from moldau.pipeline.ir.naming import Names
from moldau.pipeline.ir.nodes import (
    JoinKind,
    Materialization,
    StreamGlobalTableJoin,
    StreamStreamJoin,
    StreamTableJoin,
)
from moldau.pipeline.ir.origin import callers_origin

if TYPE_CHECKING:
    from moldau.pipeline.dsl.kstream import KStream
    from moldau.pipeline.dsl.ktable import GlobalKTable, KTable

Options = TypeVar("Options", StreamJoined, Joined)

__all__ = ["StreamJoin", "join_global_table", "join_streams", "join_table", "typed_joiner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoin:
    """The arguments of a join call; which of them are allowed depends on the type of the other side."""

    kind: JoinKind
    joiner: Given | WithKey
    windows: Any = None
    key_selector: Given | None = None
    joined: Any = None

    @property
    def method(self) -> str:
        return METHOD[self.kind]

    def options(self, wanted: type[Options], what: str) -> Options:
        """The options of this join as `wanted`; a plain name, or `Named`, becomes options with this name."""
        match self.joined:
            case None:
                return wanted()
            case str():
                return wanted.as_(self.joined)
            case Named():
                return wanted(name=self.joined.name)
            case given if isinstance(given, wanted):
                return given
            case _:
                raise TopologyError(
                    f"the join of {what} takes {wanted.__name__}, not {type(self.joined).__name__}", callers_origin()
                )

    def without_windows(self, what: str) -> None:
        """Raise `TopologyError` for windows and for an outer join, which joins with a table do not support."""
        if self.windows is not None:
            raise TopologyError(f"the join of {what} has no windows", callers_origin())
        if self.kind is JoinKind.OUTER:
            raise TopologyError(f"{what} have join and left_join, but no outer_join", callers_origin())


METHOD = {JoinKind.INNER: "join", JoinKind.LEFT: "left_join", JoinKind.OUTER: "outer_join"}


def join_streams(left: KStream, right: KStream, join: StreamJoin) -> KStream:
    """Join two streams: pairs of records with the same key whose timestamps are within the join window."""
    if not isinstance(join.windows, JoinWindows):
        raise TopologyError(
            f"{join.method} of two streams needs JoinWindows, such as "
            f"JoinWindows.of_time_difference_with_no_grace(timedelta(minutes=5)), not {join.windows!r}",
            callers_origin(),
        )
    options = join.options(StreamJoined, "two streams")
    name = options.name
    keys, left_values = left.keys.or_of(options.key_serde), left.values.or_of(options.value_serde)
    if left.has_new_keys:
        left = left.repartitioned_for_join(left.name if name is None else f"{name}-left", keys, left_values)
    right_keys, right_values = right.keys.or_of(options.key_serde), right.values.or_of(options.other_value_serde)
    if right.has_new_keys:
        right = right.repartitioned_for_join(right.name if name is None else f"{name}-right", right_keys, right_values)
    node = _stream_join_node(left, right, join, join.windows, options)
    keys = keys if keys == right_keys else Part.of(options.key_serde)
    return _result(left, left.graph.add(node), keys, node.joiner)


def _stream_join_node(
    left: KStream, right: KStream, join: StreamJoin, windows: JoinWindows, options: StreamJoined
) -> StreamStreamJoin:
    names = _StreamJoinNames.of(left.graph.names, join.kind, options)
    left_values, right_values = left.values.or_of(options.value_serde), right.values.or_of(options.other_value_serde)
    keys = left.keys.or_of(options.key_serde)
    function, has_key = typed_joiner(join.joiner, join.method, keys, left_values, right_values)

    def store(name: str, values: Part) -> Materialization:
        return Materialization(
            store=left.graph.claim_store(name),
            key_serde=keys.key_serde(),
            value_serde=values.value_serde(),
            is_queryable=options.store_name is not None,
            is_caching=False,
            is_logging=options.is_logging,
            retention_ms=windows.size_ms + windows.grace_ms,
        )

    return StreamStreamJoin(
        name=names.parts[-1],
        origin=callers_origin(),
        parts=names.parts,
        left=left.node,
        right=right.node,
        joiner=function,
        has_key=has_key,
        kind=join.kind,
        window=windows.ir_window,
        left_store=store(names.left_store, left_values),
        right_store=store(names.right_store, right_values),
        outer_store=names.outer_store if join.kind is not JoinKind.INNER and windows.holds_unmatched else None,
    )


@dataclass(frozen=True, slots=True)
class _StreamJoinNames:
    """The names that Kafka Streams gives the five processors of a stream-stream join, and its stores."""

    parts: tuple[str, ...]
    left_store: str
    right_store: str
    outer_store: str

    @classmethod
    def of(cls, names: Names, kind: JoinKind, options: StreamJoined) -> _StreamJoinNames:
        name, stores = options.name, options.store_name
        is_left, is_right = kind is not JoinKind.INNER, kind is JoinKind.OUTER
        this_suffix = "-outer-this-join" if is_right else "-this-join"
        other_suffix = "-outer-other-join" if is_left else "-other-join"
        windowed = [
            names.suffixed_or_next(name, f"-{side}-windowed", "KSTREAM-WINDOWED-") for side in ("this", "other")
        ]
        this = names.processor("KSTREAM-OUTERTHIS-" if is_right else "KSTREAM-JOINTHIS-")
        other = names.processor("KSTREAM-OUTEROTHER-" if is_left else "KSTREAM-JOINOTHER-")
        merge = names.suffixed_or_next(name, "-merge", "KSTREAM-MERGE-")
        joins = (this, other) if name is None else (name + this_suffix, name + other_suffix)
        outer_suffix = "-outer-shared-join-store" if is_right else "-left-shared-join-store"
        return cls(
            (*windowed, *joins, merge),
            f"{this if stores is None else stores + this_suffix}-store",
            f"{other if stores is None else stores + other_suffix}-store",
            f"KSTREAM-OUTERSHARED-{this[-10:]}-store" if stores is None else stores + outer_suffix,
        )


def join_table(stream: KStream, table: KTable, join: StreamJoin) -> KStream:
    """Join each record of the stream with the row that its key has in the table at that time."""
    join.without_windows("a stream and a table")
    options = join.options(Joined, "a stream and a table")
    _same_graph(stream, table)
    keys, values = stream.keys.or_of(options.key_serde), stream.values.or_of(options.left_value_serde)
    if stream.has_new_keys:
        stream = stream.repartitioned_for_join(options.name or stream.name, keys, values)
    prefix = "KSTREAM-LEFTJOIN-" if join.kind is JoinKind.LEFT else "KSTREAM-JOIN-"
    name = stream.graph.names.given_or_next(options.name, prefix)
    function, has_key = typed_joiner(join.joiner, join.method, keys, values, table.values)
    buffer = None
    if options.grace_ms is not None:
        check_history(table.node, options.grace_ms)
        buffer = Materialization(
            store=stream.graph.claim_store(f"{name}-Buffer"),
            key_serde=keys.key_serde(),
            value_serde=values.value_serde(),
            is_caching=False,
        )
    node = StreamTableJoin(
        name=name,
        origin=callers_origin(),
        left=stream.node,
        right=table.node,
        joiner=function,
        has_key=has_key,
        kind=join.kind,
        grace_ms=options.grace_ms,
        buffer=buffer,
    )
    return _result(stream, stream.graph.add(node), keys, function)


def join_global_table(stream: KStream, table: GlobalKTable, join: StreamJoin) -> KStream:
    """Join each record of the stream with the global table's row whose key `join.key_selector` returns."""
    join.without_windows("a stream and a global table")
    options = join.options(Joined, "a stream and a global table")
    if join.key_selector is None:
        raise TopologyError(
            f"{join.method} with a global table needs key_selector, a function (key, value) that returns its key",
            callers_origin(),
        )
    _same_graph(stream, table)
    function, has_key = typed_joiner(join.joiner, join.method, stream.keys, stream.values, table.values)
    node = StreamGlobalTableJoin(
        name=stream.graph.names.given_or_next(options.name, "KSTREAM-LEFTJOIN-"),
        origin=callers_origin(),
        left=stream.node,
        right=table.node,
        joiner=function,
        has_key=has_key,
        kind=join.kind,
        selector=stream.with_types(function_of(join.key_selector, "key_selector", "key", "value")),
    )
    stream.graph.add(node)
    result = stream.branch_of(node)
    result.values = Part.made_by(function)
    return result


def typed_joiner(joiner: Given | WithKey, what: str, keys: Part, left: Part, right: Part) -> tuple[Function, bool]:
    """The joiner as a node's function with its types, and whether it also gets the key."""
    function, has_key = keyed_function_of(joiner, what, "left", "right")
    if not isinstance(function, Expression):
        return function, has_key
    return with_types(function, {"key": keys.type, "left": left.type, "right": right.type}), has_key


def _result(stream: KStream, node: Any, keys: Part, joiner: Function) -> KStream:
    result = stream.branch_of(node)
    result.keys, result.values, result.has_new_keys = keys, Part.made_by(joiner), False
    return result


def _same_graph(stream: KStream, table: KTable | GlobalKTable) -> None:
    if stream.graph is not table.graph:
        raise TopologyError("both sides of a join must come from the same StreamsBuilder", callers_origin())
