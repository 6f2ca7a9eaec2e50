"""The demo's database: a table of orders in SQLite or PostgreSQL, and a thread that inserts more of them.

What the table says is what every other part of the demo is checked against. Start at `Shop`.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any, Final

import sqlalchemy
from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table
from sqlalchemy.engine import URL, Engine

from moldau.cli.tool import ToolError
from moldau.connect.api.errors import ConnectError
from moldau.connect.connectors.jdbc.database import sqlalchemy_url

__all__ = ["TABLE", "Shop", "Totals"]

TABLE: Final = "orders"
EARLIER: Final = 5_000
"""Orders that are in the table before anything else starts."""
SLICE_S: Final = 0.05
"""One transaction this often, with all orders of that time."""
COUNTRIES: Final = ("Czechia", "Germany", "France", "Italy", "Poland", "Austria", "Spain", "Portugal")
PRODUCTS: Final = {
    "tea": 450,
    "coffee": 890,
    "bread": 320,
    "cheese": 1250,
    "maps": 1990,
    "lamps": 7900,
    "chairs": 12900,
}
"""With their prices in cents."""

Totals = dict[str, tuple[int, int]]
"""How many orders there are, and their cents, by country or product."""


class Shop:
    """The table, filled at a steady rate from `start` to `stop`."""

    def __init__(self, url: str | None, folder: Path, rate: int) -> None:
        self.url = _url_of(url, folder)
        self._engine = _engine_of(self.url)
        self.rate = rate
        self._random = random.Random(7)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-shop", daemon=True)
        self._table = Table(
            TABLE,
            MetaData(),
            Column("id", Integer().with_variant(BigInteger(), "postgresql"), primary_key=True),
            Column("country", String(40), nullable=False),
            Column("product", String(40), nullable=False),
            Column("cents", BigInteger, nullable=False),
            Column("placed_ms", BigInteger, nullable=False),
            sqlite_autoincrement=True,
        )
        self._is_made = False
        self.inserted = 0
        self.failure: str | None = None

    @property
    def kind(self) -> str:
        return {"sqlite": "SQLite", "postgresql": "PostgreSQL"}.get(
            self._engine.dialect.name, self._engine.dialect.name
        )

    def make(self) -> None:
        """Create the table with the orders of earlier days."""
        try:
            if sqlalchemy.inspect(self._engine).has_table(TABLE):
                raise ToolError(
                    f"{self.url.render_as_string()} has a table {TABLE!r} already, which the demo will not touch; "
                    "name another database with --database"
                )
            self._table.create(self._engine)
            self._is_made = True
            self._insert(EARLIER)
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise ToolError(f"the database cannot be used: {_first_line(error)}") from None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Insert no more; what `inserted` says then is final."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def close(self, *, drop: bool) -> None:
        self.stop()
        if drop and self._is_made and self._engine.dialect.name != "sqlite":
            try:
                self._table.drop(self._engine)
            except sqlalchemy.exc.SQLAlchemyError:
                pass  # the database is away; there is nobody to tell
        self._engine.dispose()

    def totals(self, column: str) -> Totals:
        """The truth: what the table says."""
        by = self._table.c[column]
        query = sqlalchemy.select(by, sqlalchemy.func.count(), sqlalchemy.func.sum(self._table.c.cents)).group_by(by)
        with self._engine.connect() as connection:
            return {str(name): (int(count), int(cents)) for name, count, cents in connection.execute(query)}

    def _run(self) -> None:
        began, sent = time.monotonic(), 0
        while not self._stopping.wait(SLICE_S):
            due = round((time.monotonic() - began) * self.rate) - sent
            try:
                self._insert(due)
            except sqlalchemy.exc.SQLAlchemyError as error:
                self.failure = f"the shop cannot insert orders any more: {_first_line(error)}"
                return
            sent += due

    def _insert(self, count: int) -> None:
        if count <= 0:
            return
        now = time.time_ns() // 1_000_000
        products = self._random.choices(list(PRODUCTS), k=count)
        countries = self._random.choices(COUNTRIES, [1 / (rank + 2) for rank in range(len(COUNTRIES))], k=count)
        rows: list[dict[str, Any]] = [
            {"country": country, "product": product, "cents": PRODUCTS[product], "placed_ms": now}
            for country, product in zip(countries, products, strict=True)
        ]
        with self._engine.begin() as connection:
            connection.execute(self._table.insert(), rows)
        self.inserted += count


def _url_of(text: str | None, folder: Path) -> URL:
    if text is None:
        return URL.create("sqlite", database=str(folder / "shop.db"))
    try:
        url = sqlalchemy_url(text)
    except ConnectError as error:
        raise ToolError(f"--database: {error}") from None
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgresql", "postgres") else url


def _engine_of(url: URL) -> Engine:
    try:
        engine = sqlalchemy.create_engine(url)
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:
        raise ToolError(f"--database: {_first_line(error)}") from None
    if url.get_backend_name() == "sqlite":
        # Readers, and Connect is one, then never wait for the writer.
        sqlalchemy.event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA journal_mode=WAL"))
    return engine


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
