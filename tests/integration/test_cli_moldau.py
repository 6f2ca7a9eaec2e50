"""The moldau command for people, beside a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.integration.cli_commands import Terminal

from moldau.testing import Broker

SERVER = "-b localhost:9092"


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    with Broker({"node.id": "0"}) as broker:
        yield Terminal(broker)


def test_a_topics_life(terminal: Terminal) -> None:
    create = f"moldau topics create life -p 2 -c retention.ms=60000 {SERVER}"
    assert terminal.output(create) == "Created life\n"
    assert terminal.run(create).returncode == 1
    assert "already there" in terminal.output(f"{create} --if-not-exists")
    assert terminal.output(f"moldau topics list life {SERVER}").splitlines() == [
        "TOPIC  PARTITIONS  REPLICAS  MESSAGES  SIZE  STATE",
        "life   2           1         0         0     healthy",
    ]
    everywhere = [f"moldau {SERVER} topics", f"moldau topics {SERVER}", f"moldau topics {SERVER} list"]
    assert all("life   2" in terminal.output(line) for line in everywhere)
    described = json.loads(terminal.output(f"moldau topics describe life -o json {SERVER}"))
    assert described["configs"] == {"retention.ms": "60000"}
    assert [partition["leader"] for partition in described["partitions"]] == [0, 0]
    terminal.output(f"moldau topics alter life -p 3 --unset retention.ms -c segment.ms=1000 {SERVER}")
    assert "segment.ms = 1000" in terminal.output(f"moldau topics describe life {SERVER}")
    assert terminal.output(f"moldau topics delete life {SERVER}") == "Deleted life\n"
    gone = terminal.run(f"moldau topics describe life {SERVER}")
    assert gone.returncode == 1
    assert gone.stderr == "moldau: there is no topic life; `moldau topics list` shows what there is\n"


def test_producing_consuming_offsets_and_deleting(terminal: Terminal) -> None:
    terminal.output(f"moldau topics create flow {SERVER}")
    terminal.output(f"moldau produce flow -k : {SERVER}", stdin="alice:1\nbob:2\n")
    assert terminal.output(f"moldau consume flow -f -n 2 --show key {SERVER}") == "alice\t1\nbob\t2\n"
    lines = terminal.output(f"moldau consume flow -f -n 2 -o json {SERVER}").splitlines()
    assert [json.loads(line)["key"] for line in lines] == ["alice", "bob"]
    assert json.loads(terminal.output(f"moldau offsets flow -o json {SERVER}")) == [
        {"topic": "flow", "partition": 0, "first": 0, "next": 2, "span": 2}
    ]
    assert terminal.output(f"moldau records delete flow 0 --before 1 {SERVER}") == "flow-0 now begins at offset 1\n"
    (replica,) = json.loads(terminal.output(f"moldau log-dirs flow -o json {SERVER}"))
    assert replica["partition"] == "flow-0"
    assert replica["size"] > 0


def test_a_timeout_is_told_in_plain_words_and_by_kafkas_tool_in_kafkas(terminal: Terminal) -> None:
    terminal.output(f"moldau topics create quiet {SERVER}")
    plain = terminal.run(f"moldau consume quiet -f --timeout 0.2s {SERVER}")
    assert (plain.returncode, plain.stderr) == (0, "moldau: nothing came for 200 ms, leaving\nmoldau: 0 records\n")
    kafkas = terminal.run(
        "kafka-console-consumer --bootstrap-server localhost:9092 --topic quiet --from-beginning --timeout-ms 200"
    )
    assert "org.apache.kafka.common.errors.TimeoutException" in kafkas.stderr
    assert "Processed a total of 0 messages" in kafkas.stderr
    contradiction = terminal.run(f"moldau consume quiet --offset 3 {SERVER}")
    assert contradiction.stderr == "moldau: The partition is required when offset is specified.\n"


def test_consuming_ends_when_its_reader_has_left(terminal: Terminal) -> None:
    """Nothing more is written, so nothing but looking tells that `head` is gone."""
    terminal.output(f"moldau topics create piped {SERVER}")
    terminal.output(f"moldau produce piped {SERVER}", stdin="one\n")
    consuming = terminal.popen(f"moldau consume piped -f {SERVER}")
    assert consuming.stdout is not None
    assert consuming.stderr is not None
    assert consuming.stdout.readline() == b"one\n"
    consuming.stdout.close()
    assert consuming.wait(60) == 0
    consuming.stderr.close()


def test_everything_that_is_set_anywhere(terminal: Terminal) -> None:
    terminal.output(f"moldau topics create tuned -c retention.ms=7 {SERVER}")
    terminal.output(f"moldau configs set brokers log.retention.ms=86400000 {SERVER}")
    rows = json.loads(terminal.output(f"moldau configs -o json {SERVER}"))
    assert {"entity": "topic:tuned", "key": "retention.ms", "value": "7"} in rows
    assert {"entity": "brokers", "key": "log.retention.ms", "value": "86400000"} in rows


def test_configs_of_topics_and_brokers(terminal: Terminal) -> None:
    terminal.output(f"moldau topics create configured {SERVER}")
    assert (
        terminal.output(f"moldau configs set configured retention.ms=5 {SERVER}") == "Set retention.ms on configured\n"
    )
    assert json.loads(terminal.output(f"moldau configs show configured -o json {SERVER}")) == [
        {"key": "retention.ms", "value": "5", "source": "dynamic topic"}
    ]
    terminal.output(f"moldau configs unset configured retention.ms {SERVER}")
    assert "--all" in terminal.output(f"moldau configs show configured {SERVER}")
    assert "log.retention" in terminal.output(f"moldau configs show broker:0 --all {SERVER}")


def test_the_cluster_and_what_it_understands(terminal: Terminal) -> None:
    cluster = json.loads(terminal.output(f"moldau cluster -o json {SERVER}"))
    assert [broker["id"] for broker in cluster["brokers"]] == [0]
    assert "ApiVersions" in terminal.output(f"moldau cluster --apis {SERVER}")


def test_measuring(terminal: Terminal) -> None:
    produced = json.loads(terminal.output(f"moldau perf produce -n 5000 -o json {SERVER}"))
    assert produced["records"] == 5000
    consumed = json.loads(terminal.output(f"moldau perf consume -n 5000 -o json {SERVER}"))
    assert consumed["records"] == 5000
    latency = json.loads(terminal.output(f"moldau perf latency -n 20 -o json {SERVER}"))
    assert latency["records"] == 20
    assert latency["p50_ms"] > 0


def test_kafkas_tools_are_reachable_too(terminal: Terminal) -> None:
    terminal.output(f"moldau topics create reachable {SERVER}")
    assert "reachable\n" in terminal.output("moldau kafka-topics --bootstrap-server localhost:9092 --list")
