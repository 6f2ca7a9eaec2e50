"""Joins: which kind of join two relations need, and whether they may be joined at all. Start at `joined`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moldau.formats.columns import Column
from moldau.formats.format import RowFormat
from moldau.formats.types import SqlType
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.row_functions import JoinedRow, NamedExpression
from moldau.pipeline.ir.sql.expressions import ColumnAt, SqlExpression
from moldau.pipeline.ir.windows import JoinWindow
from moldau.pipeline.ksql.analysis.joins import AnalysedJoin
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.planning.internal_keys import internal_key_format
from moldau.pipeline.ksql.planning.relation import Graph, Relation
from moldau.pipeline.ksql.planning.source_plan import as_table
from moldau.pipeline.ksql.planning.steps import repartitioned, with_key
from moldau.pipeline.ksql.syntax.printer import render
from moldau.pipeline.ksql.syntax.statements import JoinKind, Within

__all__ = ["JoinSide", "check_join", "joined", "with_keys_of"]

DAY_MS = 86_400_000
SYNTHETIC_KEY = "ROWKEY"


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of a join: its rows, what it is called, and the expression that must be equal on both sides."""

    relation: Relation
    name: str
    expression: SqlExpression
    text: str
    """The expression as it was written."""
    key_name: str
    """The name of the key if this side has to get a new one."""

    @property
    def is_on_key(self) -> bool:
        """Whether the expression is the single key column of the relation."""
        columns, key = self.relation.columns, self.relation.key
        if len(key) != 1 or not isinstance(self.expression, ColumnAt):
            return False
        return columns[self.expression.position].name == key[0].name

    @property
    def type(self) -> SqlType:
        assert self.expression.type is not None
        return self.expression.type


def joined(graph: Graph, join: AnalysedJoin, left: JoinSide, right: JoinSide, key_name: str) -> Relation:
    """The rows of both sides next to each other; `key_name` is the name of the result's key."""
    check_join(join, left, right)
    if not left.relation.is_table:
        if right.relation.is_table:
            return _stream_table(graph, join, left, right, key_name)
        return _stream_stream(graph, join, left, right, key_name)
    if not right.relation.is_table:
        raise KsqlError(
            "Invalid join order: table-stream joins are not supported; only stream-table joins. "
            f"Got {_described(join, left, right)}."
        )
    return _table_table(graph, join, left, right, key_name)


def _described(join: AnalysedJoin, left: JoinSide, right: JoinSide) -> str:
    words = {
        JoinKind.INNER: "[INNER] JOIN",
        JoinKind.LEFT: "LEFT [OUTER] JOIN",
        JoinKind.RIGHT: "RIGHT [OUTER] JOIN",
        JoinKind.FULL: "[FULL] OUTER JOIN",
    }
    return f"{left.name} {words[join.kind]} {right.name}"


def check_join(join: AnalysedJoin, left: JoinSide, right: JoinSide) -> None:
    """Raise where the two sides cannot be equal because of their types."""
    if left.type != right.type:
        first, second = (left, right) if join.condition.left == join.left else (right, left)
        raise KsqlError(
            f"Invalid join condition: types don't match. Got {first.text}{{{first.type}}} = "
            f"{second.text}{{{second.type}}}."
        )


# --- keys ----------------------------------------------------------------------------------------------------


def _on_expression(graph: Graph, side: JoinSide, key_format: RowFormat | None = None) -> Relation:
    """A stream keyed by the expression of the join; `key_format` is for keys that have to be made."""
    relation = side.relation
    if side.is_on_key:
        return relation
    if relation.window is not None:
        raise _windowed_repartition()
    relation = with_key(graph, relation, [NamedExpression(side.key_name, side.expression)])
    relation = replace(relation, key_format=internal_key_format(key_format or relation.key_format, relation.key))
    return repartitioned(graph, relation, drops_null_keys=False)


def _windowed_repartition() -> KsqlError:
    return KsqlError(
        "Implicit repartitioning of windowed sources is not supported. See "
        "https://github.com/confluentinc/ksql/issues/4385."
    )


