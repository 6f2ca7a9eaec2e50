"""One table or query, read again and again: which SQL to run, and which offset each row has.

| mode | condition | offset |
|---|---|---|
| bulk | none: everything each time | none |
| incrementing | `id > ?` | the row's id |
| timestamp | `ts > ? AND ts < ?` | the row's time, once a later row or the end says that no other row shares it |
| timestamp+incrementing | `ts < ? AND ((ts = ? AND id > ?) OR ts > ?)` | both |

The upper bound is the database's time less `timestamp.delay.interval.ms`. Start at `Querier`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy
from sqlalchemy.engine import Connection

from moldau.connect.api.errors import ConnectError
from moldau.connect.api.records import SourceRecord
from moldau.connect.api.schemas import DataSchema, struct
from moldau.connect.connectors.jdbc import reading
from moldau.connect.connectors.jdbc.database import Database

__all__ = ["Querier", "Target"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Target:
    """What to read, and where it goes."""

    topic: str
    table: str | None
    """None for a query."""

    schema: str | None = None
    full_name: str = ""
    query: str | None = None

    @property
    def partition(self) -> dict[str, Any]:
        """Of the source's offsets."""
        return {"query": "query"} if self.table is None else {"protocol": "1", "table": self.full_name}

    @property
    def old_partition(self) -> dict[str, Any]:
        """As older versions of the connector wrote it."""
        return self.partition if self.table is None else {"table": self.table}


