"""Databases for the JDBC connectors: SQLite in a file, PostgreSQL and MariaDB from Debian on free ports.

Each server is started in a folder of its own and stopped at the end; where it is not installed, its tests are skipped
with the reason. Start at `Server`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy
from tests.free_ports import free_port

from moldau.connect.connectors.jdbc.database import sqlalchemy_url

__all__ = ["KINDS", "Server", "running"]

KINDS = ("sqlite", "postgresql", "mariadb")


@dataclass(frozen=True)
class Server:
    """A database that can be reached."""

    kind: str
    url: str
    """As JDBC writes it."""

    settings: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    def engine(self) -> sqlalchemy.Engine:
        url = sqlalchemy_url(self.url)
        if "connection.user" in self.settings:
            url = url.set(username=self.settings["connection.user"])
        return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)

    def run(self, *statements: str) -> None:
        """Run SQL in one transaction."""
        with self.engine().begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with self.engine().connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]


@contextmanager
def running(kind: str, folder: Path) -> Iterator[Server]:
    """A server of that kind, ready for connections."""
    if kind == "sqlite":
        url = f"jdbc:sqlite:{folder / 'test.db'}"
        yield Server(kind, url, {"connection.url": url})
        return
    start = _postgresql if kind == "postgresql" else _mariadb
    server = start(folder)
    try:
        _wait_until_ready(server)
        yield server
    finally:
        assert server.process is not None
        server.process.terminate()
        server.process.wait(60)


def _user() -> str | None:
    """PostgreSQL refuses to run as root; tests in a container often do."""
    return "postgres" if os.geteuid() == 0 else None


def _postgresql(folder: Path) -> Server:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed (Debian, Ubuntu: apt-get install postgresql)")
    binaries, data, port, user = found[-1].parent, folder / "data", free_port(), _user()
    data.mkdir(mode=0o700)
    if user is not None:
        os.chown(data, pwd.getpwnam(user).pw_uid, -1)
        for parent in (folder, *folder.parents):
            if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
                parent.chmod(parent.stat().st_mode | 0o011)
    command = [str(binaries / "initdb"), "-D", str(data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(command, check=True, user=user, capture_output=True, cwd="/")
    options = ["-p", str(port), "-h", "127.0.0.1", "-k", str(data), "-F"]
    process = subprocess.Popen(
        [str(binaries / "postgres"), "-D", str(data), *options],
        user=user,
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"jdbc:postgresql://127.0.0.1:{port}/postgres"
    settings = {"connection.url": url, "connection.user": "tester", "connection.password": "unused"}
    return Server("postgresql", url, settings, process)


def _mariadb(folder: Path) -> Server:
    install, server = shutil.which("mariadb-install-db"), shutil.which("mariadbd") or "/usr/sbin/mariadbd"
    if install is None or not Path(server).exists():
        pytest.skip("MariaDB is not installed (Debian, Ubuntu: apt-get install mariadb-server)")
    data, port = folder / "data", free_port()
    user = pwd.getpwuid(os.geteuid()).pw_name
    command = [
        install,
        "--no-defaults",
        f"--datadir={data}",
        f"--user={user}",
        "--auth-root-authentication-method=normal",
    ]
    subprocess.run([*command, "--skip-test-db"], check=True, capture_output=True)
    socket = Path("/tmp") / f"moldau-mariadb-{port}.sock"
    process = subprocess.Popen(
        [
            *(server, "--no-defaults", f"--datadir={data}", f"--user={user}", f"--port={port}"),
            *("--bind-address=127.0.0.1", f"--socket={socket}", f"--pid-file={folder / 'pid'}"),
            *("--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    admin = Server("mariadb", f"jdbc:mariadb://127.0.0.1:{port}/mysql", {"connection.user": "root"}, process)
    _wait_until_ready(admin)
    admin.run("CREATE DATABASE shop CHARACTER SET utf8mb4")
    url = f"jdbc:mariadb://127.0.0.1:{port}/shop"
    return Server("mariadb", url, {"connection.url": url, "connection.user": "root"}, process)


def _wait_until_ready(server: Server, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            server.rows("SELECT 1")
        except sqlalchemy.exc.SQLAlchemyError:
            assert server.process is None or server.process.poll() is None, f"{server.kind} ended by itself"
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
