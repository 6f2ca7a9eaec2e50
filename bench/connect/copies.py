"""Copies of a million rows and more: a table into a topic, a topic into a table, a topic into Parquet files.

Each way makes a small copy first, so that everything is loaded and compiled; then the clock runs from the order to copy
(a connector is made, or a line sent to the PySpark program) to the last record. Start at `measured`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from bench.brokers import REPOSITORY, end
from bench.connect.postgres import USER, Postgres
from bench.connect.records import SCHEMA, SPARK_SCHEMA, make_topic, wait_until, write_orders
from bench.connect.workers import MoldauWorker, Worker
from bench.machine import usage_of

__all__ = ["JOBS", "WAYS", "measured"]

JOBS = {
    "source": "PostgreSQL → topic",
    "sink": "topic → PostgreSQL, upsert",
    "parquet": "topic → Parquet",
}
WAYS = ("connect", "pyspark")
PARTITIONS = 4
COPY_S = 1200.0
JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
ENDS = re.compile(r"\+(\d+)\+(\d+)\.parquet$")
Numbers = dict[str, float]


def measured(
    job: str, way: str, bootstrap: str, folder: Path, *, postgres: Postgres, jar: str, records: int
) -> Numbers:
    """Records a second, and the CPU time per record of everything but broker and database."""
    warm_up = max(1000, records // 20)
    flush_size = min(100_000, records // PARTITIONS)
    warm_up = max(warm_up, flush_size * PARTITIONS) if job == "parquet" else warm_up
    for name, count in (("warm", warm_up), ("real", records)):
        topic, table = f"{job}-{way}-{name}", f"{job}_{way}_{name}"
        make_topic(bootstrap, f"from-{table}" if job == "source" and way == "connect" else topic, PARTITIONS)
        if job != "parquet":
            postgres.make_table(table, count if job == "source" else 0)
        if job != "source":
            write_orders(bootstrap, topic, count, PARTITIONS)
    if way == "pyspark":
        with _PySpark(job, bootstrap, folder, postgres, jar) as program:
            program.copy(f"{job}_{way}_warm", f"{job}-{way}-warm")
            before = program.cpu_s()
            took = program.copy(f"{job}_{way}_real", f"{job}-{way}-real")
            cpu_s = program.cpu_s() - before
    else:
        with MoldauWorker(folder, bootstrap) as worker:
            ordered = _Ordered(job, worker, folder, postgres, flush_size)
            ordered.copy("warm", warm_up)
            before = worker.usage().cpu_s
            took = ordered.copy("real", records)
            cpu_s = worker.usage().cpu_s - before
    return {"records_per_s": records / took, "cpu_us": 1e6 * cpu_s / records}


class _Ordered:
    """Copies by connectors."""

    def __init__(self, job: str, worker: Worker, folder: Path, postgres: Postgres, flush_size: int) -> None:
        self._job, self._worker, self._folder = job, worker, folder
        self._postgres, self._flush_size = postgres, flush_size

    def copy(self, name: str, records: int) -> float:
        topic, table = f"{self._job}-connect-{name}", f"{self._job}_connect_{name}"
        began = monotonic()
        self._worker.make(name, {**JSON, **getattr(self, f"_{self._job}")(topic, table)})
        is_done: Callable[[], bool] = getattr(self, f"_{self._job}_is_done")(name, topic, table, records)

        def check() -> bool:
            self._worker.check()
            return is_done()

        ended = wait_until(check, f"the copy of {records:,} records", COPY_S, 0.2)
        self._worker.delete(name)
        return ended - began

    def _source(self, topic: str, table: str) -> dict[str, str]:
        return {
            **self._postgres.settings,
            "connector.class": "JdbcSource",
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "table.whitelist": table,
            "topic.prefix": "from-",
            "poll.interval.ms": "100",
        }

    def _source_is_done(self, name: str, topic: str, table: str, records: int) -> Callable[[], bool]:
        """The offsets are committed with the records, so they say exactly how many there are."""
        return lambda: any(one["offset"]["incrementing"] >= records for one in self._worker.offsets(name))

    def _sink(self, topic: str, table: str) -> dict[str, str]:
        return {
            **self._postgres.settings,
            "connector.class": "JdbcSink",
            "topics": topic,
            "tasks.max": "2",
            "table.name.format": table,
            "insert.mode": "upsert",
            "pk.mode": "record_value",
            "pk.fields": "id",
            "value.converter.schema.content": SCHEMA,
        }

    def _sink_is_done(self, name: str, topic: str, table: str, records: int) -> Callable[[], bool]:
        return lambda: bool(self._postgres.value(f"SELECT count(*) FROM {table}") >= records)

    def _parquet(self, topic: str, table: str) -> dict[str, str]:
        return {
            "connector.class": "HdfsSink",
            "topics": topic,
            "tasks.max": "2",
            "store.url": str(self._folder / "files"),
            "format.class": "ParquetFormat",
            "flush.size": str(self._flush_size),
            "value.converter.schema.content": SCHEMA,
        }

    def _parquet_is_done(self, name: str, topic: str, table: str, records: int) -> Callable[[], bool]:
        """The names of the files say which records they have; what is left below `flush.size` does not count."""
        folder = self._folder / "files" / "topics" / topic
        least = records // PARTITIONS // self._flush_size * self._flush_size * PARTITIONS

        def is_done() -> bool:
            found = [ENDS.search(one.name) for one in folder.rglob("*.parquet")]
            return sum(int(one[2]) - int(one[1]) + 1 for one in found if one) >= least

        return is_done


class _PySpark:
    """The program by hand, in a process that stays."""

    def __init__(self, job: str, bootstrap: str, folder: Path, postgres: Postgres, jar: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        program = Path(__file__).parent / "apps" / "pyspark_copy.py"
        self._words = [sys.executable, str(program), job, bootstrap, str(folder), postgres.jdbc_url]
        self._words += [USER, jar, SPARK_SCHEMA]
        self._log = folder / "pyspark.log"

    def __enter__(self) -> _PySpark:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=REPOSITORY, text=True
            )
        self._expect("ready")
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)

    def copy(self, table: str, topic: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{table} {topic}\n")
        self._process.stdin.flush()
        return float(self._expect("took").split()[1])

    def cpu_s(self) -> float:
        return usage_of(self._process.pid).cpu_s

    def _expect(self, word: str) -> str:
        assert self._process.stdout is not None
        for words in self._process.stdout:
            if words.startswith(word):
                return words
        raise RuntimeError(f"the PySpark program ended: {self._log.read_text(errors='replace')[-2000:]}")
