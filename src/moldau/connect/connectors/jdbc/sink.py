"""The JDBC sink: records as rows, inserted, upserted, updated or deleted, one transaction for each `put`.

A batch of rows is cut where the schema changes and where a row follows a deletion. With `moldau.offset.table` the
offsets are in the same transaction as the rows, and what comes again is left out: exactly once in any insert mode.
Start at `JdbcSinkTask.put`; SQL is in `writing`, tables in `tables`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

import sqlalchemy
from sqlalchemy.engine import Connection

from moldau.connect.api.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Setting,
    at_least,
    not_empty,
    one_of_ignoring_case,
)
from moldau.connect.api.connector import SinkConnector, SinkTask
from moldau.connect.api.errors import ConnectError, RetriableError
from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.jdbc.copying import Copies
from moldau.connect.connectors.jdbc.database import CONNECTION_SETTINGS, open_database
from moldau.connect.connectors.jdbc.offset_table import OffsetTable
from moldau.connect.connectors.jdbc.rows import Row, RowMaker
from moldau.connect.connectors.jdbc.tables import Tables
from moldau.connect.connectors.jdbc.writing import delete_statement, write_statement
from moldau.core.ids import TopicPartition

__all__ = ["JdbcSinkConnector", "JdbcSinkTask"]

LOW, MEDIUM = Importance.LOW, Importance.MEDIUM
COPY_LEAST: Final = 20
"""Batches of PostgreSQL that are at least so long go through COPY."""

log = logging.getLogger(__name__)

CONFIG: Final = ConfigDef(
    *CONNECTION_SETTINGS,
    Setting(
        "insert.mode",
        ConfigType.STRING,
        "How rows are written.",
        "insert",
        one_of_ignoring_case("insert", "upsert", "update"),
    ),
    Setting("batch.size", ConfigType.INT, "Most rows of one statement.", 3000, at_least(1), MEDIUM),
    Setting(
        "delete.enabled",
        ConfigType.BOOLEAN,
        "Whether a null value deletes the row of its key.",
        False,
        importance=MEDIUM,
    ),
    Setting("table.name.format", ConfigType.STRING, "The table, with ${topic} in it.", "${topic}", not_empty, MEDIUM),
    Setting(
        "pk.mode",
        ConfigType.STRING,
        "Where the primary key is from.",
        "none",
        one_of_ignoring_case("none", "kafka", "record_key", "record_value"),
    ),
    Setting("pk.fields", ConfigType.LIST, "The columns of the primary key.", [], importance=MEDIUM),
    Setting("fields.whitelist", ConfigType.LIST, "Fields to write; all by default.", [], importance=MEDIUM),
    Setting("auto.create", ConfigType.BOOLEAN, "Create missing tables.", False, importance=MEDIUM),
    Setting("auto.evolve", ConfigType.BOOLEAN, "Add missing columns.", False, importance=MEDIUM),
    Setting("max.retries", ConfigType.INT, "How often a failed batch is tried again.", 10, at_least(0), MEDIUM),
    Setting("retry.backoff.ms", ConfigType.INT, "Wait before that.", 3000, at_least(0), MEDIUM),
    Setting("table.types", ConfigType.LIST, "Accepted; tables and views are found.", ["TABLE"], importance=LOW),
    Setting(
        "moldau.offset.table",
        ConfigType.STRING,
        "A table for offsets, for exactly once in any mode.",
        None,
        not_empty,
        LOW,
    ),
)


class JdbcSinkConnector(SinkConnector):
    """`io.confluent.connect.jdbc.JdbcSinkConnector`."""

    plugin_name = "io.confluent.connect.jdbc.JdbcSinkConnector"
    config_def: ClassVar[ConfigDef] = CONFIG

    def validate(self, settings: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(settings)
        by_name = {value.name: value for value in values}
        mode, pk_mode = settings.get("insert.mode", "insert").lower(), settings.get("pk.mode", "none").lower()
        if mode in ("upsert", "update") and pk_mode == "none":
            by_name["pk.mode"].errors.append(
                f"insert.mode={mode} needs a primary key: set pk.mode to kafka, record_key or record_value"
            )
        if settings.get("delete.enabled", "").lower() == "true" and pk_mode != "record_key":
            by_name["delete.enabled"].errors.append("delete.enabled needs pk.mode=record_key")
        return values

    def task_class(self) -> type[SinkTask]:
        return JdbcSinkTask

    def start(self, settings: Mapping[str, str]) -> None:
        super().start(settings)
        open_database(CONFIG.parse(settings), settings, self.context.limits).engine.dispose()


class JdbcSinkTask(SinkTask):
    """Writes rows."""

    def start(self, settings: Mapping[str, str]) -> None:
        self._values = CONFIG.parse(settings)
        self._database = open_database(self._values, settings, self.context.limits)
        self._mode: str = self._values["insert.mode"].lower()
        self._rows = RowMaker(self._values, self._database)
        self._tables = Tables(self._database, self._values)
        self._retries_left: int = self._values["max.retries"]
        self._copies = Copies(self._database) if self._database.kind == "postgresql" else None
        name = self._values["moldau.offset.table"]
        self._offsets = None if name is None else OffsetTable(self._database, name, settings.get("name", "sink"))

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        if self._offsets is not None:
            with self._database.engine.begin() as connection:
                known = self._offsets.load(connection, partitions)
            if known:
                self.context.rewind(known)

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        try:
            self._write(records)
        except sqlalchemy.exc.SQLAlchemyError as error:
            self._give_up_or_retry(records, error)
        self._retries_left = self._values["max.retries"]

    def stop(self) -> None:
        if hasattr(self, "_database"):
            self._database.engine.dispose()

    def _write(self, records: Sequence[SinkRecord]) -> None:
        fresh = records if self._offsets is None else self._offsets.unseen(records)
        with self._database.engine.begin() as connection:
            self._write_rows(connection, fresh)
            if self._offsets is not None:
                self._offsets.save(connection, fresh)
        if self._offsets is not None:
            self._offsets.commit(fresh)

    def _write_rows(self, connection: Connection, records: Sequence[SinkRecord]) -> None:
        batch: list[Row] = []
        for record in records:
            row = self._rows.row(record)
            if row is None:
                continue
            if batch and (len(batch) >= self._values["batch.size"] or not row.may_follow(batch[-1])):
                self._send(connection, batch)
                batch = []
            batch.append(row)
        if batch:
            self._send(connection, batch)

    def _send(self, connection: Connection, batch: list[Row]) -> None:
        first = batch[0]
        if first.is_delete:
            text = delete_statement(self._database, first.table, first.key_names)
            connection.exec_driver_sql(text, [row.key_values for row in batch])
            return
        self._tables.prepare(connection, first)
        names = (*first.key_names, *first.value_names)
        text = write_statement(self._database, self._mode, first.table, first.key_names, first.value_names)
        if self._mode == "update":
            rows = [(*row.values, *row.key_values) for row in batch]
        else:
            rows = [(*row.key_values, *row.values) for row in batch]
            if len(rows) >= COPY_LEAST and self._copies is not None:
                keys = [row.key_values for row in batch] if self._mode == "upsert" else None
                if self._copies.write(
                    connection,
                    first.table,
                    keys=first.key_names,
                    fields=first.value_names,
                    rows=rows,
                    upserts_by=keys,
                ):
                    return
        assert len(rows[0]) == len(names)
        connection.exec_driver_sql(text, rows)

    def _give_up_or_retry(self, records: Sequence[SinkRecord], error: sqlalchemy.exc.SQLAlchemyError) -> None:
        words = str(getattr(error, "orig", None) or error).strip()
        self._tables.forget()
        is_passing = isinstance(error, (sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError))
        if is_passing and self._retries_left > 0:
            self._retries_left -= 1
            log.warning(
                "a batch of %d records failed and is tried again (%d more times): %s",
                len(records),
                self._retries_left + 1,
                words,
            )
            self._database.engine.dispose()
            self.context.set_timeout(self._values["retry.backoff.ms"])
            raise RetriableError(f"the database failed: {words}") from error
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise ConnectError(f"rows cannot be written: {words}") from error
        for record in records:
            try:
                self._write([record])
            except (sqlalchemy.exc.SQLAlchemyError, ConnectError) as alone:
                reporter.report(record, alone).result()
