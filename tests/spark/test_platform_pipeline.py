"""`moldau up`: a file goes through Connect into a topic and through ksql into a table, on one Spark, across a kill."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.running_platform import Platform, until

from moldau.pipeline.runtime.hosting.engine_files import EngineFiles

PATIENCE_S = 240


def total(platform: Platform) -> int | None:
    """What a pull query says of the one key."""
    answer = platform.ask("ksql", "/query", {"ksql": "SELECT total FROM totals WHERE id = 1;"})
    rows = [part["row"]["columns"] for part in answer if "row" in part]
    return rows[0][0] if rows else None


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    made = Platform(tmp_path / "platform", "connect", "registry", "ksql")
    started = made.up()
    assert started.returncode == 0, started.stderr
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
    platform.ask("connect", "/connectors", {"name": "orders", "config": config})
    statements = (
        "CREATE STREAM orders (id INT, amount INT) WITH (kafka_topic='orders', value_format='json', partitions=1);"
        "CREATE TABLE totals AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id;"
    )
    properties = {"auto.offset.reset": "earliest"}
    platform.ask("ksql", "/ksql", {"ksql": statements, "streamsProperties": properties})
    until(lambda: total(platform) == 12)
    _check_the_graph(platform, tmp_path)

    engine = EngineFiles(platform.folder / "engine").find()
    assert engine is not None
    os.kill(engine.pid, signal.SIGKILL)
    with lines.open("a") as stream:
        stream.write('{"ID": 1, "AMOUNT": 100}\n')
    until(lambda: total(platform) == 112)

    stopped = platform.moldau("down")
    assert stopped.returncode == 0, stopped.stderr
    assert not EngineFiles(platform.folder / "engine").is_held()


def _check_the_graph(platform: Platform, folder: Path) -> None:
    """From a file over a connector, a query and another connector to a file: one graph, and progress of each."""
    sink = {
        "connector.class": "FileStreamSink",
        "file": str(folder / "totals.txt"),
        "topics": "TOTALS",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    platform.ask("connect", "/connectors", {"name": "totals", "config": sink})
    shown = json.loads(platform.moldau("topology", "-o", "json").stdout)
    reached, added = set[str](), {"connector:orders"}
    while added - reached:
        reached |= added
        added = {edge["to"] for edge in shown["edges"] if edge["kind"] == "flow" and edge["from"] in reached}
    assert {"topic:orders", "topic:TOTALS", "connector:totals"} <= reached
    assert platform.moldau("topology").stdout.startswith("flowchart TD")

    (query,) = platform.ask("ksql", "/progress")["pipelines"]
    assert (query["kind"], query["state"]) == ("query", "RUNNING")
    assert query["metrics"]["records-in-total"] >= 2  # offsets are counted, and markers of transactions have one too
    assert query["batches"]
    assert query["lag"] == {"orders-0": 0}
    until((folder / "totals.txt").exists)
    assert platform.ask("connect", "/progress/totals")["last_error"] is None
    source = platform.ask("connect", "/progress/orders")
    assert (source["state"], source["tasks"][0]["metrics"]["source-record-write-total"]) == ("RUNNING", 2)
