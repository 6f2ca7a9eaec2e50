"""Epochs of the past, gaps in sequences, ids in use, writes outside a transaction, expired ones: the exact error.

Each is asked of moldau and of Apache Kafka, in the older protocol of transactions and in the newer one (KIP-890).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from tests.integration.both_brokers import create_topic, port
from tests.integration.group_members import coordinator_is_ready
from tests.integration.server_process import wait_until
from tests.integration.transaction_client import TransactionClient

from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode

__all__ = ["port"]

SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "transaction.max.timeout.ms": "60000",
}
TOPIC = "orders"
NONE = ErrorCode.NONE
AWAY = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
PASSING = (*AWAY, ErrorCode.CONCURRENT_TRANSACTIONS)
_serial = itertools.count()

Connect = Callable[..., TransactionClient]


@pytest.fixture(scope="module", autouse=True)
def _ready(port: int) -> None:
    with WireClient("127.0.0.1", port) as client:
        create_topic(client, TOPIC, 2)
        coordinator_is_ready(client, "outside")


@pytest.fixture
def connect(port: int) -> Iterator[Connect]:
    opened: list[TransactionClient] = []

    def client(transactional_id: str | None = None) -> TransactionClient:
        chosen = f"id-{next(_serial)}" if transactional_id is None else transactional_id
        opened.append(TransactionClient(port, chosen))
        return opened[-1]

    yield client
    for one in opened:
        one.socket.close()


def started(client: TransactionClient, timeout_ms: int = 60_000) -> TransactionClient:
    """With a producer id; a predecessor's transaction has been aborted by then."""
    while (code := client.init(timeout_ms=timeout_ms)) is not NONE:
        assert code in PASSING
    return client


# Epochs of the past


def test_whoever_comes_second_fences_the_first(connect: Connect) -> None:
    first = started(connect("taken"))
    second = started(connect("taken"))

    assert second.producer_id == first.producer_id
    assert second.producer_epoch > first.producer_epoch
    assert set(first.add(TOPIC, 0).values()) == {ErrorCode.PRODUCER_FENCED}
    assert first.add_offsets("group") is ErrorCode.PRODUCER_FENCED
    assert first.end(is_commit=True) is ErrorCode.PRODUCER_FENCED
    assert first.end(is_commit=True, version=5) is ErrorCode.PRODUCER_FENCED
    started(connect("taken"))
    assert first.init(expected=(first.producer_id, first.producer_epoch)) is ErrorCode.PRODUCER_FENCED


