"""Connectors that tests control: a counter, one that fails when told, and a sink with its offsets in its database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from moldau.connect.api import (
    ConfigDef,
    ConfigType,
    ConnectError,
    ExactlyOnceSupport,
    RetriableError,
    Setting,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TopicPartition,
    at_least,
)


class Counter(SourceConnector):
    """Counts from 0 in each of `parts` parts, `batch` numbers at a time, up to `limit`."""

    config_def = ConfigDef(
        Setting("topic", ConfigType.STRING, "Where the numbers go."),
        Setting("parts", ConfigType.INT, "How many counters.", default=1, valid=at_least(1)),
        Setting("limit", ConfigType.INT, "Where each stops.", default=1000),
        Setting("batch", ConfigType.INT, "Numbers of a poll.", default=10),
        Setting("secret", ConfigType.PASSWORD, "Not used.", default=None),
        Setting("fail.while", ConfigType.STRING, "Tasks fail while this file is there.", default=None),
        Setting("pause.ms", ConfigType.INT, "The pause before each poll.", default=0),
    )

    def task_class(self) -> type[SourceTask]:
        return CounterTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        parts = int(self.settings.get("parts", "1"))
        count = min(max_tasks, parts)
        return [
            {**self.settings, "mine": ",".join(str(part) for part in range(parts) if part % count == number)}
            for number in range(count)
        ]

    def exactly_once_support(self, settings: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


class CounterTask(SourceTask):
    def start(self, settings: Mapping[str, str]) -> None:
        self._settings = Counter.config_def.parse(settings)
        self._fail_file = settings.get("fail.while")
        self._parts = settings["mine"].split(",")
        found = self.context.offset_reader.offsets([{"part": part} for part in self._parts])
        self._next = {part: 0 if one is None else one["next"] for part, one in zip(self._parts, found, strict=True)}
        self._check()

    def _check(self) -> None:
        if self._fail_file is not None and Path(self._fail_file).exists() and "0" in self._parts:
            raise ConnectError(f"told to fail, and the secret is {self._settings['secret']}")

    def poll(self) -> list[SourceRecord] | None:
        self._check()
        records = []
        self.context.wait(self._settings["pause.ms"] / 1000)
        for part in self._parts:
            first = self._next[part]
            last = min(first + self._settings["batch"], self._settings["limit"])
            records += [
                SourceRecord(
                    topic=self._settings["topic"],
                    value=f"{part}:{number}",
                    source_partition={"part": part},
                    source_offset={"next": number + 1},
                )
                for number in range(first, last)
            ]
            self._next[part] = max(first, last)
        if not records:
            self.context.wait(0.1)
        return records


class DatabaseSink(SinkConnector):
    """Rows into `database`, with the offsets in the same transaction; retries while the file `away` is there."""

    config_def = ConfigDef(
        Setting("database", ConfigType.STRING, "An SQLite file."),
        Setting("away", ConfigType.STRING, "The database is away while this file is there.", default=None),
        Setting("poison", ConfigType.STRING, "A value that cannot be stored.", default=None),
    )

    def task_class(self) -> type[SinkTask]:
        return DatabaseTask


class DatabaseTask(SinkTask):
    def start(self, settings: Mapping[str, str]) -> None:
        self._away = settings.get("away")
        self._poison = settings.get("poison")
        self._database = sqlite3.connect(
            settings["database"], timeout=60, isolation_level=None, check_same_thread=False
        )
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS rows (value TEXT, place TEXT)")
        self._database.execute("CREATE TABLE IF NOT EXISTS offsets (place TEXT PRIMARY KEY, next INTEGER)")

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        self.context.rewind({one: stored for one in partitions if (stored := self._stored(one)) is not None})

    def _stored(self, place: TopicPartition) -> int | None:
        row = self._database.execute("SELECT next FROM offsets WHERE place = ?", (str(place),)).fetchone()
        return None if row is None else int(row[0])

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        if self._away is not None and Path(self._away).exists():
            self.context.set_timeout(50)
            raise RetriableError("the database is away")
        self._database.execute("BEGIN IMMEDIATE")
        try:
            for record in records:
                self._store(record)
            self._database.execute("COMMIT")
        except BaseException:
            self._database.execute("ROLLBACK")
            raise

    def _store(self, record: SinkRecord) -> None:
        place, value = record.topic_partition, str(record.value)
        if (self._stored(place) or 0) > record.offset:
            return  # another task was faster
        if value == self._poison:
            reporter = self.context.errant_record_reporter
            if reporter is None:
                raise ConnectError(f"{value} cannot be stored")
            reporter.report(record, ConnectError(f"{value} cannot be stored"))
        else:
            self._database.execute("INSERT INTO rows VALUES (?, ?)", (value, str(place)))
        self._database.execute("INSERT OR REPLACE INTO offsets VALUES (?, ?)", (str(place), record.offset + 1))

    def stop(self) -> None:
        self._database.close()


def rows(database: str | Path) -> list[str]:
    """The values that a `DatabaseSink` has stored so far."""
    if not Path(database).exists():
        return []
    connection = sqlite3.connect(database, timeout=60)
    try:
        found: list[Any] = connection.execute("SELECT value FROM rows").fetchall()
    except sqlite3.OperationalError:
        return []  # the table is not there yet
    finally:
        connection.close()
    return [str(value) for (value,) in found]
