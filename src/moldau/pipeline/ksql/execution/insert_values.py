"""INSERT INTO … VALUES: one record, from constants. Start at `inserted_record`."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.formats.columns import Column
from moldau.formats.types import BIGINT, Value
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.processing_log import ListLog
from moldau.pipeline.cores.sql.rows import compile_row
from moldau.pipeline.ksql.catalogue.catalogue import Catalogue, similar_names
from moldau.pipeline.ksql.catalogue.services import Schemas
from moldau.pipeline.ksql.catalogue.sources import Source
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import Expression
from moldau.pipeline.ksql.syntax.printer import render
from moldau.pipeline.ksql.syntax.statements import InsertValues
from moldau.pipeline.ksql.typing.typing import typed_constant

__all__ = ["InsertedRecord", "inserted_record"]


@dataclass(frozen=True, slots=True)
class InsertedRecord:
    """A record to write: rows of key and value, to be encoded as its source's formats say."""

    source: Source
    key: tuple[Value, ...] | None
    value: tuple[Value, ...] | None
    timestamp: int | None
    """None means now."""


def inserted_record(statement: InsertValues, catalogue: Catalogue, schemas: Schemas) -> InsertedRecord:
    """The record that a statement writes."""
    source = catalogue.sources.get(statement.target)
    if source is None:
        hint = similar_names(statement.target, catalogue.sources)
        raise KsqlError(f"Cannot insert values into an unknown stream/table: `{statement.target}`{hint}")
    _check_target(source)
    names = _names(statement, source)
    types = {column.name: column.type for column in (*source.schema.key, *source.schema.value)}
    types["ROWTIME"] = BIGINT
    values = {
        name: _value(expression, Column(name, types[name]))
        for name, expression in zip(names, statement.values, strict=True)
    }
    key = tuple(values.get(column.name) for column in source.schema.key)
    if source.is_table and None in key:
        missing = ", ".join(column.name for column in source.schema.key)
        raise KsqlError(
            f"Failed to insert values into '{source.name}'. Value for primary key column(s) {missing} is required for "
            "tables"
        )
    value: tuple[Value, ...] | None = tuple(values.get(column.name) for column in source.schema.value)
    timestamp = values.get("ROWTIME")
    assert timestamp is None or isinstance(timestamp, int)
    return InsertedRecord(source, key if source.schema.key else None, value, timestamp)


def _check_target(source: Source) -> None:
    if source.is_read_only:
        raise KsqlError(f"Cannot insert values into read-only {source.kind.value.lower()}: {source.name}")
    if source.window is not None:
        raise KsqlError("Cannot insert values into windowed stream/table!")


def _names(statement: InsertValues, source: Source) -> tuple[str, ...]:
    headers = {column.name for column in source.schema.headers}
    known = [column.name for column in source.schema.key] + [column.name for column in source.plain_columns]
    names = statement.columns or tuple(known)
    inserted = [name for name in names if name in headers]
    if inserted:
        raise KsqlError(f"Cannot insert into HEADER columns: {', '.join(inserted)}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise KsqlError(f"Duplicate column names: {', '.join(twice)}")
    unknown = [name for name in names if name not in known and name != "ROWTIME"]
    for name in unknown:
        if name in ("ROWPARTITION", "ROWOFFSET"):
            raise KsqlError(f"Inserting into column `{name}` is not allowed.")
        raise KsqlError(f"Column name {name} does not exist.")
    if len(names) != len(statement.values):
        if not statement.columns:
            raise KsqlError(
                f"Expected ROWTIME is optional, and a value for each of the {len(names)} columns, "
                f"but got {len(statement.values)} values"
            )
        raise KsqlError(
            f"Expected number columns and values to match: {list(names)}, [{', '.join(map(render, statement.values))}]"
        )
    return names


def _value(expression: Expression, column: Column) -> Value:
    typed = typed_constant(expression, column.type)
    log = ListLog()
    try:
        (value,) = compile_row([typed], log)(())
    except ExpressionError as error:
        raise KsqlError(f"Failed to evaluate {render(expression)}: {error}") from None
    if log.entries:
        raise KsqlError(f"Failed to evaluate {render(expression)}: {log.entries[0][1]}")
    return value
