"""Killed with -9 in real-time mode, a pipeline goes on with the right state: each change is emitted at least once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.free_ports import free_port
from tests.spark.java_processes import until
from tests.spark.realtime_topologies import OUTPUTS, SALES

from moldau.client.admin import Admin
from moldau.core.errors import MoldauError
from moldau.pipeline.spark.driver.jars import fetch_jars
from moldau.testing import Broker

PARTITIONS = 2
KEYS = 20
KILLS = 2
REPOSITORY = Path(__file__).parents[2]
WAIT_S = 120


@contextmanager
def running(broker: Broker, folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    words = [broker.bootstrap_servers, str(folder), f"127.0.0.1:{port}"]
    with (folder / "said").open("ab") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.realtime_program", *words],
            stdout=said,
            stderr=said,
            cwd=REPOSITORY,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Tills:
    """Sends sales, and reads what the application makes of them."""

    def __init__(self, broker: Broker) -> None:
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 2})
        self._consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False}
        )
        places = [TopicPartition(topic, number, 0) for topic in ("count", "sum") for number in range(PARTITIONS)]
        self._consumer.assign(places)
        self.counts: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()
        self.found: dict[str, dict[str, int]] = {"count": {}, "sum": {}}
        self.steps: dict[str, list[int]] = defaultdict(list)
        self._pace = threading.Event()

    def send(self, number: int) -> None:
        key, euros = f"client-{number % KEYS}", number % 7 + 1
        self._producer.produce(SALES, json.dumps({"shop": "s", "euros": euros}), key)
        self._producer.poll(0)
        self.counts[key] += 1
        self.sums[key] += euros

    def send_for(self, seconds: float, first: int) -> int:
        until_s = time.monotonic() + seconds
        number = first
        while time.monotonic() < until_s:
            self.send(number)
            number += 1
            self._pace.wait(0.002)
        assert self._producer.flush(WAIT_S) == 0
        return number

    def are_right(self) -> bool:
        for message in self._consumer.consume(5000, timeout=0.2):
            assert message.error() is None
            key = message.key().decode()
            self.found[message.topic()][key] = int.from_bytes(message.value(), "big")
            if message.topic() == "count":
                self.steps[key].append(self.found["count"][key])
        return self.found["count"] == self.counts and self.found["sum"] == self.sums

    def close(self) -> None:
        self._consumer.close()


def reached(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline


@pytest.mark.slow
def test_state_is_right_after_kills(tmp_path: Path) -> None:
    try:
        fetch_jars()
    except MoldauError as error:
        pytest.skip(f"Spark cannot run here: {error}")
    port = free_port()
    with Broker({"num.partitions": str(PARTITIONS)}) as broker:
        admin = Admin(broker.bootstrap_servers)
        for topic in (SALES, *OUTPUTS):
            admin.create_topic(topic, partitions=PARTITIONS)
        tills = Tills(broker)
        number = tills.send_for(0.5, 0)
        for _ in range(KILLS):
            with running(broker, tmp_path, port):
                reached(tills.are_right)
                # Longer than a batch, so that the kill comes after a checkpoint and before the next one.
                number = tills.send_for(7, number)
        with running(broker, tmp_path, port):
            number = tills.send_for(0.5, number)
            reached(tills.are_right)
            until(lambda: _stored(port) == dict(tills.counts))
        tills.close()
    for key, steps in tills.steps.items():
        assert set(steps) == set(range(1, tills.counts[key] + 1)), "a change was not emitted"


def _stored(port: int) -> dict[str, int]:
    url = f"http://127.0.0.1:{port}/stores/counts?limit=1000"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return {entry["key"]: entry["value"] for entry in json.load(answer)}
