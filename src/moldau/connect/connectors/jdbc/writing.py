"""The SQL that writes rows, for each kind of database. Start at `write_statement`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.connect.api.errors import ConnectError
from moldau.connect.api.schemas import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, DataSchema, Kind
from moldau.connect.connectors.jdbc.database import Database

__all__ = ["column_type", "delete_statement", "merge_statement", "quoted_table", "write_statement"]


def quoted_table(database: Database, table: Sequence[str]) -> str:
    """A table's name in SQL text."""
    return ".".join(database.quote(part) for part in table)


def write_statement(
    database: Database, mode: str, table: Sequence[str], keys: Sequence[str], fields: Sequence[str]
) -> str:
    """A statement for rows whose parameters are keys and fields, in this order; for updates fields come first."""
    mark, quote = database.mark, database.quote
    name = quoted_table(database, table)
    if mode == "update":
        changes = ", ".join(f"{quote(field)} = {mark}" for field in fields)
        where = " AND ".join(f"{quote(key)} = {mark}" for key in keys)
        return f"UPDATE {name} SET {changes} WHERE {where}"
    columns = ", ".join(quote(column) for column in (*keys, *fields))
    marks = ", ".join([mark] * (len(keys) + len(fields)))
    insert = f"INTO {name} ({columns}) VALUES ({marks})"
    if mode == "insert":
        return f"INSERT {insert}"
    if database.kind == "sqlite":
        return f"INSERT OR REPLACE {insert}"
    if database.kind == "mysql":
        changed = fields or keys
        updates = ", ".join(f"{quote(field)}=VALUES({quote(field)})" for field in changed)
        return f"INSERT {insert} ON DUPLICATE KEY UPDATE {updates}"
    if database.kind == "postgresql":
        return f"INSERT {insert} {_on_conflict(database, keys, fields)}"
    raise ConnectError(f"insert.mode=upsert is not known for databases of kind {database.kind}; use insert or update")


def merge_statement(
    database: Database, table: Sequence[str], keys: Sequence[str], fields: Sequence[str], staging: str
) -> str:
    """A statement of PostgreSQL that upserts all rows of another table."""
    columns = ", ".join(database.quote(column) for column in (*keys, *fields))
    return (
        f"INSERT INTO {quoted_table(database, table)} ({columns}) SELECT {columns} FROM {staging} "
        f"{_on_conflict(database, keys, fields)}"
    )


def _on_conflict(database: Database, keys: Sequence[str], fields: Sequence[str]) -> str:
    quote = database.quote
    target = ", ".join(quote(key) for key in keys)
    updates = ", ".join(f"{quote(field)}=EXCLUDED.{quote(field)}" for field in fields)
    action = f"DO UPDATE SET {updates}" if fields else "DO NOTHING"
    return f"ON CONFLICT ({target}) {action}"


def delete_statement(database: Database, table: Sequence[str], keys: Sequence[str]) -> str:
    """A statement that deletes rows by their keys."""
    where = " AND ".join(f"{database.quote(key)} = {database.mark}" for key in keys)
    return f"DELETE FROM {quoted_table(database, table)} WHERE {where}"


_TYPES: dict[str, dict[Any, str]] = {
    "postgresql": {
        Kind.INT8: "SMALLINT",
        Kind.INT16: "SMALLINT",
        Kind.INT32: "INT",
        Kind.INT64: "BIGINT",
        Kind.FLOAT32: "REAL",
        Kind.FLOAT64: "DOUBLE PRECISION",
        Kind.BOOLEAN: "BOOLEAN",
        Kind.STRING: "TEXT",
        Kind.BYTES: "BYTEA",
        DECIMAL_NAME: "DECIMAL",
        DATE_NAME: "DATE",
        TIME_NAME: "TIME",
        TIMESTAMP_NAME: "TIMESTAMP",
    },
    "mysql": {
        Kind.INT8: "TINYINT",
        Kind.INT16: "SMALLINT",
        Kind.INT32: "INT",
        Kind.INT64: "BIGINT",
        Kind.FLOAT32: "FLOAT",
        Kind.FLOAT64: "DOUBLE",
        Kind.BOOLEAN: "TINYINT",
        Kind.STRING: "TEXT",
        Kind.BYTES: "VARBINARY(1024)",
        DATE_NAME: "DATE",
        TIME_NAME: "TIME(3)",
        TIMESTAMP_NAME: "DATETIME(3)",
    },
    "sqlite": {
        **dict.fromkeys((Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.BOOLEAN), "INTEGER"),
        **dict.fromkeys((Kind.FLOAT32, Kind.FLOAT64), "REAL"),
        Kind.STRING: "TEXT",
        Kind.BYTES: "BLOB",
        **dict.fromkeys((DECIMAL_NAME, DATE_NAME, TIME_NAME, TIMESTAMP_NAME), "NUMERIC"),
    },
}


def column_type(database: Database, schema: DataSchema, *, is_key: bool) -> str:
    """The type of a new column."""
    types = _TYPES.get(database.kind, _TYPES["postgresql"])
    if schema.name == DECIMAL_NAME and database.kind == "mysql":
        return f"DECIMAL(65,{schema.parameters.get('scale', '0')})"
    if schema.kind is Kind.STRING and is_key and database.kind == "mysql":
        # A key of MySQL must have a limited length.
        return "VARCHAR(256)"
    found = types.get(schema.name) or types.get(schema.kind)
    if found is None:
        raise ConnectError(f"no column of a new table can hold values of type {schema.kind.value}; flatten them first")
    return found