class Querier:
    """Reads a target; `records` gives a batch at a time until the result ends."""

    def __init__(
        self, database: Database, target: Target, values: Mapping[str, Any], offset: Mapping[str, Any] | None
    ) -> None:
        self.target = target
        self._database = database
        self._values = values
        self._mode: str = values["mode"]
        self._mapping = reading.Mapping(database, values["numeric.mapping"], values["timestamp.granularity"])
        self._id_column: str | None = None
        self._time_columns: list[str] = list(values["timestamp.column.name"]) if "timestamp" in self._mode else []
        self._id, self._micros = _stored(offset, values, database)
        self._time_kind: str | None = None
        self._connection: Connection | None = None
        self._result: Any = None
        self._ahead: Any = None
        """The first row that was not delivered yet."""
        self._columns: list[reading.Column] = []
        self._places: dict[str, int] = {}
        """Where columns are in the rows of the query that runs."""
        self._schema: DataSchema | None = None
        self.due = 0.0
        """When to query next, as `time.monotonic` counts."""

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def open(self) -> None:
        """Run the query."""
        self._connection = self._database.engine.connect()
        if self.target.table is not None and not self._columns:
            self._look_at_table()
        elif self.target.table is None and not self._columns:
            self._id_column = self._values["incrementing.column.name"] or None
        text, parameters = self._statement()
        options = {"stream_results": True, "max_row_buffer": self._values["batch.max.rows"]}
        result = self._connection.execution_options(**options).exec_driver_sql(text, tuple(parameters))
        self._result = result
        self._places = {name: place for place, name in enumerate(result.keys())}
        self._ahead = result.fetchone()
        if self.target.table is None and (not self._columns or self._database.kind == "sqlite"):
            columns = reading.query_columns(result.cursor, self._ahead, self._mapping) if result.cursor else []
            if columns:
                self._use_columns(columns)

    def close(self) -> None:
        """Give up the query and its connection."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            if self._result is not None:
                self._result.close()
            connection.close()
        self._result = self._ahead = None

    def records(self, most: int) -> list[SourceRecord]:
        """The next records; closes the query when its result ends."""
        if self._ahead is None:
            self.close()
            return []
        rows = [self._ahead]
        try:
            rows += self._result.fetchmany(most)
        except sqlalchemy.exc.SQLAlchemyError:
            # What was read is delivered; the query runs again from there. More rows may share this row's time.
            made = self._records(rows, rows[-1])
            self.close()
            return made
        self._ahead = rows.pop() if len(rows) > most else None
        made = self._records(rows, self._ahead)
        if self._ahead is None:
            self.close()
        return made

    # What the table is like

    def _look_at_table(self) -> None:
        assert self._connection is not None
        assert self.target.table is not None
        inspector = sqlalchemy.inspect(self._connection)
        columns = inspector.get_columns(self.target.table, schema=self.target.schema)
        self._use_columns(reading.table_columns(inspector, self.target.table, self.target.schema, self._mapping))
        if "incrementing" in self._mode:
            self._id_column = self._values["incrementing.column.name"] or _auto_increment(
                inspector, self.target, columns
            )
        self._check_columns({one["name"]: one for one in columns})
        self._connection.rollback()

    def _use_columns(self, columns: list[reading.Column]) -> None:
        self._columns = columns
        self._schema = struct({column.name: column.schema for column in columns}, name=self.target.table)

    def _check_columns(self, columns: Mapping[str, Any]) -> None:
        name = self.target.full_name
        for column in filter(None, (self._id_column, *self._time_columns)):
            if column not in columns:
                raise ConnectError(
                    f"table {name} has no column {column}, which mode {self._mode} needs; it has {', '.join(columns)}"
                )
        if not self._values["validate.non.null"]:
            return
        schemas = {column.name: column.schema for column in self._columns}
        if self._id_column is not None and schemas[self._id_column].is_optional:
            raise ConnectError(
                f"Cannot make incremental queries using incrementing column {self._id_column} on {name} because this "
                "column is nullable; make it NOT NULL, or set validate.non.null=false"
            )
        if self._time_columns and all(schemas[column].is_optional for column in self._time_columns):
            raise ConnectError(
                f"Cannot make incremental queries using timestamp columns {self._time_columns} on {name} because all "
                "of these columns nullable; make one NOT NULL, or set validate.non.null=false"
            )

    # SQL

    def _statement(self) -> tuple[str, list[Any]]:
        database, target = self._database, self.target
        if target.table is not None:
            names = [database.quote(part) for part in (target.schema, target.table) if part]
            base = f"SELECT * FROM {'.'.join(names)}"
        else:
            base = database.literal_sql(target.query or "")
        condition, parameters, order = self._condition()
        text = f"{base} WHERE {condition} ORDER BY {order}" if condition else base
        suffix = self._values["query.suffix"]
        return (f"{text} {database.literal_sql(suffix)}" if suffix else text), parameters

    def _condition(self) -> tuple[str, list[Any], str]:
        mark = self._database.mark
        key = self._database.quote(self._id_column) if self._id_column else ""
        times = [self._database.quote(column) for column in self._time_columns]
        moment = times[0] if len(times) == 1 else f"COALESCE({','.join(times)})"
        match self._mode:
            case "incrementing":
                return f"{key} > {mark}", [self._id], f"{key} ASC"
            case "timestamp":
                bounds = [self._bind(self._micros), self._bind(self._end())]
                return f"{moment} > {mark} AND {moment} < {mark}", bounds, f"{moment} ASC"
            case "timestamp+incrementing":
                start = self._bind(self._micros)
                condition = f"{moment} < {mark} AND (({moment} = {mark} AND {key} > {mark}) OR {moment} > {mark})"
                return condition, [self._bind(self._end()), start, self._id, start], f"{moment},{key} ASC"
        return "", [], ""

    def _end(self) -> int:
        assert self._connection is not None
        now = self._database.now(self._connection)
        delay = timedelta(milliseconds=self._values["timestamp.delay.interval.ms"])
        return (now - delay - EPOCH) // timedelta(microseconds=1)

    def _bind(self, micros: int) -> Any:
        """A moment as a parameter. SQLite compares texts, so that it has to look as those in the column."""
        moment = EPOCH + timedelta(microseconds=micros)
        if self._database.kind != "sqlite":
            return self._database.local(moment) if self._database.kind == "mysql" else moment
        if self._time_kind is None:
            self._time_kind = self._stored_kind()
        if self._time_kind == "integer":
            return micros // 1000
        local = self._database.local(moment)
        separator = "T" if self._time_kind == "T" else " "
        fraction = "" if not local.microsecond else f".{local.microsecond:06d}".removesuffix("000")
        return f"{local:%Y-%m-%d}{separator}{local:%H:%M:%S}{fraction}"

    def _stored_kind(self) -> str | None:
        if self.target.table is None or self._connection is None:
            return "text"
        column, table = self._database.quote(self._time_columns[0]), self._database.quote(self.target.table)
        found = self._connection.exec_driver_sql(
            f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL LIMIT 1"
        ).scalar()
        if found is None:
            return None
        return "integer" if isinstance(found, (int, float)) else "T" if "T" in str(found) else "text"

    # Rows

    def _records(self, rows: list[Any], following: Any) -> list[SourceRecord]:
        """Records of rows; `following` is the row after them."""
        by_place = list(zip(*rows, strict=True))
        names = [column.name for column in self._columns]
        columns = [column.values(by_place[self._places[column.name]]) for column in self._columns]
        values = [dict(zip(names, one, strict=True)) for one in zip(*columns, strict=True)]
        is_bulk = self._mode == "bulk"
        topic, schema = self.target.topic, self._schema
        partition = self.target.old_partition if is_bulk else self.target.partition
        offsets = [None] * len(rows) if is_bulk else self._offsets(rows, following)
        return [
            SourceRecord(
                topic=topic, value=value, value_schema=schema, source_partition=partition, source_offset=offset
            )
            for value, offset in zip(values, offsets, strict=True)
        ]

    def _offsets(self, rows: list[Any], following: Any) -> list[dict[str, Any]]:
        """The offset after each row."""
        ids: list[int] = []
        if self._id_column is not None:
            place = self._places[self._id_column]
            ids = [int(row[place]) for row in rows]
            self._id = ids[-1]
            if not self._time_columns:
                return [{"incrementing": one} for one in ids]
        moments = [self._row_micros(row) for row in rows]
        after = None if following is None else self._row_micros(following)
        found = []
        for number, micros in enumerate(moments):
            next_micros = moments[number + 1] if number + 1 < len(moments) else after
            if ids or next_micros != micros:
                self._micros = micros
            offset: dict[str, Any] = {"incrementing": ids[number]} if ids else {}
            offset["timestamp"] = self._micros // 1000
            offset["timestamp_nanos"] = self._micros % 1_000_000 * 1000
            found.append(offset)
        return found

    def _row_micros(self, row: Any) -> int:
        for column in self._time_columns:
            value = row[self._places[column]]
            if value is not None:
                return reading.epoch_micros(value, self._database.zone)
        raise ConnectError(f"a row of {self.target.full_name} has no time in {', '.join(self._time_columns)}")


def _stored(offset: Mapping[str, Any] | None, values: Mapping[str, Any], database: Database) -> tuple[int, int]:
    """The id and the moment to go on from."""
    number = -1 if not offset or offset.get("incrementing") is None else int(offset["incrementing"])
    if offset and offset.get("timestamp") is not None:
        millis, nanos = int(offset["timestamp"]), int(offset.get("timestamp_nanos") or 0)
        return number, millis // 1000 * 1_000_000 + (nanos // 1000 or millis % 1000 * 1000)
    initial = values["timestamp.initial"]
    if initial is None:
        return number, 0
    if initial < 0:
        with database.engine.connect() as connection:
            return number, (database.now(connection) - EPOCH) // timedelta(microseconds=1)
    return number, initial * 1000


def _auto_increment(inspector: Any, target: Target, columns: list[Any]) -> str:
    """The first column that the database counts up by itself."""
    for column in columns:
        if column.get("autoincrement") is True or column.get("identity") is not None:
            return str(column["name"])
    keys = inspector.get_pk_constraint(target.table, schema=target.schema)["constrained_columns"]
    whole = [column["name"] for column in columns if isinstance(column["type"], sqlalchemy.types.Integer)]
    if len(keys) == 1 and keys[0] in whole:
        return str(keys[0])
    raise ConnectError(f"table {target.full_name} has no auto-increment column; set incrementing.column.name")
