"""What a query says: its sources, joins, columns, groups, with the source of every column name.

Types are not looked at, except where a name depends on one. Start at `analyse`.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.pipeline.ksql.analysis.expression_tree import column_references, expressions_within
from moldau.pipeline.ksql.analysis.functions import check_exists, is_table_function
from moldau.pipeline.ksql.analysis.grouping import Grouping, aggregate_calls, analysed_grouping
from moldau.pipeline.ksql.analysis.joins import AnalysedJoin, analysed_joins, check_sources_differ
from moldau.pipeline.ksql.analysis.name_resolution import AliasedSource, SourcesInQuery, located
from moldau.pipeline.ksql.analysis.select_items import ColumnNames, SelectedColumn, selected_columns
from moldau.pipeline.ksql.analysis.time_literals import with_times
from moldau.pipeline.ksql.catalogue.catalogue import Catalogue, similar_names
from moldau.pipeline.ksql.catalogue.sources import WINDOW_BOUNDS
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import Case, Expression, FunctionCall, NullLiteral
from moldau.pipeline.ksql.syntax.printer import render
from moldau.pipeline.ksql.syntax.statements import Emit, Query, SourceReference, Window

__all__ = ["QueryAnalysis", "analyse"]

SYNTHETIC_KEY = "ROWKEY"


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """A query with every name resolved."""

    sources: SourcesInQuery
    joins: tuple[AnalysedJoin, ...]
    select: tuple[SelectedColumn, ...]
    where: Expression | None
    partition_by: tuple[Expression, ...] | None
    grouping: Grouping | None
    having: Expression | None
    window: Window | None
    is_final: bool
    names: ColumnNames
    table_functions: tuple[FunctionCall, ...] = ()

    @property
    def removes_key(self) -> bool:
        """Whether the query says PARTITION BY NULL."""
        return self.partition_by is not None and any(isinstance(one, NullLiteral) for one in self.partition_by)


def analyse(query: Query, catalogue: Catalogue, *, is_persistent: bool = True) -> QueryAnalysis:
    """The meaning of a query; raises `KsqlError` for names that cannot be resolved and clauses that do not fit."""
    plain = SourcesInQuery(tuple(_source(catalogue, one) for one in query.sources))
    check_sources_differ(plain.sources)
    joins = analysed_joins(query.joins, plain)
    sources = plain
    if joins and joins[-1].has_synthetic_key:
        sources = SourcesInQuery(plain.sources, [_free_name(plain)])
    # The bounds of an aggregation's windows have no source, so in a join no name resolves to them.
    is_windowed = query.window is not None and not sources.is_join and not sources.sources[0].source.is_table
    names = ColumnNames(sources)
    partition_by = _qualified_all(query.partition_by, sources)
    for expression in partition_by or ():
        _check_partition_by(expression, sources)
    select = _select(query, sources, names, partition_by, is_persistent=is_persistent, is_windowed=is_windowed)
    where = None if query.where is None else with_times(sources.qualified(query.where))
    if where is not None:
        _check_where(where, sources, is_windowed=is_windowed)
    group_by = _qualified_all(query.group_by, sources, is_windowed=is_windowed)
    having = None
    if query.having is not None:
        having = with_times(sources.qualified(query.having, is_windowed_aggregation=is_windowed))
    table_functions = _table_functions(select, has_groups=query.group_by is not None)
    _check_functions(select)
    _check_clauses(query)
    _check_columns(sources, select, group_by, having, is_windowed=is_windowed)
    needs_groups = query.group_by is None and is_persistent
    try:
        grouping = analysed_grouping(
            group_by, select, having, sources, is_windowed=is_windowed, is_table=_gives_table(sources)
        )
    except KsqlError as error:
        if not needs_groups:
            raise
        raise KsqlError(f"{error}\n{_example_with_groups(sources, select)}") from None
    if grouping is not None and needs_groups:
        name = grouping.aggregates[0].name
        example = _example_with_groups(sources, select)
        raise KsqlError(f"Use of aggregate function {name} requires a GROUP BY clause. {example}")
    return QueryAnalysis(
        sources,
        joins,
        select,
        where,
        partition_by,
        grouping,
        having,
        query.window,
        query.emit is Emit.FINAL,
        names,
        table_functions,
    )


def _check_where(where: Expression, sources: SourcesInQuery, *, is_windowed: bool) -> None:
    """Raise for columns that are not there: WHERE comes before the windows of an aggregation."""
    bounds = {column.name for column in WINDOW_BOUNDS} if is_windowed else set()
    for reference in column_references(where):
        if reference.name in bounds and not sources.aliases_with(reference.name):
            raise KsqlError(
                f"Error in WHERE expression: Unknown column {reference.name}. The bounds of a window are not known "
                "before the aggregation; use them in SELECT."
            )
    sources.check_columns(where, "WHERE")


def _example_with_groups(sources: SourcesInQuery, select: tuple[SelectedColumn, ...]) -> str:
    """For a query that aggregates without groups: one that has them."""
    expressions = [column.expression for column in select]
    source = sources.sources[0].source
    keys = [column.name for column in source.schema.key] or [source.schema.value[0].name]
    groups = [render(sources.in_row(one)) for one in expressions if not any(aggregate_calls(one))] or keys
    aggregates = [render(sources.in_row(one)) for one in expressions if any(aggregate_calls(one))]
    items = ", ".join([*groups, *aggregates])
    return f"For example: SELECT {items} FROM {source.name} GROUP BY {', '.join(groups)}"


def _source(catalogue: Catalogue, reference: SourceReference) -> AliasedSource:
    source = catalogue.sources.get(reference.name)
    if source is None:
        hint = similar_names(reference.name, catalogue.sources)
        raise KsqlError(located(reference.location, f"Source `{reference.name}` does not exist.{hint}"))
    return AliasedSource(reference.alias, source)


def _free_name(sources: SourcesInQuery) -> str:
    name, number = SYNTHETIC_KEY, 0
    used = {column for columns in sources.columns.values() for column in columns}
    while name in used:
        number += 1
        name = f"{SYNTHETIC_KEY}_{number}"
    return name


def _qualified_all(
    expressions: tuple[Expression, ...] | None, sources: SourcesInQuery, *, is_windowed: bool = False
) -> tuple[Expression, ...] | None:
    if expressions is None:
        return None
    return tuple(sources.qualified(one, is_windowed_aggregation=is_windowed) for one in expressions)


def _gives_table(sources: SourcesInQuery) -> bool:
    return sources.sources[0].source.is_table


# --- SELECT --------------------------------------------------------------------------------------------------


def _select(
    query: Query,
    sources: SourcesInQuery,
    names: ColumnNames,
    partition_by: tuple[Expression, ...] | None,
    *,
    is_persistent: bool,
    is_windowed: bool,
) -> tuple[SelectedColumn, ...]:
    select = selected_columns(
        query.select,
        sources,
        names,
        partition_by,
        is_persistent=is_persistent,
        is_windowed_aggregation=is_windowed,
    )
    return tuple(
        SelectedColumn(one.name, with_times(one.expression), one.is_named_by_user, one.location) for one in select
    )


def _check_functions(select: tuple[SelectedColumn, ...]) -> None:
    """Raise for a function that does not exist; whether its arguments fit is found when it is typed."""
    for column in select:
        for part in expressions_within(column.expression):
            if isinstance(part, FunctionCall):
                check_exists(part.name)


def _table_functions(select: tuple[SelectedColumn, ...], *, has_groups: bool) -> tuple[FunctionCall, ...]:
    """The calls of table functions; raises where they cannot be."""
    found: dict[FunctionCall, None] = {}
    for column in select:
        for part in expressions_within(column.expression):
            if isinstance(part, FunctionCall) and is_table_function(part.name):
                inner = [
                    each
                    for argument in part.arguments
                    for each in expressions_within(argument)
                    if isinstance(each, FunctionCall) and is_table_function(each.name)
                ]
                if inner:
                    raise KsqlError(f"Table functions cannot be nested: {inner[0].name} is an argument of {part.name}")
                found[part] = None
            elif isinstance(part, Case):
                for each in expressions_within(part):
                    if isinstance(each, FunctionCall) and is_table_function(each.name):
                        raise KsqlError(f"Table functions cannot be used in CASE: {each.name}")
    if found and has_groups:
        raise KsqlError("Table functions cannot be used with aggregations.")
    return tuple(found)


# --- checks --------------------------------------------------------------------------------------------------


def _check_partition_by(expression: Expression, sources: SourcesInQuery) -> None:
    for reference in column_references(expression):
        hint = f" '{reference.name}' must be a column in the source schema since PARTITION BY is applied on the input."
        sources.check_columns(reference, "PARTITION BY", hint)
    for call in aggregate_calls(expression):
        raise KsqlError(f"PARTITION BY does not support aggregate functions: {call.name} is an aggregate function.")


def _check_clauses(query: Query) -> None:
    if query.window is not None and query.group_by is None and not _has_aggregates(query):
        raise KsqlError("WINDOW clause requires a GROUP BY clause.")
    if query.group_by is not None and query.partition_by is not None:
        raise KsqlError(
            "Only one of PARTITION BY and GROUP BY can be used: GROUP BY alone decides the key of its result."
        )
    if query.having is not None and query.group_by is None:
        raise KsqlError("HAVING clause requires a GROUP BY clause.")
    if query.where is not None:
        for call in aggregate_calls(query.where):
            raise KsqlError(f"WHERE does not support aggregate functions: {call.name} is an aggregate function.")
    if query.emit is Emit.FINAL and query.window is None:
        raise KsqlError("EMIT FINAL is only supported for windowed aggregations.")


def _has_aggregates(query: Query) -> bool:
    return any(
        True
        for item in query.select
        if isinstance(expression := getattr(item, "expression", None), Expression)
        for _ in aggregate_calls(expression)
    )


def _check_columns(
    sources: SourcesInQuery,
    select: tuple[SelectedColumn, ...],
    group_by: tuple[Expression, ...] | None,
    having: Expression | None,
    *,
    is_windowed: bool,
) -> None:
    bounds = {"WINDOWSTART", "WINDOWEND"} if is_windowed else set()

    def check(expression: Expression, clause: str) -> None:
        for reference in column_references(expression):
            if not (reference.source is None and reference.name in bounds):
                sources.check_columns(reference, clause)

    for column in select:
        check(column.expression, "SELECT")
    for expression in group_by or ():
        check(expression, "GROUP BY")
    if having is not None:
        check(having, "HAVING")
