"""The JDBC source: rows of tables, or of a query, as records; new and dropped tables are noticed.

The connector watches which tables there are and spreads them over the tasks; a task goes round its tables, one query
at a time. Start at `JdbcSourceTask.poll`; the queries are in `querying`.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import sqlalchemy

from moldau.connect.api.config_def import ConfigDef, ConfigType, ConfigValue, Importance, Setting, at_least, one_of
from moldau.connect.api.connector import ExactlyOnceSupport, SourceConnector, SourceTask
from moldau.connect.api.errors import ConnectError
from moldau.connect.api.records import SourceRecord
from moldau.connect.connectors.jdbc.database import CONNECTION_SETTINGS, Database, open_database
from moldau.connect.connectors.jdbc.querying import Querier, Target

__all__ = ["JdbcSourceConnector", "JdbcSourceTask"]

MODES: Final = ("bulk", "incrementing", "timestamp", "timestamp+incrementing")
GRANULARITIES: Final = (
    "connect_logical",
    *(f"{unit}_{form}" for unit in ("micros", "nanos") for form in ("long", "string", "iso_datetime_string")),
)
TASK_TABLES: Final = "moldau.task.tables"
LOW, MEDIUM = Importance.LOW, Importance.MEDIUM
LONGEST_WAIT_SECONDS: Final = 0.5

log = logging.getLogger(__name__)

CONFIG: Final = ConfigDef(
    *CONNECTION_SETTINGS,
    Setting("table.whitelist", ConfigType.LIST, "Tables to read.", [], importance=MEDIUM, group="Tables"),
    Setting("table.blacklist", ConfigType.LIST, "Tables not to read.", [], importance=MEDIUM, group="Tables"),
    Setting("table.include.list", ConfigType.LIST, "Patterns of full names to read.", [], importance=MEDIUM),
    Setting("table.exclude.list", ConfigType.LIST, "Patterns of full names not to read.", [], importance=MEDIUM),
    Setting("table.types", ConfigType.LIST, "TABLE, VIEW.", ["TABLE"], importance=LOW),
    Setting("catalog.pattern", ConfigType.STRING, "Accepted; the URL names the database.", None, importance=LOW),
    Setting("schema.pattern", ConfigType.STRING, "The schema to look for tables in.", None, importance=LOW),
    Setting("mode", ConfigType.STRING, "How new and changed rows are found.", "", one_of("", *MODES), group="Mode"),
    Setting("incrementing.column.name", ConfigType.STRING, "A column whose values only grow.", "", importance=MEDIUM),
    Setting("timestamp.column.name", ConfigType.LIST, "Columns with the time of change.", [], importance=MEDIUM),
    Setting(
        "timestamp.initial", ConfigType.LONG, "Where to start, in ms since the epoch; -1 is now.", None, importance=LOW
    ),
    Setting("timestamp.delay.interval.ms", ConfigType.LONG, "Rows younger than this wait.", 0, at_least(0)),
    Setting(
        "timestamp.granularity",
        ConfigType.STRING,
        "How moments are written.",
        "connect_logical",
        one_of(*GRANULARITIES),
        LOW,
    ),
    Setting(
        "validate.non.null", ConfigType.BOOLEAN, "Whether the mode's columns must be NOT NULL.", True, importance=LOW
    ),
    Setting(
        "query", ConfigType.STRING, "A query in place of tables.", "", synonyms=("query.masked",), importance=MEDIUM
    ),
    Setting("query.suffix", ConfigType.STRING, "Text at the end of each query.", "", importance=LOW),
    Setting(
        "query.retry.attempts",
        ConfigType.INT,
        "How often a failed query is tried again; -1 is for ever.",
        -1,
        importance=LOW,
    ),
    Setting(
        "numeric.mapping",
        ConfigType.STRING,
        "How NUMERIC is read.",
        "none",
        one_of("none", "precision_only", "best_fit", "best_fit_eager_double"),
        LOW,
    ),
    Setting(
        "numeric.precision.mapping",
        ConfigType.BOOLEAN,
        "Old name of numeric.mapping=precision_only.",
        False,
        importance=LOW,
    ),
    Setting("topic.prefix", ConfigType.STRING, "Before the table's name; with query, the whole topic."),
    Setting("poll.interval.ms", ConfigType.INT, "Wait between queries of a table.", 5000, at_least(0)),
    Setting("batch.max.rows", ConfigType.INT, "Most rows of one batch.", 1000, at_least(1), LOW),
    Setting("table.poll.interval.ms", ConfigType.LONG, "How often to look for new tables.", 60_000, at_least(1), LOW),
    Setting("poll.linger.ms", ConfigType.LONG, "Accepted; a batch never waits to be filled.", 5000, importance=LOW),
    Setting(
        "transaction.isolation.mode",
        ConfigType.STRING,
        "Accepted; the database's default is used.",
        "DEFAULT",
        importance=LOW,
    ),
    Setting(
        "date.calendar.system",
        ConfigType.STRING,
        "Accepted; the calendar is the Gregorian one.",
        "LEGACY",
        importance=LOW,
    ),
)


def parsed(settings: Mapping[str, str]) -> dict[str, Any]:
    """Typed settings, with old names as the new ones."""
    values = CONFIG.parse(settings)
    if values["numeric.precision.mapping"] and values["numeric.mapping"] == "none":
        values["numeric.mapping"] = "precision_only"
    return values


class JdbcSourceConnector(SourceConnector):
    """`io.confluent.connect.jdbc.JdbcSourceConnector`."""

    plugin_name = "io.confluent.connect.jdbc.JdbcSourceConnector"
    config_def: ClassVar[ConfigDef] = CONFIG

    def validate(self, settings: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(settings)
        by_name = {value.name: value for value in values}
        for key, problem in _problems_together(settings):
            by_name[key].errors.append(problem)
        return values

    def exactly_once_support(self, settings: Mapping[str, str]) -> ExactlyOnceSupport:
        # In the other modes rows may be read twice: a bulk read has no offsets, and a moment may have several rows.
        is_exact = "incrementing" in settings.get("mode", "")
        return ExactlyOnceSupport.SUPPORTED if is_exact else ExactlyOnceSupport.UNSUPPORTED

    def task_class(self) -> type[SourceTask]:
        return JdbcSourceTask

    def start(self, settings: Mapping[str, str]) -> None:
        super().start(settings)
        self._values = parsed(settings)
        self._database = open_database(self._values, settings, self.context.limits)
        self._watcher: threading.Thread | None = None
        self._stop = threading.Event()
        self._tables: list[Target] = []
        if self._values["query"]:
            return
        self._tables = self._find_tables_patiently()
        self._watcher = threading.Thread(target=self._watch, name=f"tables of {settings.get('name')}", daemon=True)
        self._watcher.start()

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        if self._values["query"]:
            return [dict(self.settings)]
        names = [table.full_name for table in self._tables]
        count = min(len(names), max_tasks)
        return [{**self.settings, TASK_TABLES: json.dumps(names[number::count])} for number in range(count)]

    def stop(self) -> None:
        if hasattr(self, "_stop"):
            self._stop.set()
            if self._watcher is not None:
                self._watcher.join(30)
            self._database.engine.dispose()

    def alter_offsets(
        self, settings: Mapping[str, str], offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        for partition, offset in offsets:
            if set(partition) not in ({"protocol", "table"}, {"table"}, {"query"}):
                raise ConnectError(f"Source partition {dict(partition)} must have 'protocol' and 'table', or 'query'")
            unknown = set(offset or {}) - {"incrementing", "timestamp", "timestamp_nanos"}
            if unknown:
                raise ConnectError(f"The offset has {', '.join(sorted(unknown))}; known are incrementing and timestamp")
        return True

    def _find_tables_patiently(self) -> list[Target]:
        """At the start the database gets several chances."""
        attempts: int = self._values["connection.attempts"]
        for attempt in range(1, attempts + 1):
            try:
                return self._find_tables()
            except sqlalchemy.exc.SQLAlchemyError as error:
                if attempt == attempts:
                    raise ConnectError(
                        f"the database cannot be reached: {_short(error)}; check connection.url"
                    ) from error
                log.warning("the database cannot be reached (attempt %d of %d): %s", attempt, attempts, _short(error))
                if self.context.wait(self._values["connection.backoff.ms"] / 1000):
                    break
        return []

    def _find_tables(self) -> list[Target]:
        return find_tables(self._database, self._values)

    def _watch(self) -> None:
        while not self._stop.wait(self._values["table.poll.interval.ms"] / 1000):
            try:
                found = self._find_tables()
            except sqlalchemy.exc.SQLAlchemyError as error:
                log.warning("the tables cannot be listed, will retry: %s", _short(error))
                continue
            except ConnectError as error:
                self.context.raise_error(error)
                return
            if found != self._tables:
                log.info("the tables changed: %s", ", ".join(table.full_name for table in found))
                self._tables = found
                self.context.request_task_reconfiguration()


def _short(error: Exception) -> str:
    """The driver's own words: SQLAlchemy adds the statement with its values."""
    return str(getattr(error, "orig", None) or error).strip()


