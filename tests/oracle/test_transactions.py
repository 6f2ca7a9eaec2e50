"""Transactions between moldau and Apache Kafka: Java's clients and tools on moldau, and one data directory for both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.integration.test_transactions import create, read_from
from tests.integration.transaction_client import TransactionClient
from tests.oracle.apache_kafka import ApacheKafka, needs_apache_kafka, run_tool

from moldau.cli.transactions.command import main as kafka_transactions
from moldau.core.errors import ErrorCode
from moldau.testing import Broker

pytestmark = pytest.mark.java

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    needs_apache_kafka()
    with Broker() as running:
        yield running


@pytest.mark.parametrize("mode", ["one partition", "group"])
def test_java_copies_exactly_once_with_random_aborts(broker: Broker, mode: str) -> None:
    name = mode.replace(" ", "-")
    source, target = create(broker, f"source-{name}", 2), create(broker, f"target-{name}", 2)
    filling = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(1000):
        filling.produce(source, f"{number}", partition=0 if mode == "one partition" else number % 2)
    filling.flush(30)
    words = ["--broker-list", broker.bootstrap_servers, "--input-topic", source, "--input-partition", "0"]
    words += ["--output-topic", target, "--max-messages", "1000", "--consumer-group", name, "--transaction-size", "50"]
    words += ["--transactional-id", f"copy-{name}", "--enable-random-aborts"]
    if mode == "group":
        words += ["--group-mode", "--use-group-metadata"]
    copied = run_tool(COPIER, words)
    assert copied.returncode == 0, copied.stderr
    assert sorted(map(int, read_from(broker.bootstrap_servers, target))) == list(range(1000))


def test_both_kafka_transactions_say_the_same(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    topic = create(broker, "said")
    with TransactionClient(broker.port, "said") as client:
        client.init(timeout_ms=600_000)
        client.add(topic, 0, 1)
        client.write(topic, "a")
        for words in (
            ["list", "--transactional-id-pattern", "said"],
            ["describe-producers", "--topic", topic, "--partition", "0"],
            ["find-hanging", "--topic", topic],
        ):
            whole = ["--bootstrap-server", broker.bootstrap_servers, *words]
            capsys.readouterr()
            assert kafka_transactions(whole) == 0
            assert capsys.readouterr().out == run_tool(TRANSACTIONS, whole).stdout
        hanging = ["--topic", topic, "--partition", "0", "--start-offset", "0"]
        aborted = run_tool(TRANSACTIONS, ["--bootstrap-server", broker.bootstrap_servers, "abort", *hanging])
        assert aborted.returncode == 0, aborted.stderr
        assert read_from(broker.bootstrap_servers, topic) == []


def test_each_goes_on_with_the_transactions_of_the_other(tmp_path: Path) -> None:
    """One is committed, one is open: its owner ends it at the other broker, with the epoch it had."""
    needs_apache_kafka()
    settings = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
    with Broker(data=tmp_path / "data") as broker:
        topic = create(broker, "t")
        older, newer = begin(broker.port, topic, "older", 9), begin(broker.port, topic, "newer", 12)
    with ApacheKafka(tmp_path, settings) as kafka:
        end(kafka.port, "older", older, 4, is_commit=True)
        end(kafka.port, "newer", newer, 5, is_commit=False)
        assert sorted(read_from(kafka.bootstrap, topic)) == ["older"]
        third, fourth = begin(kafka.port, topic, "third", 9), begin(kafka.port, topic, "fourth", 12)
    with Broker(data=tmp_path / "data") as broker:
        assert sorted(read_from(broker.bootstrap_servers, topic)) == ["older"]
        end(broker.port, "third", third, 4, is_commit=False)
        end(broker.port, "fourth", fourth, 5, is_commit=True)
        assert sorted(read_from(broker.bootstrap_servers, topic)) == ["fourth", "older"]


def begin(port: int, topic: str, name: str, version: int) -> tuple[int, int]:
    with TransactionClient(port, name) as client:
        while client.init() is not ErrorCode.NONE:
            pass
        if version < 12:
            assert client.add(topic, 0) == {0: ErrorCode.NONE}
        assert client.write(topic, name, version=version) is ErrorCode.NONE
        return client.producer_id, client.producer_epoch


def end(port: int, name: str, owner: tuple[int, int], version: int, *, is_commit: bool) -> None:
    with TransactionClient(port, name) as client:
        client.producer_id, client.producer_epoch = owner
        loading = (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR,
        )
        while (code := client.end(is_commit=is_commit, version=version)) in loading:
            pass
        assert code is ErrorCode.NONE
        while not client.state().startswith("Complete"):
            pass
