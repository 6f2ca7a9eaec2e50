"""The scripts of examples/clients, run as their readers would run them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import JSON, Consumer, TopicPartition
from moldau.testing import Broker

EXAMPLES = Path(__file__).parents[2] / "examples/clients"
SOURCE = Path(__file__).parents[2] / "src"
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker({"num.partitions": "3"}) as broker:
        yield broker.bootstrap_servers


def command(name: str, servers: str, *arguments: str) -> list[str]:
    return [sys.executable, str(EXAMPLES / f"{name}.py"), "--bootstrap-server", servers, *arguments]


def environment() -> dict[str, str]:
    """The code under test, installed or not."""
    return {**os.environ, "PYTHONPATH": str(SOURCE)}


def lines_of(name: str, servers: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        command(name, servers, *arguments),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def fill(servers: str, topic: str) -> list[str]:
    """What the producer example sends: payments 0 to 9 of three customers, each ten times its number."""
    return lines_of("producer", servers, "--topic", topic)


def test_the_producer_tells_where_each_record_is(servers: str) -> None:
    lines = fill(servers, "produced")
    assert len(lines) == 10
    assert all(re.fullmatch(r"stored in produced-[0-2] at offset \d", line) for line in lines)


def test_the_consumer_reads_and_goes_on_where_it_was(servers: str) -> None:
    fill(servers, "consumed")
    first = lines_of("consumer", servers, "--topic", "consumed", "--group", "c", "--max-records", "6")
    second = lines_of("consumer", servers, "--topic", "consumed", "--group", "c", "--max-records", "4")
    amounts = sorted(int(line.rpartition(" ")[2].rstrip("}")) for line in first + second)
    assert amounts == [10 * number for number in range(10)]


def test_threads_share_the_partitions(servers: str) -> None:
    fill(servers, "threads")
    arguments = ["--topic", "threads", "--group", "threads", "--threads", "3"]
    with subprocess.Popen(
        command("multi_threaded_consumer", servers, *arguments), stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(10)]
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(TIMEOUT_S) == 0
    readers = {line.split("@")[0] for line in seen + rest.splitlines()}
    partitions = {reader.split(" ")[1] for reader in readers}
    assert partitions == {"threads-0", "threads-1", "threads-2"}


def test_the_big_key_is_alone_on_partition_0(servers: str) -> None:
    lines = lines_of("custom_partitioner", servers, "--topic", "big")
    assert sorted(lines)[:10] == ["big-0"] * 10
    assert set(sorted(lines)[10:]) == {"big-1", "big-2"}
    with Consumer[str, str](servers) as consumer:
        consumer.assign({TopicPartition("big", 0): 0})
        assert {record.key for record in consumer.poll_batch(100, timeout_s=10)} == {"OurBigKey"}


def test_manual_commits_are_where_the_batch_ended(servers: str) -> None:
    fill(servers, "manual")
    assert len(lines_of("manual_commit", servers, "--topic", "manual", "--group", "m")) == 10
    with Consumer[str, str](servers, group="m") as consumer:
        committed = consumer.committed(TopicPartition("manual", number) for number in range(3))
    assert sum(committed.values()) == 10


def test_external_offsets_count_every_payment_once(servers: str, tmp_path: Path) -> None:
    fill(servers, "totals")
    arguments = ["--topic", "totals", "--group", "totals", "--database", str(tmp_path / "totals.db")]
    lines_of("external_offsets", servers, *arguments, "--max-records", "4")
    totals = lines_of("external_offsets", servers, *arguments, "--max-records", "6")
    assert totals == ["customer-0: 180", "customer-1: 120", "customer-2: 150"]


def test_transactions_give_one_receipt_for_each_payment(servers: str) -> None:
    fill(servers, "paid")
    arguments = ["--source", "paid", "--target", "receipts", "--max-records", "10"]
    assert lines_of("transactions", servers, *arguments) == ["10 records processed"]
    properties = {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    with Consumer(servers, properties, group="receipt-readers", value_deserializer=JSON) as consumer:
        consumer.subscribe(["receipts"])
        numbers = sorted(record.value["number"] for _, record in zip(range(10), consumer, strict=False) if record.value)
        assert numbers == list(range(10))
        assert consumer.poll(0.5) is None


def test_dead_letters_tell_of_every_refused_payment(servers: str) -> None:
    fill(servers, "charged")
    lines = lines_of("dead_letters", servers, "--topic", "charged", "--backoff-ms", "50", "--max-letters", "4")
    dead = [line for line in lines if line.startswith("dead after 3 attempts: charged-")]
    assert sorted(re.findall(r"(\d+) is too much", "".join(dead))) == ["60", "70", "80", "90"]
    assert sum(line.startswith("charging") for line in lines) == 10 + 4 + 4
