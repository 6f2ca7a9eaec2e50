"""A database: its engine from a `jdbc:` or SQLAlchemy URL, and what differs from one kind to another.

PostgreSQL, MySQL and MariaDB, and SQLite have dialects here; others that SQLAlchemy knows get the standard one.
Start at `open_database`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlalchemy
from sqlalchemy.engine import URL, Connection, Engine, make_url

from moldau.connect.api.config_def import ConfigType, Importance, Setting, Validator, at_least, not_empty
from moldau.connect.api.errors import ConnectError, NotAllowedError
from moldau.connect.api.limits import Limits

__all__ = ["CONNECTION_SETTINGS", "Database", "open_database", "sqlalchemy_url"]

DRIVERS: Final = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "sqlite": "sqlite",
}
PASSED_ON: Final = (
    "connection.url",
    "connection.user",
    "connection.password",
    "connection.attempts",
    "connection.backoff.ms",
)


def zone_problem(value: str) -> str | None:
    """For settings: whether a time zone exists."""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError):
        return "is not a time zone, as in Europe/Prague"
    return None


def _url_problem(value: str) -> str | None:
    """For settings: why a URL names no database; never the URL itself, which may have a password in it."""
    if not value or "${" in value:  # a reference that was not resolved
        return not_empty(value)
    try:
        sqlalchemy_url(value)
    except ConnectError as error:
        return str(error)
    return None


def _setting(name: str, kind: ConfigType, doc: str, default: Any, valid: Validator | None = None) -> Setting:
    return Setting(name, kind, doc, default, valid, group="Database", importance=Importance.MEDIUM)


CONNECTION_SETTINGS: Final = (
    Setting(
        "connection.url",
        ConfigType.STRING,
        "The database, as jdbc:postgresql://host/db, jdbc:mysql://host/db, jdbc:sqlite:/path, or as for SQLAlchemy.",
        valid=_url_problem,
        group="Database",
    ),
    _setting("connection.user", ConfigType.STRING, "The user.", None),
    _setting("connection.password", ConfigType.PASSWORD, "The password.", None),
    _setting("connection.attempts", ConfigType.INT, "How often to try to connect.", 3, at_least(1)),
    _setting("connection.backoff.ms", ConfigType.LONG, "Wait between attempts.", 10_000, at_least(0)),
    _setting("dialect.name", ConfigType.STRING, "Accepted; the URL says which database it is.", ""),
    _setting("db.timezone", ConfigType.STRING, "Zone of times without one.", "UTC", zone_problem),
    _setting("quote.sql.identifiers", ConfigType.STRING, "always or never.", "always"),
)


def sqlalchemy_url(text: str) -> URL:
    """The URL for SQLAlchemy; raises `ConnectError` for one that cannot be understood."""
    if not text.startswith("jdbc:"):
        try:
            return make_url(text)
        except sqlalchemy.exc.ArgumentError:
            raise ConnectError(
                "connection.url is neither a JDBC URL (jdbc:postgresql://host/db) nor one of SQLAlchemy"
            ) from None
    kind, _, rest = text[len("jdbc:") :].partition(":")
    if kind == "sqlite":
        return URL.create("sqlite", database=rest.split("?")[0] or ":memory:")
    if kind not in DRIVERS:
        raise ConnectError(
            f"connection.url: databases of kind {kind} are not known here; known are {', '.join(DRIVERS)}"
        )
    parts = urlsplit(f"{kind}:{rest}")
    query = dict(parse_qsl(parts.query))
    try:
        port = parts.port
    except ValueError:
        raise ConnectError("connection.url: the port is not a number") from None
    return URL.create(
        DRIVERS[kind],
        username=parts.username or query.get("user"),
        password=parts.password or query.get("password"),
        host=parts.hostname or "localhost",
        port=port,
        database=parts.path.lstrip("/") or None,
    )


@dataclass(slots=True)
class Database:
    """An engine and the dialect's differences."""

    engine: Engine
    kind: str
    """`postgresql`, `mysql`, `sqlite`, or another of SQLAlchemy's names."""

    zone: tzinfo
    quotes: bool = True

    @property
    def mark(self) -> str:
        """A parameter in SQL text."""
        return "?" if self.engine.dialect.paramstyle == "qmark" else "%s"

    def quote(self, name: str) -> str:
        """A name of a table or column in SQL text."""
        if not self.quotes:
            return name
        mark = "`" if self.kind == "mysql" else '"'
        quoted = f"{mark}{name.replace(mark, mark * 2)}{mark}"
        return quoted.replace("%", "%%") if self.mark == "%s" else quoted

    def literal_sql(self, text: str) -> str:
        """A user's SQL text, to be run with parameters."""
        return text.replace("%", "%%") if self.mark == "%s" else text

    def now(self, connection: Connection) -> datetime:
        """The time of the database, with a zone."""
        query = {
            "mysql": "SELECT UTC_TIMESTAMP(6)",
            "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')",
        }.get(self.kind, "SELECT CURRENT_TIMESTAMP")
        found: Any = connection.exec_driver_sql(query).scalar_one()
        if isinstance(found, str):
            found = datetime.fromisoformat(found)
        moment: datetime = found.replace(tzinfo=UTC) if found.tzinfo is None else found
        return moment

    def local(self, moment: datetime) -> datetime:
        """A moment as the database's columns without zone hold it."""
        return moment.astimezone(self.zone).replace(tzinfo=None)


def open_database(values: Mapping[str, Any], settings: Mapping[str, str], limits: Limits) -> Database:
    """The database that settings describe, not connected yet; raises `ConnectError` or `NotAllowedError`."""
    url = sqlalchemy_url(values["connection.url"])
    kind = url.get_backend_name().replace("mariadb", "mysql")
    if kind == "sqlite":
        if url.database not in (None, "", ":memory:"):
            limits.check_path(url.database or "")
    elif url.host is None:
        raise NotAllowedError("connection.url names no host")
    else:
        limits.check_host(url.host, url.port)
    if values["connection.user"] is not None:
        url = url.set(username=values["connection.user"])
    if values["connection.password"] is not None:
        url = url.set(password=values["connection.password"])
    options = {
        key.removeprefix("connection."): value
        for key, value in settings.items()
        if key.startswith("connection.") and key not in PASSED_ON
    }
    arguments: dict[str, Any] = dict(options)
    if kind == "sqlite":
        arguments = {"timeout": 30.0, "check_same_thread": False}
    try:
        engine = sqlalchemy.create_engine(url, connect_args=arguments, pool_pre_ping=True, pool_size=2)
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:
        raise ConnectError(f"connection.url: {error}") from error
    if kind == "mysql":
        sqlalchemy.event.listen(engine, "connect", lambda connection, _record: _set_utc(connection))
    return Database(engine, kind, ZoneInfo(values["db.timezone"]), values["quote.sql.identifiers"] != "never")


def _set_utc(connection: Any) -> None:
    # TIMESTAMP columns of MySQL are shown in the session's zone, without naming it.
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