def _with_equal_keys(graph: Graph, left: JoinSide, right: JoinSide) -> tuple[Relation, Relation]:
    """Both sides under the expression of the join, with equal keys in one format and so in one partition.

    Keys of registry formats have the id of their schema in them, so that equal keys of two topics may be in different
    partitions: both sides are then repartitioned.
    """
    takes_right = right.is_on_key and not left.is_on_key
    key_format = (right if takes_right else left).relation.key_format
    has_schemas = key_format.format.uses_registry
    one, other = (
        with_keys_of(
            graph, _on_expression(graph, side, key_format), key_format, is_forced=has_schemas and side.is_on_key
        )
        for side in (left, right)
    )
    return one, other


def with_keys_of(graph: Graph, relation: Relation, key_format: RowFormat, *, is_forced: bool) -> Relation:
    """The relation with keys of that format, repartitioned where they are of another, or if that is forced."""
    wanted = internal_key_format(key_format, relation.key)
    if relation.key_format.format == wanted.format and not is_forced:
        return relation
    moved = replace(relation, key_format=wanted)
    if not relation.is_table:
        return repartitioned(graph, moved, drops_null_keys=False)
    changes = graph.add(ir.ToStream(name=graph.name("KTABLE-TOSTREAM-"), input=relation.node))
    stream = replace(moved, node=changes, is_table=False)
    return as_table(graph, repartitioned(graph, stream, drops_null_keys=True))


def _result(
    join: AnalysedJoin, node: ir.Node, left: Relation, right: Relation, key_name: str, *, is_table: bool
) -> Relation:
    key = (Column(key_name, left.key[0].type),)
    synthetic = key if join.has_synthetic_key else ()
    return Relation(
        node, is_table, left.columns + right.columns + synthetic, key, left.key_format, left.value_format, left.window
    )


def _joiner(join: AnalysedJoin, left: Relation, right: Relation) -> JoinedRow:
    return JoinedRow(
        len(left.columns),
        len(right.columns),
        has_key=join.has_synthetic_key,
        swaps_sides=join.kind is JoinKind.RIGHT,
    )


_KINDS = {
    JoinKind.INNER: ir.JoinKind.INNER,
    JoinKind.LEFT: ir.JoinKind.LEFT,
    JoinKind.RIGHT: ir.JoinKind.LEFT,
    JoinKind.FULL: ir.JoinKind.OUTER,
}
"""A RIGHT join is a LEFT join with the sides swapped."""


# --- the kinds of joins --------------------------------------------------------------------------------------


def _stream_stream(graph: Graph, join: AnalysedJoin, left: JoinSide, right: JoinSide, key_name: str) -> Relation:
    if join.within is None:
        raise KsqlError(
            "Stream-Stream joins must have a WITHIN clause specified. None was provided. To learn about how to specify "
            "a WITHIN clause with a stream-stream join, please visit: "
            "https://docs.confluent.io/current/ksql/docs/syntax-reference.html#create-stream-as-select"
        )
    _check_windows(left, right)
    one, other = _with_equal_keys(graph, left, right)
    first, second = (other, one) if join.kind is JoinKind.RIGHT else (one, other)
    window = join_window(join.within)
    kind = _KINDS[join.kind]
    name = graph.name("KSTREAM-MERGE-")
    retention_ms = window.before_ms + window.after_ms + window.grace_ms

    def store(suffix: str, relation: Relation) -> ir.Materialization:
        return replace(graph.store(f"KSTREAM-{suffix}-", relation), is_caching=False, retention_ms=retention_ms)

    holds = kind is not ir.JoinKind.INNER and window.holds_unmatched
    node = graph.add(
        ir.StreamStreamJoin(
            name=name,
            left=first.node,
            right=second.node,
            joiner=_joiner(join, one, other),
            has_key=True,
            kind=kind,
            window=window,
            left_store=store("JOINTHIS", first),
            right_store=store("JOINOTHER", second),
            outer_store=f"{name}-OUTERSHARED-store" if holds else None,
        )
    )
    return _result(join, node, one, other, key_name, is_table=False)


