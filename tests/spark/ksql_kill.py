"""A ksql server whose two processes are killed under load, and what its queries must have written. Start at `run`.

Every change of a table is written once, in order, whatever was killed: with keys numbered from the load, the counts of
a key in the result are exactly 1, 2, 3, ….
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.integration.server_process import wait_until

from moldau.pipeline.runtime.hosting.engine_files import EngineFiles
from moldau.testing import Broker

STARTED = re.compile(r"ksql server started: (http://\S+)")
PATIENCE_S = 240.0
KEYS = 20
STATEMENTS = """
CREATE STREAM clicks (id STRING KEY, user STRING, n BIGINT)
  WITH (kafka_topic='clicks', partitions=2, value_format='JSON');
CREATE STREAM even AS SELECT id, n FROM clicks WHERE n % 2 = 0;
CREATE TABLE counts AS SELECT user, COUNT(*) AS total FROM clicks GROUP BY user;
"""


class KsqlProcess:
    """`moldau ksql-server` as users run it; killed and started again on the same folder."""

    def __init__(self, servers: str, folder: Path, port: int = 0) -> None:
        self._folder, self._log = folder, folder / f"server-{port}.log"
        self._engine_folders = f"server-*_{port}/engine"
        self._command = [sys.executable, "-m", "moldau.cli.main", "ksql-server", "--port", str(port)]
        self._command += ["--bootstrap-server", servers, "--data", str(folder)]
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> None:
        self._log.write_bytes(b"")
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)
        wait_until(lambda: STARTED.search(self._log.read_text()), timeout_s=PATIENCE_S, what="the server's start")
        found = STARTED.search(self._log.read_text())
        assert found is not None
        self.url = found[1]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def kill_engine(self) -> None:
        address = EngineFiles(next((self._folder / "default_").glob(self._engine_folders), self._folder)).find()
        if address is not None:
            os.kill(address.pid, signal.SIGKILL)

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(PATIENCE_S)

    def statements(self, text: str) -> list[dict[str, Any]]:
        properties = {"auto.offset.reset": "earliest"}
        return self._post("/ksql", {"ksql": text, "streamsProperties": properties})

    def rows(self, query: str) -> list[list[Any]]:
        return [one["row"]["columns"] for one in self._post("/query", {"ksql": query}) if "row" in one]

    def cluster_status(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/clusterStatus", timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)["clusterStatus"]
            return found

    def _post(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: list[dict[str, Any]] = json.load(answer)
            return found


class Load(threading.Thread):
    """Writes numbered records until it is told to stop."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": servers})
        self._is_over = threading.Event()
        self.written = 0

    def run(self) -> None:
        while not self._is_over.is_set():
            key = self.written % KEYS
            self._producer.produce("clicks", json.dumps({"user": f"u{key}", "n": self.written}), str(key))
            self.written += 1
            self._producer.poll(0)
            time.sleep(0.002)
        self._producer.flush(30)

    def stop(self) -> None:
        self._is_over.set()
        self.join()


def run(servers: str, folder: Path, *, kills: int, seed: int) -> None:
    """Kill server and engine in turns while records come; raises AssertionError if a change is missing or doubled."""
    dice = random.Random(seed)
    server = KsqlProcess(servers, folder)
    server.start()
    load = Load(servers)
    try:
        server.statements(STATEMENTS)
        load.start()
        for number in range(kills):
            seen = size(servers, "COUNTS")
            wait_until(lambda seen=seen: size(servers, "COUNTS") > seen, timeout_s=PATIENCE_S, what="a further batch")
            time.sleep(dice.uniform(0, 0.5))
            if number % 2:
                server.kill()
                server.start()
            else:
                server.kill_engine()
        load.stop()
        expected = load.written
        wait_until(lambda: size(servers, "COUNTS") >= expected, timeout_s=PATIENCE_S, what="all counts")
        wait_until(lambda: size(servers, "EVEN") >= (expected + 1) // 2, timeout_s=PATIENCE_S, what="all even rows")
        check(servers, expected)
        wait_until(lambda: total_count(server) == expected, timeout_s=PATIENCE_S, what="the table's copy")
    finally:
        load.stop() if load.is_alive() else None
        server.stop()


def total_count(server: KsqlProcess) -> int:
    return sum(total for _, total in server.rows("SELECT * FROM counts;"))


def check(servers: str, expected: int) -> None:
    counts: dict[bytes, list[int]] = defaultdict(list)
    for record in _records(servers, "COUNTS"):
        counts[record.key()].append(json.loads(record.value())["TOTAL"])
    for key, found in counts.items():
        assert found == list(range(1, len(found) + 1)), f"the counts of {key!r} are not one after the other: {found}"
    assert sum(map(len, counts.values())) == expected
    even = sorted(json.loads(record.value())["N"] for record in _records(servers, "EVEN"))
    assert even == list(range(0, expected, 2))


def size(servers: str, topic: str) -> int:
    return len(_records(servers, topic))


def _records(servers: str, topic: str) -> list[Any]:
    """All committed records of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
            "enable.auto.commit": "false",
        }
    )
    try:
        partitions = list(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found, ended = [], 0
        while ended < len(partitions):
            for message in consumer.consume(1000, 1.0):
                if message.error() is None:
                    found.append(message)
                else:
                    ended += 1
        return found
    finally:
        consumer.close()


def main() -> None:
    """Kill as often as asked."""
    parser = argparse.ArgumentParser(prog="scripts/ksql-kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="kills in all: the engine and the server in turns")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        run(broker.bootstrap_servers, Path(folder), kills=options.kills, seed=options.seed)
    print(f"{options.kills} kills: every change is there once")


if __name__ == "__main__":
    main()
