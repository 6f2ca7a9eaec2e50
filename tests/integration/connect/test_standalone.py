"""Standalone workers: connectors from files, offsets in a file."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from tests.integration.connect.connectors import rows
from tests.integration.connect.talk import COUNTER, SINK
from tests.integration.server_process import wait_until

from moldau.cli.connect.worker_start import STANDALONE_DEFAULTS, standalone_files
from moldau.core.errors import StartupError
from moldau.testing import Broker
from moldau.testing.connect import ConnectWorker

STRINGS = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}


def test_a_restarted_worker_goes_on_where_its_file_says(moldau_broker: Broker, tmp_path: Path) -> None:
    offsets, database = tmp_path / "offsets", tmp_path / "rows.db"
    settings = {**STRINGS, "offset.storage.file.filename": str(offsets)}
    counter = {"name": "alone", "connector.class": COUNTER, "topic": "alone", "limit": "20"}
    sink = {"name": "alone-sink", "connector.class": SINK, "topics": "alone", "database": str(database)}
    with ConnectWorker(moldau_broker.bootstrap_servers, settings, [counter, sink]) as worker:
        wait_until(lambda: len(rows(database)) == 20, what="the first rows")
        assert httpx.get(f"{worker.url}/connectors").json() == ["alone", "alone-sink"]
        assert httpx.get(f"{worker.url}/connectors/alone/config").json() == counter
    assert json.loads(offsets.read_text()) == [[["alone", {"part": "0"}], {"next": 20}]]
    with ConnectWorker(moldau_broker.bootstrap_servers, settings, [{**counter, "limit": "25"}, sink]):
        wait_until(lambda: len(rows(database)) == 25, what="the last rows")
    assert sorted(int(one.partition(":")[2]) for one in rows(database)) == list(range(25))


def test_a_wrong_connector_ends_the_start_with_one_message(moldau_broker: Broker, tmp_path: Path) -> None:
    settings = {"offset.storage.file.filename": str(tmp_path / "offsets")}
    wrong = {"name": "wrong", "connector.class": COUNTER}
    with pytest.raises(StartupError, match=r"(?s)wrong cannot be made.*Missing required .*topic"):
        ConnectWorker(moldau_broker.bootstrap_servers, settings, [wrong]).start()


def test_limits_hold_for_rest_but_not_for_the_command_line(moldau_broker: Broker, tmp_path: Path) -> None:
    read, written = tmp_path / "in.txt", tmp_path / "out.txt"
    read.write_text("a line\n")
    settings = {
        **STRINGS,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "moldau.connect.allowed.paths": str(tmp_path / "allowed"),
    }
    source = {"name": "given", "connector.class": "FileStreamSource", "file": str(read), "topic": "limited"}
    sink = {"connector.class": "FileStreamSink", "file": str(written), "topics": "limited"}
    with (
        ConnectWorker(moldau_broker.bootstrap_servers, settings, [source]) as worker,
        httpx.Client(base_url=worker.url, timeout=60) as connect,
    ):
        wait_until(lambda: connect.get("/connectors/given/offsets").json()["offsets"] != [], what="the allowed source")
        connect.put("/connectors/other/config", json=sink)

        def is_refused() -> bool:
            answer = connect.get("/connectors/other/status")
            return answer.status_code == 200 and "moldau.connect.allowed.paths" in answer.text

        wait_until(is_refused, what="the refusal")
    assert not written.exists()


def test_the_first_file_may_be_a_connector(tmp_path: Path) -> None:
    first, second = tmp_path / "one.properties", tmp_path / "two.json"
    first.write_text("name=one\nconnector.class=FileStreamSource\nfile=x\ntopic=t\n")
    second.write_text(json.dumps({"name": "two", "config": {"connector.class": "FileStreamSink", "tasks.max": 2}}))
    worker, connectors = standalone_files([str(first), str(second)])
    assert worker == STANDALONE_DEFAULTS
    assert [one["name"] for one in connectors] == ["one", "two"]
    assert connectors[1]["tasks.max"] == "2"