def _problems_together(settings: Mapping[str, str]) -> list[tuple[str, str]]:
    problems = []
    lists = [
        key
        for key in ("table.whitelist", "table.blacklist", "table.include.list", "table.exclude.list")
        if settings.get(key)
    ]
    mode, has_query = settings.get("mode", ""), bool(settings.get("query") or settings.get("query.masked"))
    if not mode:
        problems.append(("mode", f'Missing required configuration "mode": one of {", ".join(MODES)}'))
    if "table.whitelist" in lists and "table.blacklist" in lists:
        problems.append(("table.whitelist", "table.whitelist and table.blacklist are exclusive: set one of them"))
    if has_query and lists:
        problems.append(("query", f"query may not be combined with table lists: remove {', '.join(lists)}"))
    if "timestamp" in mode and not settings.get("timestamp.column.name"):
        problems.append(("timestamp.column.name", f"timestamp.column.name is needed for mode {mode}"))
    if has_query and "incrementing" in mode and not settings.get("incrementing.column.name"):
        problems.append(("incrementing.column.name", "incrementing.column.name is needed with a query"))
    for key in ("table.include.list", "table.exclude.list"):
        for pattern in (settings.get(key) or "").split(","):
            try:
                re.compile(pattern.strip())
            except re.error as error:
                problems.append((key, f"{key}: {pattern} is not a regular expression: {error}"))
    return problems