def test_a_write_with_an_epoch_of_the_past_is_refused(connect: Connect) -> None:
    first = started(connect("late"))
    first.add(TOPIC, 0)
    assert first.write(TOPIC, "in time") is NONE
    second = started(connect("late"))

    assert first.write(TOPIC, "too late", sequence=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    second.add(TOPIC, 0)
    assert second.write(TOPIC, "of the second") is NONE
    assert second.end(is_commit=True) is NONE


def test_an_id_in_use_is_taken_over_after_its_transaction_is_aborted(connect: Connect) -> None:
    owner = started(connect("in-use"))
    owner.add(TOPIC, 0)
    assert owner.write(TOPIC, "open") is NONE

    assert connect("in-use").init() is ErrorCode.CONCURRENT_TRANSACTIONS
    successor = started(connect("in-use"))
    assert owner.end(is_commit=True) is ErrorCode.PRODUCER_FENCED
    assert successor.state() in ("Empty", "CompleteAbort")


# Sequences


@pytest.mark.parametrize("version", [9, 12])
def test_a_gap_in_the_sequence_is_refused(connect: Connect, version: int) -> None:
    client = started(connect())
    client.add(TOPIC, 0)
    assert client.write(TOPIC, "0", version=version) is NONE

    assert client.write(TOPIC, "2", sequence=2, version=version) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.write(TOPIC, "1", sequence=1, version=version) is NONE
    assert client.write(TOPIC, "1", sequence=1, version=version) is NONE, "a repetition is answered as before"
    assert client.end(is_commit=True) is NONE


# Outside the transaction


@pytest.mark.parametrize(
    ("version", "code"), [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_a_write_to_a_partition_outside_the_transaction_is_refused(
    connect: Connect, version: int, code: ErrorCode
) -> None:
    client = started(connect())
    client.add(TOPIC, 0)

    assert client.write(TOPIC, "inside", version=version) is NONE
    assert client.write(TOPIC, "outside", partition=1, version=version) is code
    assert client.end(is_commit=False) is NONE


def test_a_write_after_the_end_is_outside(connect: Connect) -> None:
    client = started(connect())
    client.add(TOPIC, 0)
    assert client.write(TOPIC, "inside") is NONE
    assert client.end(is_commit=True) is NONE
    wait_until(lambda: client.state() == "CompleteCommit")

    assert client.write(TOPIC, "outside", sequence=1) is ErrorCode.INVALID_TXN_STATE
    assert client.write(TOPIC, "plain", sequence=1, is_transactional=False) in (NONE, ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("version", [3, 4])
def test_offsets_outside_the_transaction_are_refused(connect: Connect, version: int) -> None:
    client = started(connect())
    client.add(TOPIC, 0)
    code = ErrorCode.TRANSACTION_ABORTABLE if version >= 4 else ErrorCode.INVALID_TXN_STATE
    while (answer := client.commit_offset("outside", TOPIC, 1, version)) in AWAY:
        continue

    assert answer is code
    assert client.end(is_commit=False) is NONE


# Ends


def test_what_never_began_cannot_be_committed(connect: Connect) -> None:
    client = started(connect())

    assert client.end(is_commit=True) is ErrorCode.INVALID_TXN_STATE
    assert client.end(is_commit=True, version=5) is ErrorCode.INVALID_TXN_STATE


def test_what_was_committed_cannot_be_aborted(connect: Connect) -> None:
    client = started(connect())
    client.add(TOPIC, 0)
    assert client.end(is_commit=True) is NONE

    assert client.end(is_commit=True) is NONE, "a repetition is answered as before"
    assert client.end(is_commit=False) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(("version", "code"), [(4, ErrorCode.PRODUCER_FENCED), (5, ErrorCode.INVALID_TXN_STATE)])
def test_an_expired_transaction_is_aborted_and_its_owner_fenced(
    connect: Connect, version: int, code: ErrorCode
) -> None:
    """In the newer protocol the epoch behind the current one may be a repetition, but of an abort, not of a commit."""
    client = started(connect(), timeout_ms=300)
    client.add(TOPIC, 0)
    assert client.write(TOPIC, "overdue") is NONE
    wait_until(lambda: client.state() == "CompleteAbort")

    assert client.end(is_commit=True, version=version) is code
    assert client.write(TOPIC, "too late", sequence=1) is ErrorCode.INVALID_PRODUCER_EPOCH


# Requests that make no sense


def test_strange_ids_and_timeouts_are_refused(connect: Connect) -> None:
    client = connect("")
    assert client.init() is ErrorCode.INVALID_REQUEST

    client = connect()
    while (code := client.init(timeout_ms=60_001)) in AWAY:
        continue
    assert code is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert client.init(timeout_ms=0) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_an_id_nobody_has_is_refused(connect: Connect) -> None:
    started(connect())
    client = connect("nobody")
    client.producer_id, client.producer_epoch = 0, 0

    assert client.state() == "TRANSACTIONAL_ID_NOT_FOUND"
    assert set(client.add(TOPIC, 0).values()) == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert client.end(is_commit=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_producer_id_of_another_is_refused(connect: Connect) -> None:
    owner, thief = started(connect()), started(connect())
    thief.producer_id = owner.producer_id

    assert set(thief.add(TOPIC, 0).values()) == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert thief.end(is_commit=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_one_partition_that_does_not_exist_stops_the_others(connect: Connect) -> None:
    client = started(connect())

    assert client.add(TOPIC, 0, 7) == {
        0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
