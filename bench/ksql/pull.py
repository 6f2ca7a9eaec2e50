"""Pull queries by key: latency of one connection, requests a second of sixteen, idle and while the query runs.

PostgreSQL, if its programs are installed, answers the same SELECT as a yardstick, through `pgbench`. Start at
`measured` and `postgres`.
"""

from __future__ import annotations

import multiprocessing
import os
import pwd
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

from bench.ksql.records import COLUMNS, Orders, make_topic
from bench.ksql.server import KsqlProcess, Session

__all__ = ["measured", "postgres"]

CONNECTIONS = 16
PATIENCE_S = 1800.0
Numbers = dict[str, float]


def measured(keys: int, *, bootstrap: str, folder: Path, requests: int) -> dict[str, Numbers]:
    """Of a table with so many keys: idle, and while orders come as fast as they can be written."""
    source = f"pull-in-{keys}"
    make_topic(bootstrap, source)
    Orders(bootstrap, source, keys).write(keys)
    with KsqlProcess(bootstrap, folder) as server:
        session = Session(server.url)
        session.statements(
            f"CREATE STREAM S ({COLUMNS}) WITH (KAFKA_TOPIC='{source}', VALUE_FORMAT='JSON');"
            "CREATE TABLE T AS SELECT ID, COUNT(*) AS N, MAX(PRICE) AS HIGHEST FROM S GROUP BY ID;"
        )
        _wait_for_rows(session, keys)
        idle = _asked(server, keys, requests)
        with _writing(bootstrap, source, keys):
            busy = _asked(server, keys, requests)
    return {"idle": idle, "busy": busy}


def _wait_for_rows(session: Session, keys: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    sample = random.Random(1).sample(range(keys), 50)
    for key in (*sample, keys - 1):
        while not session.rows(_select(key)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"key {key} is not in the table after {PATIENCE_S} s")
            time.sleep(0.5)


def _select(key: int) -> str:
    return f"SELECT * FROM T WHERE ID = 'key-{key:08d}';"


def _asked(server: KsqlProcess, keys: int, requests: int) -> Numbers:
    """Of one connection and of many; `cpu_ms` is the server's for a request, with all it does meanwhile."""
    url = server.url
    _ask(url, keys, requests // 5)
    before = server.own_cpu_s()
    found = sorted(_ask(url, keys, requests))
    cpu_ms = (server.own_cpu_s() - before) / requests * 1000
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        began = time.monotonic()
        each = requests // CONNECTIONS + 1
        list(pool.map(lambda _: _ask(url, keys, each), range(CONNECTIONS)))
        rate = CONNECTIONS * each / (time.monotonic() - began)
    return {
        "p50_ms": statistics.median(found),
        "p99_ms": found[int(len(found) * 0.99)],
        "cpu_ms": cpu_ms,
        "requests_per_s": rate,
    }


def _ask(url: str, keys: int, requests: int) -> list[float]:
    """The latencies in milliseconds of requests one after the other, for keys at random."""
    session = Session(url)
    found = []
    for _ in range(requests):
        query = _select(random.randrange(keys))
        began = time.monotonic()
        rows = session.rows(query)
        found.append((time.monotonic() - began) * 1000)
        assert len(rows) == 1, f"{query} has {len(rows)} rows"
    session.close()
    return found


@contextmanager
def _writing(bootstrap: str, source: str, keys: int) -> Iterator[None]:
    """Orders written in the background, by another process."""
    context = multiprocessing.get_context("spawn")
    is_over = context.Event()
    process = context.Process(target=_write_on, args=(bootstrap, source, keys, is_over), daemon=True)
    process.start()
    try:
        yield
    finally:
        is_over.set()
        process.join()


def _write_on(bootstrap: str, source: str, keys: int, is_over: Event) -> None:
    orders = Orders(bootstrap, source, keys)
    while not is_over.is_set():
        orders.write(5_000)


def postgres(keys: int, folder: Path, seconds: int) -> dict[str, Numbers] | None:
    """The same SELECT on PostgreSQL; None if it is not installed."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *map(Path, os.get_exec_path())]
    needed = ("initdb", "pg_ctl", "pgbench", "psql")
    programs = next((one for one in folders if all((one / name).exists() for name in needed)), None)
    if programs is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    user = _user()
    if user is not None:
        shutil.chown(folder, user)
        for parent in folder.parents:
            if parent.name.startswith("moldau-bench-"):
                parent.chmod(0o755)
    run = _Runner(user)
    data, socket = folder / "data", folder
    run(programs / "initdb", "-D", data, "-A", "trust", "-U", "bench")
    run(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o",
        f"-k {socket} -c listen_addresses=''", "start")  # fmt: skip
    try:
        reach = ("-h", str(socket), "-U", "bench", "postgres")
        rows = f"SELECT 'key-'||lpad(i::text, 8, '0'), 1, i % 1000 FROM generate_series(0, {keys - 1}) i"
        run(programs / "psql", *reach, "-c", "CREATE TABLE t (id text PRIMARY KEY, n bigint, highest int)",
            "-c", f"INSERT INTO t {rows}", "-c", "ANALYZE t")  # fmt: skip
        script = folder / "select.sql"
        script.write_text(
            f"\\set k random(0, {keys - 1})\nSELECT * FROM t WHERE id = 'key-'||lpad((:k)::text, 8, '0');\n"
        )
        numbers = ("-n", "-f", str(script), "-T", str(seconds))
        run(programs / "pgbench", *numbers, "-c", "1", "-l", "--log-prefix", folder / "one", *reach)
        log = next(folder.glob("one.*"))
        times = sorted(int(line.split()[2]) / 1000 for line in log.read_text().splitlines())
        many = run(programs / "pgbench", *numbers, "-c", CONNECTIONS, *reach)
        rate = float(next(line for line in many.splitlines() if line.startswith("tps")).split()[2])
    finally:
        run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    idle = {"p50_ms": statistics.median(times), "p99_ms": times[int(len(times) * 0.99)], "requests_per_s": rate}
    return {"idle": idle}


def _user() -> str | None:
    """PostgreSQL does not run as root."""
    if os.getuid() != 0:
        return None
    known = {one.pw_name for one in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


class _Runner:
    def __init__(self, user: str | None) -> None:
        self._before = [] if user is None else ["runuser", "-u", user, "--"]

    def __call__(self, *words: object) -> str:
        done = subprocess.run([*self._before, *map(str, words)], capture_output=True, text=True, cwd="/", check=False)
        if done.returncode:
            raise RuntimeError(f"{words[0]} failed: {done.stderr[-500:]}")
        return done.stdout
