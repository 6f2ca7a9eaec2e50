"""The tools that look at offsets, records, log directories and the cluster, beside a broker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli_commands import Terminal

from moldau.testing import Broker

SERVER = "--bootstrap-server localhost:9092"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"node.id": "0", "num.partitions": "2"}) as broker:
        terminal = Terminal(broker)
        produce = f"kafka-console-producer {SERVER} --topic t --property parse.key=true --property key.separator=:"
        terminal.output(produce, stdin="".join(f"k:{number}\n" for number in range(10)))
        yield broker


@pytest.fixture(scope="module")
def terminal(broker: Broker) -> Terminal:
    return Terminal(broker)


def offsets(terminal: Terminal, options: str = "") -> list[int]:
    lines = terminal.output(f"kafka-get-offsets {SERVER} --topic t {options}").splitlines()
    assert [line.rpartition(":")[0] for line in lines] == ["t:0", "t:1"][: len(lines)]
    return [int(line.rpartition(":")[2]) for line in lines]


def test_offsets_at_the_end_the_beginning_and_a_moment(terminal: Terminal) -> None:
    assert sorted(offsets(terminal)) == [0, 10]
    assert offsets(terminal, "--time -2") == [0, 0]
    assert offsets(terminal, "--time earliest") == [0, 0]
    assert terminal.output(f"kafka-get-offsets {SERVER} --topic t --time 1") in ("t:0:0\n", "t:1:0\n")
    latest = terminal.output(f"kafka-get-offsets {SERVER} --topic-partitions t:0-2 --time max-timestamp")
    assert re.fullmatch(r"t:[01]:\d\n", latest)


def test_the_class_of_the_old_tool_runs_it(terminal: Terminal) -> None:
    line = "kafka-run-class kafka.tools.GetOffsetShell --broker-list localhost:9092 --topic t --time -1"
    assert terminal.output(line) == terminal.output(f"kafka-get-offsets {SERVER} --topic t")


def test_no_match_is_an_error(terminal: Terminal) -> None:
    done = terminal.run(f"kafka-get-offsets {SERVER} --topic nothing")
    assert done.returncode == 1
    assert done.stderr == "Error occurred: Could not match any topic-partitions with the specified filters\n"


def test_records_are_deleted_below_an_offset(terminal: Terminal, tmp_path: Path) -> None:
    terminal.output(f"kafka-topics {SERVER} --create --topic deleted --partitions 1")
    terminal.output(f"kafka-console-producer {SERVER} --topic deleted", stdin="0\n1\n2\n3\n4\n")
    file = tmp_path / "offsets.json"
    wanted = [("deleted", 3), ("nothing", 1)]
    partitions = [{"topic": topic, "partition": 0, "offset": offset} for topic, offset in wanted]
    file.write_text(json.dumps({"partitions": partitions, "version": 1}))
    lines = terminal.output(f"kafka-delete-records {SERVER} --offset-json-file {file}").splitlines()
    assert lines[:2] == ["Executing records delete operation", "Records delete operation completed:"]
    assert "partition: deleted-0\tlow_watermark: 3" in lines
    assert any(line.startswith("partition: nothing-0\terror: ") for line in lines)
    consume = f"kafka-console-consumer {SERVER} --topic deleted --from-beginning --max-messages 2"
    assert terminal.output(consume) == "3\n4\n"


def test_log_directories_are_one_line_of_json(terminal: Terminal, broker: Broker) -> None:
    line = f"kafka-log-dirs {SERVER} --describe --topic-list t"
    querying, received, document = terminal.output(line).splitlines()
    assert querying == "Querying brokers for log directories information"
    assert received == "Received log directory information from brokers 0"
    (found,) = json.loads(document)["brokers"]
    assert found["broker"] == 0
    (log_dir,) = found["logDirs"]
    assert log_dir["logDir"] == str(broker.data)
    assert log_dir["error"] is None
    sizes = {entry["partition"]: entry["size"] for entry in log_dir["partitions"]}
    assert set(sizes) == {"t-0", "t-1"}
    assert max(sizes.values()) > 60
    assert terminal.run(f"kafka-log-dirs {SERVER} --describe --broker-list 7").returncode == 1


def test_api_versions_by_broker(terminal: Terminal) -> None:
    lines = terminal.output(f"kafka-broker-api-versions {SERVER}").splitlines()
    assert re.fullmatch(r"\S+:\d+ \(id: 0 rack: null isFenced: false\) -> \(", lines[0])
    assert re.fullmatch(r"\tProduce\(0\): 0 to \d+ \[usable: \d+\],", lines[1])
    assert lines[-1] == ")"


def test_the_clusters_id_and_endpoints(terminal: Terminal) -> None:
    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", terminal.output(f"kafka-cluster cluster-id {SERVER}"))
    endpoints = terminal.output(f"kafka-cluster list-endpoints {SERVER}").splitlines()
    assert endpoints[0].split() == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    assert endpoints[1].split()[0] == "0"
