"""What the server remembers of migrations: a stream of events, and a table with the latest of each version.

The tool reads the stream, because its own events must be seen at once; the table is for people and other tools.
Start at `MigrationLog`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.cli.ksql.migrations.project import MigrationFile, Project
from moldau.cli.tool import ToolError

__all__ = ["CURRENT", "Event", "MigrationLog", "Server", "latest_events"]

CURRENT = "CURRENT"
NONE = "<none>"
MIGRATED, RUNNING, ERROR = "MIGRATED", "RUNNING", "ERROR"
COLUMNS = (
    "VERSION_KEY",
    "VERSION",
    "NAME",
    "STATE",
    "CHECKSUM",
    "STARTED_ON",
    "COMPLETED_ON",
    "PREVIOUS",
    "ERROR_REASON",
)


class Server(Protocol):
    """What migrations need of a ksql server."""

    def info(self) -> Mapping[str, Any]: ...

    def run(self, statements: str, properties: Mapping[str, str] | None = None) -> list[Any]: ...

    def rows(self, query: str) -> list[list[Any]]: ...


@dataclass(frozen=True, slots=True)
class Event:
    """A migration began, succeeded or failed."""

    version_key: str
    version: str
    name: str
    state: str
    checksum: str
    started_on: str
    completed_on: str
    previous: str
    error_reason: str


def latest_events(rows: Iterable[Iterable[Any]]) -> dict[str, Event]:
    """The latest event of each version, and of CURRENT; rows are in the order in which they were written."""
    found = (Event(*("" if cell is None else str(cell) for cell in row)) for row in rows)
    return {event.version_key: event for event in found}


class MigrationLog:
    """The events on a server."""

    def __init__(self, project: Project, server: Server) -> None:
        self._project, self._server = project, server

    def create(self) -> None:
        """Make the stream and the table; raises `ToolError` if one is there."""
        self._check_absent()
        project = self._project
        service_id = str(self._server.info().get("ksqlServiceId", ""))
        columns = ", ".join(f"{name} STRING{' KEY' if name == 'VERSION_KEY' else ''}" for name in COLUMNS)
        latest = ", ".join(f"LATEST_BY_OFFSET({name}) AS {name}" for name in COLUMNS[1:])
        stream_topic = _text(project.topic(project.stream, "stream", service_id))
        table_topic = _text(project.topic(project.table, "table", service_id))
        self._server.run(
            f"CREATE STREAM {project.stream} ({columns}) WITH (KAFKA_TOPIC = {stream_topic}, VALUE_FORMAT = 'JSON', "
            f"PARTITIONS = 1, REPLICAS = {project.replicas});"
        )
        self._server.run(
            f"CREATE TABLE {project.table} WITH (KAFKA_TOPIC = {table_topic}) AS "
            f"SELECT VERSION_KEY, {latest} FROM {project.stream} GROUP BY VERSION_KEY;",
            {"auto.offset.reset": "earliest"},
        )

    def destroy(self) -> None:
        """Remove table and stream with their topics; what is not there is left out."""
        self._server.run(f"DROP TABLE IF EXISTS {self._project.table} DELETE TOPIC;")
        self._server.run(f"DROP STREAM IF EXISTS {self._project.stream} DELETE TOPIC;")

    def _check_absent(self) -> None:
        if self.exists():
            raise ToolError(f"the metadata exists already: {self._project.stream}, or {self._project.table}")

    def exists(self) -> bool:
        documents = self._server.run("SHOW STREAMS; SHOW TABLES;")
        names = {str(one["name"]) for answer in documents for one in answer.get("streams", answer.get("tables", ()))}
        return bool(names & {self._project.stream, self._project.table})

    def events(self) -> dict[str, Event]:
        """The latest events; raises `ToolError` without metadata."""
        if not self.exists():
            raise ToolError("the server has no metadata of migrations: run `ksql-migrations initialize-metadata` first")
        return latest_events(self._server.rows(f"SELECT {', '.join(COLUMNS)} FROM {self._project.stream};"))

    def record(self, migration: MigrationFile, state: str, previous: str, started_on: str, error: str = "") -> None:
        """Write what happened to a migration, for its version and as the current one."""
        completed_on = "" if state == RUNNING else now_ms()
        for key in (CURRENT, str(migration.version)):
            values = (
                key,
                str(migration.version),
                migration.name,
                state,
                migration.checksum,
                started_on,
                completed_on,
                previous,
                error,
            )
            self._server.run(
                f"INSERT INTO {self._project.stream} ({', '.join(COLUMNS)}) "
                f"VALUES ({', '.join(_text(value) for value in values)});"
            )


def now_ms() -> str:
    return str(time.time_ns() // 1_000_000)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def parsed_rows(elements: Iterable[bytes]) -> list[list[Any]]:
    """The rows of a query's answer; raises `ToolError` for an error in it."""
    rows = []
    for element in elements:
        document = json.loads(element)
        if "errorMessage" in document:
            raise ToolError(str(document["errorMessage"].get("message")))
        if "row" in document:
            rows.append(document["row"]["columns"])
    return rows