def join_window(within: Within) -> JoinWindow:
    """The window of a join; without a grace period it is the old form, that emits unmatched records at once."""
    before_ms, after_ms = within.before.ms, within.after.ms
    if within.grace is not None:
        return JoinWindow(before_ms=before_ms, after_ms=after_ms, grace_ms=within.grace.ms)
    grace_ms = max(DAY_MS - before_ms - after_ms, 0)
    return JoinWindow(before_ms=before_ms, after_ms=after_ms, grace_ms=grace_ms, holds_unmatched=False)


def _check_windows(left: JoinSide, right: JoinSide) -> None:
    one, other = left.relation.window, right.relation.window
    if one is None and other is None:
        return
    if one is None or other is None:
        lines = [
            f"`{side.name}` is {'not' if window is None else window.kind.name} windowed"
            for side, window in ((left, one), (right, other))
        ]
        raise KsqlError("Can not join windowed source to non-windowed source.\n" + "\n".join(lines))
    if (one.size_ms is None) != (other.size_ms is None):
        raise KsqlError(
            f"Incompatible windowed sources.\nLeft source: {one.kind.name}\nRight source: {other.kind.name}\n"
            "Session windowed sources can only be joined to other session windowed sources, and may still not result "
            "in expected behaviour as session bounds must be an exact match for the join to work\n"
            "Hopping and tumbling windowed sources can only be joined to other hopping and tumbling windowed sources"
        )
    is_same = one == other and left.relation.key_format.format == right.relation.key_format.format
    if not is_same and not left.relation.key_format.format.uses_registry:
        raise _windowed_repartition()


def _stream_table(graph: Graph, join: AnalysedJoin, left: JoinSide, right: JoinSide, key_name: str) -> Relation:
    if join.within is not None:
        raise KsqlError(
            "A window definition was provided for a Stream-Table join. These joins are not windowed. Please drop the "
            "window definition (ie. the WITHIN clause) and try to execute your join again."
        )
    if join.kind in (JoinKind.FULL, JoinKind.RIGHT):
        word = "full-outer" if join.kind is JoinKind.FULL else "right-outer"
        raise KsqlError(
            f"Invalid join type: {word} join not supported for stream-table join. Got {_described(join, left, right)}."
        )
    if not right.is_on_key:
        raise KsqlError(
            "Invalid join condition: stream-table joins require to join on the table's primary key. "
            f"Got {_condition(join)}."
        )
    _check_windows(left, right)
    stream, table = _with_equal_keys(graph, left, right)
    node = graph.add(
        ir.StreamTableJoin(
            name=graph.name("KSTREAM-JOIN-"),
            left=stream.node,
            right=table.node,
            joiner=_joiner(join, stream, table),
            has_key=True,
            kind=_KINDS[join.kind],
        )
    )
    return _result(join, node, stream, table, key_name, is_table=False)


def _condition(join: AnalysedJoin) -> str:
    return f"{render(join.condition.left)} = {render(join.condition.right)}"


def _table_table(graph: Graph, join: AnalysedJoin, left: JoinSide, right: JoinSide, key_name: str) -> Relation:
    if join.within is not None:
        raise KsqlError(
            "A window definition was provided for a Table-Table join. These joins are not windowed. Please drop the "
            "window definition (i.e. the WITHIN clause) and try to execute your Table-Table join again."
        )
    if not right.is_on_key:
        raise KsqlError(
            "Invalid join condition: table-table joins require to join on the primary key of the right input table. "
            f"Got {_condition(join)}."
        )
    one, other = _with_equal_keys(graph, left, right)
    first, second = (other, one) if join.kind is JoinKind.RIGHT else (one, other)
    node = graph.add(
        ir.TableTableJoin(
            name=graph.name("KTABLE-JOIN-"),
            left=first.node,
            right=second.node,
            joiner=_joiner(join, one, other),
            has_key=True,
            kind=_KINDS[join.kind],
        )
    )
    return _result(join, node, one, other, key_name, is_table=True)