def find_tables(database: Database, values: Mapping[str, Any]) -> list[Target]:
    """The tables that the settings choose, in order; raises `ConnectError` if two would go to one topic."""
    with database.engine.connect() as connection:
        inspector = sqlalchemy.inspect(connection)
        found = []
        for schema in _schemas(inspector, database, values):
            names: list[str] = []
            if "TABLE" in values["table.types"]:
                names += inspector.get_table_names(schema=schema)
            if "VIEW" in values["table.types"]:
                names += inspector.get_view_names(schema=schema)
            for name in names:
                full = name if schema is None else f"{schema}.{name}"
                found.append(Target(values["topic.prefix"] + name, name, schema, full))
    chosen = sorted((one for one in found if _is_chosen(one, values)), key=lambda one: one.full_name)
    doubled = [name for name, count in Counter(one.table for one in chosen).items() if count > 1]
    if doubled:
        raise ConnectError(
            f"several tables have the name {', '.join(map(str, doubled))} and would go to one topic; choose one with "
            "schema.pattern or the table lists"
        )
    return chosen


def _schemas(inspector: Any, database: Database, values: Mapping[str, Any]) -> list[str | None]:
    pattern = values["schema.pattern"]
    if database.kind == "sqlite":
        return [None]
    if pattern and not set(pattern) & set("%_"):
        return [pattern]
    if database.kind == "mysql":
        return [inspector.default_schema_name]
    regex = re.compile(re.escape(pattern or "%").replace("%", ".*").replace("_", ".") if pattern else ".*")
    hidden = ("information_schema", "pg_catalog", "pg_toast")
    return [name for name in inspector.get_schema_names() if name not in hidden and regex.fullmatch(name)]


