"""The columns that a SELECT gives: `*` expanded, and a name for every item. Start at `selected_columns`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moldau.formats.columns import Column
from moldau.formats.types import StructType
from moldau.pipeline.ksql.analysis.name_resolution import AliasedSource, SourcesInQuery, located
from moldau.pipeline.ksql.catalogue.sources import SYSTEM_COLUMNS, WINDOW_BOUNDS
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import ColumnReference, Dereference, Expression, Location, NullLiteral
from moldau.pipeline.ksql.syntax.statements import SelectAll, SelectExpression, SelectItem, SelectStructAll
from moldau.pipeline.ksql.typing.scope import RowScope
from moldau.pipeline.ksql.typing.typing import typed_expression

__all__ = ["ColumnNames", "SelectedColumn", "selected_columns"]

GENERATED = "KSQL_COL_"


@dataclass(frozen=True, slots=True)
class SelectedColumn:
    """An item of a SELECT: its expression, with the source of every column, and its name in the result."""

    name: str
    expression: Expression
    is_named_by_user: bool = False
    location: Location | None = None


class ColumnNames:
    """Generates names for items that have none, beside the names that the sources use."""

    def __init__(self, sources: SourcesInQuery) -> None:
        self._used = {name for columns in sources.columns.values() for name in columns}
        self._number = 0

    def generated(self) -> str:
        """The next free `KSQL_COL_n`."""
        while (name := f"{GENERATED}{self._number}") in self._used:
            self._number += 1
        self._number += 1
        return name

    def field(self, name: str) -> str:
        """The name of a field of a struct as a column: its own, with a number if that is used already."""
        chosen, number = name, 0
        while chosen in self._used:
            number += 1
            chosen = f"{name}_{number}"
        self._used.add(chosen)
        return chosen


def selected_columns(
    items: Iterable[SelectItem],
    sources: SourcesInQuery,
    names: ColumnNames,
    partition_by: tuple[Expression, ...] | None = None,
    *,
    is_persistent: bool,
    is_windowed_aggregation: bool,
) -> tuple[SelectedColumn, ...]:
    """The columns of a SELECT, in order, each with a qualified expression."""
    found: list[SelectedColumn] = []
    for item in items:
        match item:
            case SelectAll():
                if partition_by is None:
                    found += _all_of(item, sources, is_persistent=is_persistent)
                else:
                    found += _all_rekeyed(item, partition_by, sources, names)
            case SelectStructAll():
                found += _fields_of(item, sources)
            case SelectExpression():
                expression = sources.qualified(item.expression, is_windowed_aggregation=is_windowed_aggregation)
                column = _named(item, expression, sources, names)
                if is_persistent and column.name in SYSTEM_COLUMNS:
                    raise KsqlError(
                        f"Reserved column name in select: `{column.name}`. Please remove or alias the column."
                    )
                found.append(column)
    return tuple(found)


def _all_of(item: SelectAll, sources: SourcesInQuery, *, is_persistent: bool) -> Iterator[SelectedColumn]:
    chosen: tuple[AliasedSource, ...] = sources.sources
    if item.source is not None:
        chosen = (sources.named(item.source, item.location),)
    else:
        for name in sorted(sources.synthetic):
            yield SelectedColumn(name, ColumnReference(name))
    for one in chosen:
        has_bounds = one.source.window is not None and (sources.is_join or not is_persistent)
        bounds = WINDOW_BOUNDS if has_bounds else ()
        for column in one.source.schema.key + bounds + one.source.plain_columns:
            reference = ColumnReference(column.name, one.alias)
            yield SelectedColumn(sources.row_name(one.alias, column.name), reference)


def _all_rekeyed(
    item: SelectAll, partition_by: tuple[Expression, ...], sources: SourcesInQuery, names: ColumnNames
) -> list[SelectedColumn]:
    """All columns in the order they have after PARTITION BY: the new key, the others, and the old key at the end.

    In a join the others are those of one source after the other, pseudo columns included.
    """
    keys = [
        SelectedColumn(
            sources.row_name(one.source, one.name) if isinstance(one, ColumnReference) else names.generated(), one
        )
        for one in partition_by
        if not isinstance(one, NullLiteral)
    ]
    chosen = {column.expression for column in keys}
    for one in sources.sources if item.source is None else (sources.named(item.source, item.location),):
        source = one.source
        columns = source.row_columns if sources.is_join else source.plain_columns + source.schema.key
        for column in columns:
            reference = ColumnReference(column.name, one.alias)
            if reference not in chosen:
                keys.append(SelectedColumn(sources.row_name(one.alias, column.name), reference))
    return keys


def _fields_of(item: SelectStructAll, sources: SourcesInQuery) -> Iterator[SelectedColumn]:
    base = sources.qualified(item.base)
    sources.check_columns(base, "SELECT")
    sql_type = _type_of(base, sources)
    if not isinstance(sql_type, StructType):
        raise KsqlError(located(item.location, f"Cannot expand all fields of a {sql_type}: it is not a STRUCT."))
    for field in sql_type.fields:
        yield SelectedColumn(field.name, Dereference(base, field.name))


def _type_of(expression: Expression, sources: SourcesInQuery) -> object:
    columns = [
        Column(sources.row_name(alias, column.name), column.type)
        for alias, columns in sources.columns.items()
        for column in columns.values()
    ]
    return typed_expression(sources.in_row(expression), RowScope(columns)).type


def _named(
    item: SelectExpression, expression: Expression, sources: SourcesInQuery, names: ColumnNames
) -> SelectedColumn:
    if item.alias is not None:
        is_same = isinstance(expression, ColumnReference) and expression.name == item.alias
        if item.alias in SYSTEM_COLUMNS and not is_same:
            raise KsqlError(
                located(
                    item.location,
                    f"`{item.alias}` is a reserved column name. You cannot use it as an alias for a column.",
                )
            )
        return SelectedColumn(item.alias, expression, True, item.location)
    name = _default_name(expression, sources, names)
    return SelectedColumn(name, expression, False, item.location)


def _default_name(expression: Expression, sources: SourcesInQuery, names: ColumnNames) -> str:
    match expression:
        case ColumnReference(name=name, source=alias):
            is_clashing = alias is not None and len(sources.aliases_with(name)) > 1
            return sources.row_name(alias, name) if is_clashing else name
        case Dereference(field_name=name):
            return names.field(name)
        case _:
            return names.generated()
