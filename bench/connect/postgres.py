"""A PostgreSQL of its own for a measurement, on a free port of the loopback interface. Start at `Postgres`."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

from bench.brokers import end
from bench.connect.records import COLUMN_TYPES

__all__ = ["Postgres"]

USER = "bench"


class Postgres:
    """A server whose data are in a folder; nothing is left of it on exit."""

    def __init__(self, folder: Path, port: int) -> None:
        self._data, self._port = folder, port
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Postgres:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not found:
            raise RuntimeError("PostgreSQL is not installed (Debian, Ubuntu: apt-get install postgresql)")
        binaries, user = found[-1].parent, "postgres" if os.geteuid() == 0 else None
        self._data.mkdir(mode=0o700, parents=True)
        if user is not None:  # PostgreSQL refuses to run as root
            os.chown(self._data, pwd.getpwnam(user).pw_uid, -1)
            for parent in self._data.parents:
                if parent.name.startswith("moldau-bench-"):
                    parent.chmod(0o755)
        init = [str(binaries / "initdb"), "-D", str(self._data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(init, check=True, user=user, capture_output=True, cwd="/")
        options = ["-p", str(self._port), "-h", "127.0.0.1", "-k", str(self._data), "-F", "-c", "shared_buffers=512MB"]
        self._process = subprocess.Popen(
            [str(binaries / "postgres"), "-D", str(self._data), *options],
            user=user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            end(self._process)

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self._port}/postgres"

    @property
    def settings(self) -> dict[str, str]:
        """Of a JDBC connector."""
        return {"connection.url": self.jdbc_url, "connection.user": USER, "connection.password": "unused"}

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(f"host=127.0.0.1 port={self._port} user={USER} dbname=postgres", autocommit=True)

    def run(self, *statements: str) -> None:
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def value(self, query: str) -> Any:
        with self.connect() as connection:
            row = connection.execute(query.encode()).fetchone()
            return None if row is None else row[0]

    def make_table(self, name: str, rows: int = 0) -> None:
        """A table of orders, with so many rows."""
        self.run(f"CREATE TABLE {name} ({COLUMN_TYPES}, PRIMARY KEY (id))")
        if rows:
            self.run(
                f"INSERT INTO {name} SELECT i, i % 9973, 'item-' || i % 997, i % 1000 / 4.0, i % 17, i % 2 = 0, "
                f"'order number ' || i || ' of some customer' FROM generate_series(1, {rows}) i",
                f"VACUUM ANALYZE {name}",
            )

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                self.run("SELECT 1")
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return