def _is_chosen(target: Target, values: Mapping[str, Any]) -> bool:
    names = {str(target.table), target.full_name}
    if values["table.whitelist"]:
        return bool(names & {_unquoted(one) for one in values["table.whitelist"]})
    if names & {_unquoted(one) for one in values["table.blacklist"]}:
        return False
    included, excluded = values["table.include.list"], values["table.exclude.list"]
    if included and not any(re.fullmatch(pattern, name) for pattern in included for name in names):
        return False
    return not any(re.fullmatch(pattern, name) for pattern in excluded for name in names)


def _unquoted(name: str) -> str:
    return re.sub(r'["`]', "", name)


class JdbcSourceTask(SourceTask):
    """Reads its tables in turn."""

    def start(self, settings: Mapping[str, str]) -> None:
        self._values = parsed(settings)
        self._database = open_database(self._values, settings, self.context.limits)
        self._failures = 0
        self._queriers: list[Querier] = []
        self._targets = self._task_targets(settings)

    def poll(self) -> list[SourceRecord] | None:
        try:
            if not self._queriers:
                self._queriers = [self._querier(target) for target in self._targets]
            querier = min(self._queriers, key=lambda one: (not one.is_open, one.due))
            if not querier.is_open:
                missing_s = querier.due - time.monotonic()
                if missing_s > 0:
                    self.context.wait(min(missing_s, LONGEST_WAIT_SECONDS))
                    return None
                querier.open()
            records = querier.records(self._values["batch.max.rows"])
        except sqlalchemy.exc.SQLAlchemyError as error:
            self._recover(error)
            return None
        self._failures = 0
        if not querier.is_open:
            querier.due = time.monotonic() + self._values["poll.interval.ms"] / 1000
        return records

    def stop(self) -> None:
        for querier in getattr(self, "_queriers", []):
            querier.close()
        if hasattr(self, "_database"):
            self._database.engine.dispose()

    def _task_targets(self, settings: Mapping[str, str]) -> list[Target]:
        prefix: str = self._values["topic.prefix"]
        if self._values["query"]:
            return [Target(prefix, None, query=self._values["query"], full_name="query")]
        targets = []
        for full in json.loads(settings.get(TASK_TABLES, "[]")):
            schema, dot, name = full.rpartition(".") if self._database.kind != "sqlite" else ("", "", full)
            targets.append(Target(prefix + name, name, schema if dot else None, full))
        return targets

    def _querier(self, target: Target) -> Querier:
        newest, old = self.context.offset_reader.offsets([target.partition, target.old_partition])
        return Querier(self._database, target, self._values, newest or old)

    def _recover(self, error: Exception) -> None:
        """Try again later, from the last row that was delivered; an error in the SQL itself is final."""
        for querier in self._queriers:
            querier.close()
        most: int = self._values["query.retry.attempts"]
        self._failures += 1
        is_final = isinstance(error, (sqlalchemy.exc.ProgrammingError, sqlalchemy.exc.NoSuchTableError))
        if is_final or (most >= 0 and self._failures > most):
            raise ConnectError(f"the query failed: {_short(error)}") from error
        log.warning("the database failed (%d times in a row), will retry: %s", self._failures, _short(error))
        self._database.engine.dispose()
        self.context.wait(min(LONGEST_WAIT_SECONDS, self._values["connection.backoff.ms"] / 1000))
