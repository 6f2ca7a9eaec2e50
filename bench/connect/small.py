"""What matters when little happens: from an INSERT to its record, and what idle connectors cost. Start at `latency`."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from bench.connect.copies import JSON
from bench.connect.postgres import Postgres
from bench.connect.records import make_topic, wait_until
from bench.connect.workers import MoldauWorker

__all__ = ["idle", "latency"]

SETTLE_S, START_S = 20.0, 300.0
Numbers = dict[str, float]


def latency(bootstrap: str, folder: Path, *, postgres: Postgres, samples: int) -> Numbers:
    """Milliseconds from the end of an INSERT to its record in a consumer's hands, at `poll.interval.ms=100`."""
    make_topic(bootstrap, "from-rows")
    postgres.run("CREATE TABLE rows (id serial PRIMARY KEY, item text, changed timestamptz NOT NULL DEFAULT now())")
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench-latency",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
        }
    )
    consumer.assign([TopicPartition("from-rows", 0, 0)])
    with MoldauWorker(folder, bootstrap) as worker, postgres.connect() as connection:
        worker.make(
            "rows",
            {
                **JSON,
                **postgres.settings,
                "connector.class": "JdbcSource",
                "mode": "timestamp+incrementing",
                "timestamp.column.name": "changed",
                "incrementing.column.name": "id",
                "table.whitelist": "rows",
                "topic.prefix": "from-",
                "poll.interval.ms": "100",
            },
        )
        wait_until(lambda: worker.is_running("rows"), "the connector's start", START_S, 0.2)
        found = []
        for number in range(samples + 5):
            connection.execute("INSERT INTO rows (item) VALUES ('x')")
            began = time.monotonic()
            record = consumer.poll(30)
            assert record is not None, "the row did not arrive within 30 s"
            assert record.error() is None, record.error()
            if number >= 5:
                found.append(1000 * (time.monotonic() - began))
            time.sleep(0.037 * (number % 7))  # so that no sample keeps step with the polls
    consumer.close()
    found.sort()
    return {"p50_ms": statistics.median(found), "p90_ms": found[int(len(found) * 0.9)], "p99_ms": found[-1]}


def idle(bootstrap: str, folder: Path, *, postgres: Postgres, connectors: int, seconds: float) -> Numbers:
    """Cores and memory of a worker, its engine and everything below them, with connectors that have nothing to do."""
    folder.mkdir(parents=True)
    postgres.run("CREATE TABLE still (id serial PRIMARY KEY, item text)")
    make_topic(bootstrap, "still")
    kinds = [
        {"connector.class": "FileStreamSource", "file": str(folder / "in.txt"), "topic": "still"},
        {"connector.class": "FileStreamSink", "file": str(folder / "out.txt"), "topics": "still"},
        {
            **postgres.settings,
            "connector.class": "JdbcSource",
            "mode": "incrementing",
            "table.whitelist": "still",
            "topic.prefix": "from-",
        },
        {**postgres.settings, "connector.class": "JdbcSink", "topics": "still", "auto.create": "true"},
    ]
    (folder / "in.txt").touch()
    with MoldauWorker(folder / "worker", bootstrap) as worker:
        names = [f"still-{number}" for number in range(connectors)]
        for number, name in enumerate(names):
            worker.make(name, {**JSON, **kinds[number % len(kinds)]})
        for name in names:
            wait_until(lambda name=name: worker.is_running(name), f"the start of {name}", START_S, 0.2)  # type: ignore[misc]
        time.sleep(SETTLE_S)
        before = worker.usage()
        time.sleep(seconds)
        after = worker.usage()
    return {
        "cores": (after.cpu_s - before.cpu_s) / seconds,
        "memory_mb": after.resident_bytes / 1e6,
    }
