"""How fast Spark reads and writes on each broker, in alternation: `scripts/compat spark --speed`.

A look, not a benchmark: Spark, the broker and the driver share the machine, and Spark is the slowest of them. What
the brokers can do is measured in `bench/`. Start at `main`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.compat.spark.cluster import Cluster, running
from tests.compat.spark.session import spark_session
from tests.compat.spark.source import Kafka, batches_of, finished
from tests.compat.spark.workload import BASE_MS, Record, Topics, produce

COUNT = 200_000
ROUNDS = 5
Job = Callable[[Kafka, Topics, str, str], None]
"""(connector, topics, source, name): do one job, under a name nobody has used."""


def main() -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spark = stack.enter_context(spark_session())
        clusters = {kind: stack.enter_context(running(kind)) for kind in ("moldau", "kafka")}
        brokers = {kind: Kafka(spark, one.bootstrap, folder / kind) for kind, one in clusters.items()}
        report(measured(clusters, brokers))
    return 0


def measured(clusters: Mapping[str, Cluster], brokers: Mapping[str, Kafka]) -> dict[tuple[str, str], list[float]]:
    """Seconds by job and broker, the first (cold) round left out."""
    topics = {kind: Topics(one.bootstrap, "speed") for kind, one in clusters.items()}
    sources = {kind: one.create() for kind, one in topics.items()}
    for kind, source in sources.items():
        produce(clusters[kind].bootstrap, source, hundred_bytes(), **{"queue.buffering.max.messages": COUNT})
    taken: dict[tuple[str, str], list[float]] = {}
    for number in range(ROUNDS + 1):
        for name, job in JOBS.items():
            for kind, broker in brokers.items():
                began = perf_counter()
                job(broker, topics[kind], sources[kind], f"{name}-{number}")
                if number:
                    taken.setdefault((name, kind), []).append(perf_counter() - began)
    return taken


def report(taken: Mapping[tuple[str, str], list[float]]) -> None:
    for name in JOBS:
        moldau, kafka = (median(taken[name, kind]) for kind in ("moldau", "kafka"))
        rates = f"moldau {COUNT / moldau:9,.0f}/s   Apache Kafka {COUNT / kafka:9,.0f}/s"
        print(f"{name:34} {rates}   {kafka / moldau:5.2f} times", flush=True)


def read_table(kafka: Kafka, topics: Topics, source: str, name: str) -> None:
    kafka.read(subscribe=source).write.format("noop").mode("overwrite").save()


def write_table(kafka: Kafka, topics: Topics, source: str, name: str) -> None:
    kafka.write(kafka.spark.range(COUNT).selectExpr("lpad(id, 100, 'x') AS value"), topic=topics.create())


def copy_stream(kafka: Kafka, topics: Topics, source: str, name: str) -> None:
    stream = kafka.read_stream(subscribe=source).selectExpr(f"'{topics.create()}' AS topic", "key", "value")
    query = kafka.begun(kafka.sink(stream), name, {"availableNow": True})
    finished(query)
    assert sum(batch["rows"] for batch in batches_of(query)) == COUNT


JOBS: Mapping[str, Job] = {
    "batch read": read_table,
    "batch write": write_table,
    "stream from topic to topic": copy_stream,
}


def hundred_bytes() -> list[Record]:
    return [Record(i % 6, BASE_MS + i, f"key-{i % 1000}".encode(), b"x" * 100) for i in range(COUNT)]
