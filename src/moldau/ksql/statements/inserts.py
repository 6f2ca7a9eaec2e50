"""Records that statements and streams of rows insert. Start at `serialized_record`, `insert_rows`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Protocol

from moldau.core.errors import MoldauError
from moldau.formats.columns import Column
from moldau.formats.format import RowFormat
from moldau.formats.types import ArrayType, MapType, Row, SqlType, StructType
from moldau.http.errors import MalformedBodyError
from moldau.ksql.api.documents import Document, generic_error
from moldau.ksql.api.errors import ErrorKind, RequestError
from moldau.ksql.schemas import row_serde
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.ksql.catalogue.sources import Source
from moldau.pipeline.ksql.catalogue.with_properties import folded_name
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.execution.engine import Engine
from moldau.pipeline.ksql.execution.insert_values import InsertedRecord
from moldau.pipeline.ksql.syntax.expressions import (
    BooleanLiteral,
    CreateArray,
    CreateMap,
    CreateStruct,
    DoubleLiteral,
    Expression,
    IntegerLiteral,
    LongLiteral,
    NullLiteral,
    StringLiteral,
)
from moldau.pipeline.ksql.syntax.statements import InsertValues

__all__ = ["insert_rows", "serialized_record"]

INT32_MAX = 2**31 - 1


def serialized_record(record: InsertedRecord, settings: KsqlSettings) -> tuple[bytes | None, bytes | None]:
    """Key and value of a record as its source's formats write them; raises `SerdeError` if they cannot."""
    source = record.source
    key = _encoded(record.key, source.key_format, source.schema.key, source.topic, settings)
    return key, _encoded(record.value, source.value_format, source.schema.value, source.topic, settings)


def _encoded(
    row: Row | None, row_format: RowFormat, columns: tuple[Column, ...], topic: str, settings: KsqlSettings
) -> bytes | None:
    if row is None or not columns:
        return None
    return row_serde(row_format, columns, settings).serialize(topic, row)


class InsertServices(Protocol):
    """What inserting needs of the server."""

    def current_engine(self) -> Engine: ...

    def write_record(self, record: InsertedRecord) -> None: ...


def insert_rows(
    server: InsertServices, target: str, rows: AsyncIterator[Mapping[str, Any]]
) -> AsyncGenerator[Document, None]:
    """An acknowledgement for each row; raises `RequestError` for a target that cannot be inserted into."""
    name = folded_name(target)
    source = server.current_engine().catalogue.sources.get(name)
    if source is None:
        raise RequestError(f"Cannot insert values into an unknown stream: `{name}`")
    if source.is_table:
        raise RequestError(f"Cannot insert into a table: `{name}`")
    return _acknowledgements(server, source, rows)


async def _acknowledgements(
    server: InsertServices, source: Source, rows: AsyncIterator[Mapping[str, Any]]
) -> AsyncGenerator[Document, None]:
    """Write row after row; the first one that fails ends the stream, as with ksqlDB."""
    sequence = 0
    while True:
        try:
            row = await anext(rows)
            outcome = server.current_engine().execute(_insert_statement(source, row))
            assert outcome.record is not None
            await asyncio.to_thread(server.write_record, outcome.record)
        except StopAsyncIteration:
            return
        except (MoldauError, MalformedBodyError) as error:
            yield {**generic_error(ErrorKind.BAD_REQUEST, str(error)), "status": "error", "seq": sequence}
            return
        yield {"status": "ok", "seq": sequence}
        sequence += 1


def _insert_statement(source: Source, row: Mapping[str, Any]) -> InsertValues:
    """The row as INSERT VALUES would write it, so that both follow the same rules."""
    if not isinstance(row, dict):
        raise KsqlError("Each line must be a JSON object with the columns of a row")
    names = tuple(folded_name(name) for name in row)
    types = {column.name: column.type for column in source.schema.columns}
    values = tuple(_literal(value, types.get(name)) for name, value in zip(names, row.values(), strict=True))
    return InsertValues(source.name, names, values)


def _literal(value: Any, sql_type: SqlType | None) -> Expression:
    """A JSON value as the statement would write it for a column of this type; None for a column that is not there."""
    match value, sql_type:
        case None, _:
            return NullLiteral()
        case bool(), _:
            return BooleanLiteral(value)
        case int(), _:
            return IntegerLiteral(value) if -INT32_MAX - 1 <= value <= INT32_MAX else LongLiteral(value)
        case float(), _:
            return DoubleLiteral(value)
        case str(), _:
            return StringLiteral(value)
        case list(), ArrayType(element=element):
            return CreateArray(tuple(_literal(one, element) for one in value))
        case dict(), MapType(value=inner):
            return CreateMap(tuple((StringLiteral(name), _literal(one, inner)) for name, one in value.items()))
        case dict(), StructType():
            return _struct(value, sql_type)
        case _:
            raise KsqlError(f"{value!r} is not a value of type {sql_type}")


def _struct(value: Mapping[str, Any], sql_type: StructType) -> CreateStruct:
    given = {folded_name(name): one for name, one in value.items()}
    unknown = given.keys() - {field.name for field in sql_type.fields}
    if unknown:
        raise KsqlError(f"{', '.join(sorted(unknown))} is not a field of {sql_type}")
    fields = tuple(
        (field.name, _literal(given[field.name], field.type)) for field in sql_type.fields if field.name in given
    )
    return CreateStruct(fields)
