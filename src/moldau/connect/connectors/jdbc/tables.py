"""The tables of a sink: created and given new columns where that is allowed. Start at `Tables.prepare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy
from sqlalchemy.engine import Connection

from moldau.connect.api.errors import ConnectError
from moldau.connect.api.schemas import DataSchema
from moldau.connect.connectors.jdbc.database import Database
from moldau.connect.connectors.jdbc.rows import Field, Row, Shape
from moldau.connect.connectors.jdbc.writing import column_type, quoted_table
from moldau.formats.registry.data_schema import NO_DEFAULT

__all__ = ["Tables"]


class Tables:
    """Which tables were looked at, and with which columns."""

    def __init__(self, database: Database, values: Mapping[str, Any]) -> None:
        self._database = database
        self._creates: bool = values["auto.create"]
        self._evolves: bool = values["auto.evolve"]
        self._ready: dict[tuple[tuple[str, ...], int], Shape] = {}

    def prepare(self, connection: Connection, row: Row) -> None:
        """Make sure that the table has the row's columns; raises `ConnectError` if it has not and may not get them."""
        if (row.table, id(row.shape)) in self._ready:
            return
        columns = self._columns(connection, row.table)
        if columns is None:
            self._create(connection, row)
        else:
            self._evolve(connection, row, columns)
        self._ready[row.table, id(row.shape)] = row.shape

    def forget(self) -> None:
        """Look at all tables anew: something failed."""
        self._ready.clear()

    def _columns(self, connection: Connection, table: tuple[str, ...]) -> set[str] | None:
        schema = table[-2] if len(table) > 1 else None
        inspector = sqlalchemy.inspect(connection)
        if not inspector.has_table(table[-1], schema=schema):
            return None
        return {str(column["name"]) for column in inspector.get_columns(table[-1], schema=schema)}

    def _create(self, connection: Connection, row: Row) -> None:
        name = ".".join(row.table)
        if not self._creates:
            raise ConnectError(f"table {name} is missing and auto.create is off; create it, or set auto.create=true")
        keys, fields = row.shape.keys, row.shape.fields
        parts = [self._definition(one) for one in (*keys, *fields)]
        if keys:
            parts.append(f"PRIMARY KEY ({', '.join(self._database.quote(one.name) for one in keys)})")
        table = quoted_table(self._database, row.table)
        # Another task may create it at the same moment.
        connection.exec_driver_sql(_plain(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(parts)})"))

    def _evolve(self, connection: Connection, row: Row, columns: set[str]) -> None:
        missing = [one for one in (*row.shape.keys, *row.shape.fields) if one.name not in columns]
        if not missing:
            return
        name, names = ".".join(row.table), ", ".join(one.name for one in missing)
        if not self._evolves:
            raise ConnectError(f"table {name} is missing the columns {names}; add them, or set auto.evolve=true")
        required = [one.name for one in missing if not one.schema.is_optional and one.schema.default is NO_DEFAULT]
        if required:
            raise ConnectError(
                f"table {name} cannot be altered to add {', '.join(required)}: the fields are neither optional nor "
                "have a default, and rows that are there have no value for them"
            )
        table = quoted_table(self._database, row.table)
        for one in missing:
            connection.exec_driver_sql(_plain(f"ALTER TABLE {table} ADD COLUMN {self._definition(one)}"))

    def _definition(self, one: Field) -> str:
        kind = column_type(self._database, one.schema, is_key=one.is_key)
        text = f"{self._database.quote(one.name)} {kind}"
        default = _default_text(one.schema, self._database.kind)
        # MySQL has no defaults for texts.
        if default is not None and not (self._database.kind == "mysql" and kind == "TEXT"):
            text += f" DEFAULT {default}"
        is_nullable = one.schema.is_optional and not one.is_key
        return f"{text} NULL" if is_nullable else f"{text} NOT NULL"


def _plain(text: str) -> str:
    """Without parameters the drivers take a percent sign as it is."""
    return text.replace("%%", "%")


def _default_text(schema: DataSchema, kind: str) -> str | None:
    value = schema.default
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float() if schema.name is None:
            return repr(value)
        case str():
            text = value.replace("'", "''")
            # MySQL takes a backslash for the start of an escape, so that one before a quote would end the text.
            return "'" + (text.replace("\\", "\\\\") if kind == "mysql" else text) + "'"
    return None
