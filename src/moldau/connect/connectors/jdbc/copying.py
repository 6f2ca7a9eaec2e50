"""PostgreSQL's COPY for batches of rows: several times faster than a statement for each row.

Rows to insert are copied into their table; rows to upsert into a temporary one, from where a single statement merges
them. Start at `Copies.write`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import sqlalchemy
from sqlalchemy.engine import Connection

from moldau.connect.connectors.jdbc.database import Database
from moldau.connect.connectors.jdbc.writing import merge_statement, quoted_table

__all__ = ["Copies"]


class Copies:
    """The copies of one task."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_refused = False
        """Whether the user may not make temporary tables."""

    def write(
        self,
        connection: Connection,
        table: Sequence[str],
        *,
        keys: Sequence[str],
        fields: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
        upserts_by: Sequence[tuple[Any, ...]] | None,
    ) -> bool:
        """Write rows; with `upserts_by`, their keys, rows that exist are changed. False: nothing was written.

        COPY is stricter than INSERT, which casts a number to the column's type for example. So a batch that it refuses
        is left to statements, which either can write it or say what is wrong.
        """
        if self._is_refused and upserts_by is not None:
            return False
        try:
            with connection.begin_nested():
                if upserts_by is None:
                    self._copy(connection, quoted_table(self._database, table), (*keys, *fields), rows)
                else:
                    # One statement may change a row only once: the last of those with the same key counts.
                    latest = dict(zip(upserts_by, rows, strict=True))
                    staging = self._staging(connection, table, (*keys, *fields))
                    self._copy(connection, staging, (*keys, *fields), list(latest.values()))
                    connection.exec_driver_sql(merge_statement(self._database, table, keys, fields, staging))
                    connection.exec_driver_sql(f"TRUNCATE {staging}")
        except sqlalchemy.exc.ProgrammingError:
            self._is_refused = True
            return False
        except sqlalchemy.exc.OperationalError:
            raise
        except (sqlalchemy.exc.DBAPIError, TypeError):
            return False
        return True

    def _staging(self, connection: Connection, table: Sequence[str], columns: Sequence[str]) -> str:
        """A temporary table with these columns, without constraints; it lives as long as the connection."""
        name = f"moldau_{hashlib.sha256(repr((table, columns)).encode()).hexdigest()[:16]}"
        listed = self._listed(columns)
        connection.exec_driver_sql(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {name} ON COMMIT DELETE ROWS AS "
            f"SELECT {listed} FROM {quoted_table(self._database, table)} WITH NO DATA"
        )
        return name

    def _copy(self, connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Any]) -> None:
        driver: Any = connection.connection.driver_connection
        # The driver raises its own errors here; SQLAlchemy's say the same of all drivers.
        text = f"COPY {table} ({self._listed(columns)}) FROM STDIN".replace("%%", "%")
        try:
            with driver.cursor() as cursor, cursor.copy(text) as copy:
                for row in rows:
                    copy.write_row(row)
        except connection.dialect.loaded_dbapi.Error as error:
            raise sqlalchemy.exc.DBAPIError.instance(
                text, None, error, connection.dialect.loaded_dbapi.Error, dialect=connection.dialect
            ) from error

    def _listed(self, columns: Sequence[str]) -> str:
        return ", ".join(self._database.quote(column) for column in columns)
