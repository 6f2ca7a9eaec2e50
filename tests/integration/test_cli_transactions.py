"""kafka-transactions beside a broker: what is open, what hangs, and how it is ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.server_process import wait_until
from tests.integration.test_transactions import create, read
from tests.integration.transaction_client import TransactionClient

from moldau.cli.transactions.command import main
from moldau.core.errors import ErrorCode
from moldau.testing import Broker

NONE = ErrorCode.NONE


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


class Tool:
    def __init__(self, broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
        self._broker, self._capsys = broker, capsys
        self.errors = ""

    def __call__(self, *words: str, status: int = 0) -> list[list[str]]:
        self._capsys.readouterr()
        assert main(["--bootstrap-server", self._broker.bootstrap_servers, *words]) == status
        output = self._capsys.readouterr()
        self.errors = output.err
        return [[cell.strip() for cell in line.split("\t")[:-1]] for line in output.out.splitlines()]


@pytest.fixture
def tool(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(broker, capsys)


def test_an_open_transaction_is_listed_and_described(broker: Broker, tool: Tool) -> None:
    topic = create(broker, "listed")
    with TransactionClient(broker.port, "cli-listed") as client:
        client.init()
        client.add(topic, 0, 1)
        client.write(topic, "a")
        header, *rows = tool("list", "--transactional-id-pattern", "cli-.*")
        assert header == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
        assert rows == [["cli-listed", "1", str(client.producer_id), "Ongoing"]]
        assert tool("list", "--duration-filter", "3600000", "--transactional-id-pattern", "cli-.*")[1:] == []
        header, row = tool("describe", "--transactional-id", "cli-listed")
        described = dict(zip(header, row, strict=True))
        assert described["TransactionState"] == "Ongoing"
        assert described["TransactionTimeoutMs"] == "60000"
        assert described["TopicPartitions"] == "listed-0,listed-1"
        assert int(described["TransactionDurationMs"]) < 30_000
        header, row = tool("describe-producers", "--topic", topic, "--partition", "0")
        producer = dict(zip(header, row, strict=True))
        assert producer["ProducerId"] == str(client.producer_id)
        assert producer["CurrentTransactionStartOffset"] == "0"
        assert producer["LatestCoordinatorEpoch"] == "-1"


def test_a_hanging_transaction_is_found_and_aborted(broker: Broker, tool: Tool) -> None:
    topic = create(broker, "hanging", 1)
    with TransactionClient(broker.port, "cli-hanging") as client:
        client.init()
        client.add(topic, 0)
        client.write(topic, "hangs")
        assert tool("find-hanging", "--topic", topic, "--max-transaction-timeout", "0")[1:] == [], "it is known"
        forget(broker, "cli-hanging")
        header, row = tool("find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
        found = dict(zip(header, row, strict=True))
        assert (found["Topic"], found["Partition"], found["StartOffset"]) == (topic, "0", "0")
        assert tool("find-hanging", "--topic", topic)[1:] == [], "not for long enough"
        tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "5", status=1)
        assert "offset 5" in tool.errors
        tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
        assert tool("find-hanging", "--topic", topic, "--max-transaction-timeout", "0")[1:] == []
        assert read(broker, topic, partitions=1) == []


def forget(broker: Broker, transactional_id: str) -> None:
    """As a coordinator that lost its log would."""
    node = broker.node
    assert node is not None
    assert node.broker is not None
    shard = node.broker.coordinators.transaction_shards.shard_of(transactional_id)
    assert not isinstance(shard, ErrorCode)
    del shard.core.transactions[transactional_id]


@pytest.mark.parametrize("command", ["force-terminate", "forceTerminateTransaction"])
def test_a_transaction_is_terminated_by_force(broker: Broker, tool: Tool, command: str) -> None:
    topic = create(broker, command, 1)
    with TransactionClient(broker.port, command) as client:
        client.init()
        client.add(topic, 0)
        client.write(topic, "a")
        tool(command, "--transactionalId", command)
        wait_until(lambda: client.state() == "CompleteAbort")
        assert client.end(is_commit=True) is ErrorCode.PRODUCER_FENCED


def test_mistakes_are_told_in_one_line(tool: Tool) -> None:
    for words in (
        ("describe", "--transactional-id", "nobody"),
        ("list", "--transactional-id-pattern", "("),
        ("find-hanging",),
        ("find-hanging", "--broker-id", "1", "--partition", "0"),
        ("abort", "--topic", "t", "--partition", "0"),
        ("describe-producers", "--topic", "nothing", "--partition", "0"),
        ("force-terminate", "--transactional-id", "nobody"),
    ):
        tool(*words, status=1)
        assert tool.errors.count("\n") == 1, tool.errors
