"""What 1, 5 and 10 pipelines on one Spark driver cost: start, memory, CPU and latency, idle and with little to do.

Each pipeline has its own two topics and gets one record a second, none at the same moment as another. Start at
`hosted`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.brokers import BrokerProcess, end
from bench.machine import usage_of

__all__ = ["COUNTS", "KINDS", "Hosted", "hosted", "render"]

Hosted = dict[str, float]

KINDS = {
    "native": "map and filter, native",
    "python": "count by key, Python state",
    "realtime": "count by key, real-time",
}
COUNTS = (1, 5, 10)
IDLE_S = 10
WARM_ROUNDS, ROUNDS = 10, 20
START_TIMEOUT_S = 180
APP = Path(__file__).parent / "apps" / "hosting_app.py"


def hosted(kind: str, count: int, broker: BrokerProcess, folder: Path) -> Hosted:
    """The cost of `count` pipelines of a kind."""
    for number in range(count):
        broker.create_topic(f"input-{number}", 1)
        broker.create_topic(f"output-{number}", 1)
    began = time.monotonic()
    with _running(kind, count, broker.bootstrap, folder) as process:
        start_s = time.monotonic() - began
        visitor = _Visitor(broker.bootstrap, count)
        visitor.rounds(WARM_ROUNDS)
        idle = _cores(process.pid, lambda: time.sleep(IDLE_S))
        latencies: list[float] = []
        busy = _cores(process.pid, lambda: latencies.extend(visitor.rounds(ROUNDS)))
        resident = usage_of(process.pid).resident_bytes
        visitor.close()
    return {
        "start_s": start_s,
        "resident_mb": resident / 1e6,
        "idle_cores": idle,
        "busy_cores": busy,
        "p50_ms": statistics.median(latencies),
        "p90_ms": sorted(latencies)[int(len(latencies) * 0.9)],
    }


def _cores(pid: int, meanwhile: Callable[[], None]) -> float:
    """Of how many cores the process made use meanwhile."""
    before, began = usage_of(pid).cpu_s, time.monotonic()
    meanwhile()
    return (usage_of(pid).cpu_s - before) / (time.monotonic() - began)


class _Visitor:
    """Sends a record to one pipeline after the other, and waits for each output."""

    def __init__(self, bootstrap: str, count: int) -> None:
        self._count = count
        self._sent = 0
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "visitor", "enable.auto.commit": False,
             "fetch.wait.max.ms": 10}
        )  # fmt: skip
        self._consumer.assign([TopicPartition(f"output-{number}", 0, 0) for number in range(count)])

    def rounds(self, count: int) -> list[float]:
        """A record to each pipeline in every second; the latencies in ms."""
        found = []
        for _ in range(count):
            for number in range(self._count):
                began = time.monotonic()
                found.append(self._visited(number) * 1000)
                time.sleep(max(0.0, 1 / self._count - (time.monotonic() - began)))
        return found

    def close(self) -> None:
        self._consumer.close()

    def _visited(self, number: int) -> float:
        self._sent += 1
        key = f"visit-{self._sent}".encode()
        sent = time.monotonic()
        self._producer.produce(f"input-{number}", b"something", key=key)
        self._producer.flush()
        while time.monotonic() - sent < START_TIMEOUT_S:
            record = self._consumer.poll(1)
            if record is not None and record.error() is None and record.key() == key:
                return time.monotonic() - sent
        raise TimeoutError(f"pipeline {number} gave nothing within {START_TIMEOUT_S} s")


@contextmanager
def _running(kind: str, count: int, bootstrap: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, str(APP), kind, str(count), bootstrap, str(folder)]
    with (folder / "output.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, cwd=folder, text=True)
    try:
        _wait_until_running(process.stdout, folder)
        yield process
    finally:
        end(process)


def _wait_until_running(output: IO[str] | None, folder: Path) -> None:
    assert output is not None
    if output.readline().strip() != "running":
        raise RuntimeError(f"the pipelines did not start: {(folder / 'output.log').read_text()[-1500:]}")


def render(results: dict[str, dict[str, Hosted]]) -> str:
    """A table with a row for each kind and number of pipelines."""
    lines = [
        "| pipelines | how many | s to all running | MB | cores idle | cores at 1 record/s each | p50 ms | p90 ms |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind, by_count in results.items():
        for count, run in by_count.items():
            numbers = (
                f"{run['start_s']:.1f}",
                f"{run['resident_mb']:,.0f}",
                f"{run['idle_cores']:.2f}",
                f"{run['busy_cores']:.2f}",
                f"{run['p50_ms']:,.0f}",
                f"{run['p90_ms']:,.0f}",
            )
            lines.append(f"| {KINDS[kind]} | {count} | {' | '.join(numbers)} |")
    return "\n".join(lines) + "\n"
