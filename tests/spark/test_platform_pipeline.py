"""`moldau up`: a file goes through Connect into a topic and through ksql into a table, on one Spark, across a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.free_ports import free_port

from moldau.pipeline.runtime.hosting.engine_files import EngineFiles
from moldau.server.platform.services import DEFAULT_PORTS

PATIENCE_S = 240


class Platform:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {name: free_port() for name in DEFAULT_PORTS}

    def moldau(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "moldau", *words, "--data", str(self.folder)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=False
        )

    def up(self) -> None:
        words = [word for name, port in self.ports.items() for word in ("--port", f"{name}={port}")]
        started = self.moldau("up", "-d", "connect", "registry", "ksql", *words)
        assert started.returncode == 0, started.stderr

    def post(self, service: str, path: str, document: object) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports[service]}{path}",
            data=json.dumps(document).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def get(self, service: str, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[service]}{path}", timeout=60) as answer:
            return json.load(answer)

    def total(self) -> int | None:
        """What a pull query says of the one key."""
        answer = self.post("ksql", "/query", {"ksql": "SELECT total FROM totals WHERE id = 1;"})
        rows = [part["row"]["columns"] for part in answer if "row" in part]
        return rows[0][0] if rows else None


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    made = Platform(tmp_path / "platform")
    made.up()
    yield made
    made.moldau("down")


@pytest.mark.timeout(900)  # Spark starts twice
def test_connect_and_ksql_share_one_spark_which_may_be_killed(platform: Platform, tmp_path: Path) -> None:
    lines = tmp_path / "orders.jsonl"
    lines.write_text('{"ID": 1, "AMOUNT": 5}\n{"ID": 1, "AMOUNT": 7}\n')
    config = {
        "connector.class": "FileStreamSource",
        "file": str(lines),
        "topic": "orders",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    platform.post("connect", "/connectors", {"name": "orders", "config": config})
    statements = (
        "CREATE STREAM orders (id INT, amount INT) WITH (kafka_topic='orders', value_format='json', partitions=1);"
        "CREATE TABLE totals AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id;"
    )
    properties = {"auto.offset.reset": "earliest"}
    platform.post("ksql", "/ksql", {"ksql": statements, "streamsProperties": properties})
    until(lambda: platform.total() == 12)
    _check_the_graph(platform, tmp_path)

    engine = EngineFiles(platform.folder / "engine").find()
    assert engine is not None
    os.kill(engine.pid, signal.SIGKILL)
    with lines.open("a") as stream:
        stream.write('{"ID": 1, "AMOUNT": 100}\n')
    until(lambda: platform.total() == 112)

    stopped = platform.moldau("down")
    assert stopped.returncode == 0, stopped.stderr
    assert not EngineFiles(platform.folder / "engine").is_held()


def _check_the_graph(platform: Platform, folder: Path) -> None:
    """From a file over a connector, a query and another connector to a file: one graph, and progress of each."""
    sink = {
        "connector.class": "FileStreamSink",
        "file": str(folder / "totals.txt"),
        "topics": "TOTALS",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    platform.post("connect", "/connectors", {"name": "totals", "config": sink})
    shown = json.loads(platform.moldau("topology", "-o", "json").stdout)
    reached, added = set[str](), {"connector:orders"}
    while added - reached:
        reached |= added
        added = {edge["to"] for edge in shown["edges"] if edge["kind"] == "flow" and edge["from"] in reached}
    assert {"topic:orders", "topic:TOTALS", "connector:totals"} <= reached
    assert platform.moldau("topology").stdout.startswith("flowchart TD")

    (query,) = platform.get("ksql", "/progress")["pipelines"]
    assert (query["kind"], query["state"]) == ("query", "RUNNING")
    assert query["metrics"]["records-in-total"] >= 2  # offsets are counted, and markers of transactions have one too
    assert query["batches"]
    assert query["lag"] == {"orders-0": 0}
    until(lambda: (folder / "totals.txt").exists() and platform.get("connect", "/progress/totals")["lag"] != {})
    source = platform.get("connect", "/progress/orders")
    assert (source["state"], source["tasks"][0]["metrics"]["source-record-write-total"]) == ("RUNNING", 2)
