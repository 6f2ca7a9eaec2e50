"""The performance tools beside a broker: that they count right, not how fast they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.integration.cli_commands import Terminal

from moldau.testing import Broker

SERVER = "--bootstrap-server localhost:9092"
HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    with Broker() as broker:
        yield Terminal(broker)


def test_what_is_produced_is_consumed_and_counted(terminal: Terminal) -> None:
    produced = terminal.output(
        "kafka-producer-perf-test --topic perf --num-records 20000 --record-size 100 --throughput -1 "
        "--producer-props bootstrap.servers=localhost:9092 acks=1"
    ).splitlines()
    assert re.fullmatch(
        r"20000 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency, "
        r"\d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99.9th\.",
        produced[-1],
    )
    header, row = terminal.output(f"kafka-consumer-perf-test {SERVER} --topic perf --messages 20000").splitlines()
    assert header == HEADER
    cells = row.split(", ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", cells[0])
    assert cells[2] == f"{20000 * 100 / 1024 / 1024:.4f}"
    assert cells[4] == "20000"


def test_too_few_records_are_a_warning(terminal: Terminal) -> None:
    terminal.output(f"kafka-producer-perf-test --topic few --num-records 5 --payload-monotonic {SERVER}")
    output = terminal.output(
        f"kafka-consumer-perf-test {SERVER} --topic few --num-records 6 --timeout 500 --hide-header"
    )
    assert output.startswith("WARNING: Exiting before consuming the expected number of messages: timeout (500 ms)")


def test_a_rate_is_kept(terminal: Terminal) -> None:
    produced = terminal.output(
        f"kafka-producer-perf-test --topic slow --num-records 200 --record-size 10 --throughput 400 {SERVER}"
    )
    found = re.search(r"200 records sent, ([\d.]+) records/sec", produced)
    assert found is not None
    assert float(found[1]) <= 420


@pytest.mark.parametrize(
    "arguments",
    [
        "localhost:9092 latency 50 1 100",
        f"{SERVER} --topic latency --num-records 50 --producer-acks all --record-size 9",
    ],
)
def test_latency_in_the_old_and_the_new_form(terminal: Terminal, arguments: str) -> None:
    lines = terminal.output(f"kafka-e2e-latency {arguments}").splitlines()
    assert re.fullmatch(r"0\t[\d.]+", lines[-3])
    assert re.fullmatch(r"Avg latency: [\d.]+ ms", lines[-2])
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99.9th = \d+", lines[-1])
