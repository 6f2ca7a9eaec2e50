"""A query as a pipeline: the steps of ksqlDB's plan, each a few nodes. Start at `plan_rows`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from moldau.formats.checks import check_key_types
from moldau.formats.columns import Column
from moldau.formats.types import INTEGER
from moldau.pipeline.ir.row_functions import NamedExpression
from moldau.pipeline.ir.sql.expressions import Literal, SqlExpression
from moldau.pipeline.ksql.analysis.expression_tree import rewritten
from moldau.pipeline.ksql.analysis.grouping import Grouping
from moldau.pipeline.ksql.analysis.joins import AnalysedJoin
from moldau.pipeline.ksql.analysis.projection import KeyPart, Projection, missing_keys, split_projection
from moldau.pipeline.ksql.analysis.query_analysis import QueryAnalysis
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.planning.aggregation import AggregationPlan, aggregate_name, aggregated
from moldau.pipeline.ksql.planning.foreign_keys import foreign_key_joined, is_foreign_key_join
from moldau.pipeline.ksql.planning.internal_keys import internal_key_format
from moldau.pipeline.ksql.planning.joins import JoinSide, joined
from moldau.pipeline.ksql.planning.relation import Graph, Relation
from moldau.pipeline.ksql.planning.source_plan import source_relation
from moldau.pipeline.ksql.planning.steps import columns_of, exploded, filtered, projected, with_key
from moldau.pipeline.ksql.syntax.expressions import ColumnReference, Expression, FunctionCall
from moldau.pipeline.ksql.syntax.printer import render
from moldau.pipeline.ksql.typing.calls import typed_aggregate, typed_table_function
from moldau.pipeline.ksql.typing.scope import RowScope
from moldau.pipeline.ksql.typing.typing import typed_condition, typed_expression, typed_select

__all__ = ["PlannedRows", "plan_flat_rows", "plan_rows"]

ALL_ROWS: Final = NamedExpression("KSQL_GROUP_0", Literal(INTEGER, 0))
"""The key of the one group that aggregates without GROUP BY have."""


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """The result of a query: rows of value columns under keys of key columns."""

    relation: Relation
    key: tuple[Column, ...]
    """The key columns by the names of the result."""


class _Steps:
    """Plans one query, step by step."""

    def __init__(self, analysis: QueryAnalysis, graph: Graph, settings: Mapping[str, object]) -> None:
        self.analysis = analysis
        self.graph = graph
        self.settings = settings
        self.key: list[KeyPart] = []
        self.missing = _key_column_missing
        self.foreign_keys_of: str | None = None

    # --- sources and joins

    def rows(self) -> Relation:
        """The rows of FROM."""
        sources = self.analysis.sources
        is_strict = str(self.settings.get("ksql.timestamp.throw.on.invalid", "false")).lower() == "true"
        relations = [source_relation(self.graph, one, sources, is_strict=is_strict) for one in sources.sources]
        relation = relations[0]
        first = sources.sources[0]
        if not self.analysis.joins:
            self.key = [KeyPart((ColumnReference(one.name, first.alias),)) for one in first.source.schema.key]
            return relation
        for number, join in enumerate(self.analysis.joins):
            relation = self._joined(join, relation, relations[number + 1], number)
        return relation

    def _joined(self, join: AnalysedJoin, left: Relation, right: Relation, number: int) -> Relation:
        sources = self.analysis.sources
        is_last = number == len(self.analysis.joins) - 1
        left_name = sources.sources[0].alias if number == 0 else join.left_alias
        one = self._side(left, left_name, join.left, number)
        other = self._side(right, join.source.alias, join.right, number)
        if is_foreign_key_join(one, other):
            if number:
                raise KsqlError(
                    "Invalid join condition: foreign-key table-table joins are not supported as part of n-way joins. "
                    f"Got {render(join.condition.left)} = {render(join.condition.right)}."
                )
            first = sources.sources[0]
            self.key = [KeyPart((ColumnReference(one.name, first.alias),)) for one in first.source.schema.key]
            self.foreign_keys_of = first.alias
            return foreign_key_joined(self.graph, join, one, other)
        self._check_partitions(join, one, other)
        if join.has_synthetic_key:
            name = next(iter(sources.synthetic)) if is_last else f"KSQL_INTERNAL_ROWKEY_{number}"
            self.key = [KeyPart((ColumnReference(name),))]
        else:
            viable = join.viable_keys[0]
            name = sources.row_name(viable.source, viable.name)
            self.key = [KeyPart(join.viable_keys)]
        self.foreign_keys_of = None
        self.missing = _join_key_missing
        return joined(self.graph, join, one, other, name)

    def _side(self, relation: Relation, name: str, written: Expression, number: int) -> JoinSide:
        expression = typed_expression(self.analysis.sources.in_row(written), RowScope(relation.columns, "JOIN ON"))
        return JoinSide(relation, name, expression, render(written), self._key_name(written, number))

    def _key_name(self, written: Expression, number: int) -> str:
        if isinstance(written, ColumnReference):
            return self.analysis.sources.row_name(written.source, written.name)
        return f"KSQL_INTERNAL_JOIN_KEY_{number}"

    def _check_partitions(self, join: AnalysedJoin, left: JoinSide, right: JoinSide) -> None:
        """Raise where records with equal keys are in different partitions."""
        first = self.analysis.sources.named(join.left_alias).source
        second = join.source.source
        if left.is_on_key and right.is_on_key and first.partitions != second.partitions:
            raise KsqlError(
                f"Can't join `{left.name}` with `{right.name}` since the number of partitions don't match. "
                f"`{left.name}` partitions = {first.partitions}; `{right.name}` partitions = {second.partitions}. "
                "Please repartition either one so that the number of partitions match."
            )

    # --- the other clauses

    def where(self, relation: Relation) -> Relation:
        if self.analysis.where is None:
            return relation
        written = self.analysis.sources.in_row(self.analysis.where)
        return filtered(self.graph, relation, typed_condition(written, self.scope(relation), "WHERE"), "WHERE")

    def partition_by(self, relation: Relation) -> Relation:
        expressions = self.analysis.partition_by
        if expressions is None:
            return relation
        if relation.is_table:
            raise KsqlError("PARTITION BY is only supported on streams.")
        if relation.window is not None:
            raise KsqlError("Unsupported: PARTITION BY on a windowed source.")
        self.missing = _partition_missing
        if self.analysis.removes_key:
            self.key = []
            return replace(with_key(self.graph, relation, []), key=())
        self.key = [KeyPart((one,)) for one in expressions]
        named = [NamedExpression(self._name_of(one), self._typed(one, relation)) for one in expressions]
        check_key_types(columns_of(named))
        keyed = with_key(self.graph, relation, named)
        return replace(keyed, key_format=relation.key_format)

    def _typed(self, written: Expression, relation: Relation) -> SqlExpression:
        return typed_select(self.analysis.sources.in_row(written), self.scope(relation))

    def _name_of(self, expression: Expression) -> str:
        """The name of a key column: that of the select item that is the same, its own, or a generated one."""
        for column in self.analysis.select:
            if column.expression == expression:
                return column.name
        if isinstance(expression, ColumnReference):
            return self.analysis.sources.row_name(expression.source, expression.name)
        return self.analysis.names.generated()

    def table_functions(self, relation: Relation) -> tuple[Relation, dict[Expression, str]]:
        """The rows with the elements of table functions, and the columns that these are in."""
        calls = self.analysis.table_functions
        if not calls:
            return relation, {}
        if relation.is_table:
            raise KsqlError("Table source is not supported with table functions")
        scope = self.scope(relation)
        typed = [typed_table_function(self._in_row_call(call), scope) for call in calls]
        names = [f"KSQL_SYNTH_{number}" for number in range(len(calls))]
        return exploded(self.graph, relation, typed, names), dict(zip(calls, names, strict=True))

    def _in_row_call(self, call: FunctionCall) -> FunctionCall:
        renamed = self.analysis.sources.in_row(call)
        assert isinstance(renamed, FunctionCall)
        return renamed

    def aggregation(self, relation: Relation, grouping: Grouping) -> tuple[Relation, dict[Expression, str]]:
        """The groups as a table, and the columns in which grouping expressions and aggregates are."""
        scope = self.scope(relation)
        if relation.is_table and self.analysis.window is not None:
            raise KsqlError("WINDOW clause is only supported on streams: a table has one row per key at any time.")
        keys = [NamedExpression(self._name_of(one), self._typed(one, relation)) for one in grouping.expressions]
        names = [f"KSQL_GROUP_{number}" for number in range(len(keys))]
        calls = tuple(
            typed_aggregate(self._in_row_call(call), scope, settings=self.settings) for call in grouping.aggregates
        )
        renamed = tuple(replace(key, name=name) for key, name in zip(keys, names, strict=True)) or (ALL_ROWS,)
        check_key_types(columns_of(keys))
        plan = AggregationPlan(
            renamed, calls, self.analysis.window, self.analysis.is_final, _function_settings(self.settings)
        )
        result = aggregated(self.graph, _with_internal_keys(relation, renamed), plan)
        result = replace(result, key_format=relation.key_format)
        columns: dict[Expression, str] = dict(zip(grouping.expressions, names, strict=True))
        columns |= {call: aggregate_name(number) for number, call in enumerate(grouping.aggregates)}
        self.key = [KeyPart((one,)) for one in grouping.expressions]
        self.missing = _grouping_missing
        return result, columns

    def having(self, relation: Relation, columns: dict[Expression, str]) -> Relation:
        if self.analysis.having is None:
            return relation
        written = self.substituted(self.analysis.having, columns)
        try:
            condition = typed_condition(written, self.scope(relation), "HAVING")
        except KsqlError as error:
            raise KsqlError(self._with_calls(str(error), columns)) from None
        return filtered(self.graph, relation, condition, "HAVING")

    def _with_calls(self, message: str, columns: dict[Expression, str]) -> str:
        """A message with calls as they were written instead of the columns that hold their results."""
        for expression, name in reversed(list(columns.items())):
            message = message.replace(name, render(self.analysis.sources.in_row(expression)))
        return message

    def substituted(self, expression: Expression, columns: Mapping[Expression, str]) -> Expression:
        """An expression over rows in which some of its parts are columns already."""

        def change(part: Expression) -> Expression | None:
            name = columns.get(part)
            return None if name is None else ColumnReference(name, location=part.location)

        return self.analysis.sources.in_row(rewritten(expression, change))

    def scope(self, relation: Relation) -> RowScope:
        return RowScope(relation.columns)


def plan_rows(analysis: QueryAnalysis, graph: Graph, settings: Mapping[str, object], *, sink: str) -> PlannedRows:
    """The rows of a persistent query, split into key and value; `sink` is the name that messages give the result."""
    steps = _Steps(analysis, graph, settings)
    relation = steps.where(steps.rows())
    _check_sources(analysis)
    relation = steps.partition_by(relation)
    if analysis.grouping is not None and not analysis.grouping.expressions:
        raise KsqlError("Aggregates need a GROUP BY.")
    relation, columns = _grouped_or_exploded(steps, relation)
    return _projected(steps, relation, columns, sink)


def plan_flat_rows(analysis: QueryAnalysis, graph: Graph, settings: Mapping[str, object]) -> Relation:
    """The rows of a query that answers a client: columns as they are selected, those of the key among them or not."""
    steps = _Steps(analysis, graph, settings)
    relation, columns = _grouped_or_exploded(steps, steps.where(steps.rows()))
    typed = _typed_columns(steps, relation, columns)
    return projected(graph, relation, [NamedExpression(name, made) for name, made in typed.items()])


def _grouped_or_exploded(steps: _Steps, relation: Relation) -> tuple[Relation, dict[Expression, str]]:
    grouping = steps.analysis.grouping
    if grouping is None:
        return steps.table_functions(relation)
    relation, columns = steps.aggregation(relation, grouping)
    return steps.having(relation, columns), columns


def _typed_columns(steps: _Steps, relation: Relation, columns: dict[Expression, str]) -> dict[str, SqlExpression]:
    scope = steps.scope(relation)
    typed: dict[str, SqlExpression] = {}
    for column in steps.analysis.select:
        try:
            made = typed_select(steps.substituted(column.expression, columns), scope)
        except KsqlError as error:
            raise KsqlError(steps._with_calls(str(error), columns)) from None
        if column.name in typed:
            raise KsqlError(f"Duplicate value columns found in schema: `{column.name}` {made.type}")
        typed[column.name] = made
    return typed


def _projected(steps: _Steps, relation: Relation, columns: dict[Expression, str], sink: str) -> PlannedRows:
    typed = _typed_columns(steps, relation, columns)
    projection = split_projection(steps.analysis.select, steps.key)
    if projection is None:
        raise steps.missing(steps, sink)
    return _result(steps.graph, relation, projection, typed)


def _result(
    graph: Graph, relation: Relation, projection: Projection, typed: Mapping[str, SqlExpression]
) -> PlannedRows:
    value = [NamedExpression(column.name, typed[column.name]) for column in projection.value]
    key = tuple(Column(column.name, own.type) for column, own in zip(projection.key, relation.key, strict=True))
    return PlannedRows(projected(graph, relation, value), key)


def _with_internal_keys(relation: Relation, key: Sequence[NamedExpression]) -> Relation:
    return replace(relation, key_format=internal_key_format(relation.key_format, columns_of(key)))


def _function_settings(settings: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    return tuple((name, value) for name, value in settings.items() if name.startswith("ksql.functions."))


def _check_sources(analysis: QueryAnalysis) -> None:
    """Raise for sources that a persistent query cannot use in this way."""
    sources = [one.source for one in analysis.sources.sources]
    if any(source.is_table and source.window is not None for source in sources):
        raise KsqlError("KSQL does not support persistent queries on windowed tables.")
    word = "GROUP BY" if analysis.grouping is not None else "JOIN" if analysis.joins else ""
    refused = [source for source in sources if not source.value_format.format.supports_grouping]
    if word and refused:
        names = ", ".join(source.name for source in refused)
        raise KsqlError(
            f"Source(s) {names} are using the '{refused[0].value_format.format.name}' value format. "
            f"This format does not yet support {word}."
        )


# --- what is missing from a projection ------------------------------------------------------------------------


def _key_column_missing(steps: _Steps, sink: str) -> KsqlError:
    names = [render(steps.analysis.sources.in_row(part.expressions[0])) for part in steps.key]
    if steps.foreign_keys_of is not None:
        return _foreign_key_missing(steps)
    return missing_keys(sink, "key column", names, needs_all=True)


def _foreign_key_missing(steps: _Steps) -> KsqlError:
    selected = {column.expression for column in steps.analysis.select}
    missing = [
        f"`{reference.name}`"
        for part in steps.key
        if isinstance(reference := part.expressions[0], ColumnReference) and reference not in selected
    ]
    plural = "s" if len(missing) > 1 else ""
    return KsqlError(
        f"Primary key column{plural} missing in projection. For foreign-key table-table joins, the projection must "
        f"include all primary key columns from the left input table (`{steps.foreign_keys_of}`). "
        f"Missing column{plural}: {', '.join(missing)}."
    )


def _join_key_missing(steps: _Steps, sink: str) -> KsqlError:
    names = [render(one) for one in steps.key[0].expressions]
    note = ""
    if steps.analysis.joins[-1].has_synthetic_key:
        note = (
            f"\n{names[0]} was added as a synthetic key column because the join criteria did not match any source "
            "column. This expression must be included in the projection and may be aliased."
        )
    return missing_keys(sink, "join expression", names, needs_all=False, note=note)


def _partition_missing(steps: _Steps, sink: str) -> KsqlError:
    names = [render(part.expressions[0]) for part in steps.key]
    return missing_keys(sink, "partitioning expression", names, needs_all=True)


def _grouping_missing(steps: _Steps, sink: str) -> KsqlError:
    selected = {column.expression for column in steps.analysis.select}
    missing = [part.expressions[0] for part in steps.key if part.expressions[0] not in selected]
    names = [render(steps.analysis.sources.in_row(one)) for one in missing]
    return missing_keys(sink, "grouping expression", names, needs_all=True)
