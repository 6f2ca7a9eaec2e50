"""The JSON documents of answers, as ksqlDB's clients expect them: schemas, sources, queries, statuses, functions.

Each function makes one document from what the server knows; nothing is looked up here. Start at `source_info`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moldau.formats.columns import Column
from moldau.formats.types import ArrayType, DecimalType, MapType, Primitive, SqlType, StructType
from moldau.ksql.statements.commands import CommandId
from moldau.pipeline.ksql.catalogue.sources import Source

__all__ = [
    "column_field",
    "command_status",
    "current_status",
    "schema_info",
    "source_fields",
    "source_info",
    "statement_error",
]

Document = dict[str, Any]


def schema_info(sql_type: SqlType) -> Document:
    """A type."""
    name, fields, member, parameters = "", None, None, None
    match sql_type:
        case Primitive():
            name = sql_type.name
        case DecimalType():
            name, parameters = "DECIMAL", {"precision": sql_type.precision, "scale": sql_type.scale}
        case ArrayType():
            name, member = "ARRAY", schema_info(sql_type.element)
        case MapType():
            name, member = "MAP", schema_info(sql_type.value)
        case StructType():
            name = "STRUCT"
            fields = [{"name": field.name, "schema": schema_info(field.type)} for field in sql_type.fields]
        case _:
            name = str(sql_type)
    found: Document = {"type": name, "fields": fields, "memberSchema": member}
    return found if parameters is None else {**found, "parameters": parameters}


def column_field(column: Column, kind: str | None = None, header: str | None = None) -> Document:
    """A column of a source; `kind` is KEY or HEADER, and absent for the value's columns."""
    field: Document = {"name": column.name, "schema": schema_info(column.type)}
    if kind is not None:
        field["type"] = kind
    if header is not None:
        field["headerKey"] = header
    return field


def source_fields(source: Source) -> list[Document]:
    """The columns of a source in the order of `SELECT *`."""
    headers = dict(zip((column.name for column in source.schema.headers), source.header_names, strict=False))
    return [column_field(column, "KEY") for column in source.schema.key] + [
        column_field(column, "HEADER", headers[column.name]) if column.name in headers else column_field(column)
        for column in source.plain_columns
    ]


def source_info(source: Source) -> Document:
    """A row of SHOW STREAMS or SHOW TABLES."""
    return {
        "type": source.kind.value,
        "name": source.name,
        "topic": source.topic,
        "keyFormat": source.key_format.format.name,
        "valueFormat": source.value_format.format.name,
        "isWindowed": source.window is not None,
    }


def command_status(status: str, message: str, query_id: str | None = None) -> Document:
    """The state of a command."""
    return {"status": status, "message": message, "queryId": query_id}


def current_status(statement: str, command: CommandId, status: Mapping[str, Any], sequence_number: int) -> Document:
    """The answer to a statement that went through the command topic."""
    return {
        "@type": "currentStatus",
        "statementText": statement,
        "commandId": str(command),
        "commandStatus": dict(status),
        "commandSequenceNumber": sequence_number,
        "warnings": [],
    }


def entity(kind: str, statement: str, warnings: Iterable[str] = (), **members: Any) -> Document:
    """Any other answer to a statement."""
    texts = [{"message": text} for text in warnings]
    return {"@type": kind, "statementText": statement, **members, "warnings": texts}


def generic_error(error_code: int, message: str) -> Document:
    """An error that is about no statement."""
    return {"@type": "generic_error", "error_code": error_code, "message": message}


def statement_error(error_code: int, message: str, statement: str, entities: Sequence[Document]) -> Document:
    """An error of a statement, with the answers to those before it."""
    return {
        "@type": "statement_error",
        "error_code": error_code,
        "message": message,
        "statementText": statement,
        "entities": list(entities),
    }
