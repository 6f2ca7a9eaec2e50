"""Transactions request by request: both protocols, and the exact error for everything that is not allowed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.server_process import wait_until
from tests.integration.test_transactions import read
from tests.integration.transaction_client import (
    DESCRIBE_PRODUCERS,
    LIST,
    MARKERS,
    TransactionClient,
)

from moldau.broker.metric_sources.attach import Parts, attach_metrics
from moldau.broker.metrics import Metrics
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message
from moldau.testing import Broker

TOPIC = "t"
NONE = ErrorCode.NONE


@pytest.fixture(scope="module", params=["page cache", "disk"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Acknowledged at once, and only when the disk has it: then every decision waits for its own record."""
    with Broker({"moldau.flush.on.ack": str(request.param == "disk").lower()}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        for created in admin.create_topics([NewTopic(TOPIC, 2, 1), NewTopic("u", 1, 1)]).values():
            created.result(30)
        yield running


@pytest.fixture
def client(broker: Broker, request: pytest.FixtureRequest) -> Iterator[TransactionClient]:
    with TransactionClient(broker.port, request.node.originalname) as made:
        yield made


def zombie_of(client: TransactionClient, broker: Broker) -> TransactionClient:
    zombie = TransactionClient(broker.port, client.transactional_id)
    zombie.producer_id, zombie.producer_epoch = client.producer_id, client.producer_epoch
    return zombie


def test_the_older_protocol_keeps_its_epoch(client: TransactionClient) -> None:
    assert client.init() is NONE
    epoch = client.producer_epoch
    for number in range(3):
        assert client.add(TOPIC, 0, 1) == {0: NONE, 1: NONE}
        assert client.write(TOPIC, "a", sequence=number) is NONE
        assert client.state() == "Ongoing"
        assert client.end(is_commit=number % 2 == 0) is NONE
    assert client.producer_epoch == epoch
    assert client.end(is_commit=True) is NONE, "a repeated end gets the same answer"
    assert client.end(is_commit=False) is ErrorCode.INVALID_TXN_STATE


def test_the_newer_protocol_moves_the_epoch_with_every_end(client: TransactionClient, broker: Broker) -> None:
    assert client.init() is NONE
    for number in range(3):
        assert client.write(TOPIC, f"newer {number}", version=12) is NONE
        before = client.producer_epoch
        assert client.end(is_commit=number != 1, version=5) is NONE
        assert client.producer_epoch == before + 1
    assert [one for one in read(broker, TOPIC) if one.startswith("newer")] == ["newer 0", "newer 2"]


def test_an_end_that_was_not_heard_of_is_answered_again_with_the_new_epoch(client: TransactionClient) -> None:
    client.init()
    client.write(TOPIC, "a", version=12)
    epoch = client.producer_epoch
    for _ in range(2):
        client.producer_epoch = epoch
        assert client.end(is_commit=True, version=5) is NONE
        assert client.producer_epoch == epoch + 1
    client.producer_epoch = epoch
    assert client.end(is_commit=False, version=5) is ErrorCode.INVALID_TXN_STATE


def test_nothing_may_be_aborted_but_not_committed(client: TransactionClient) -> None:
    client.init()
    assert client.end(is_commit=True, version=5) is ErrorCode.INVALID_TXN_STATE
    assert client.end(is_commit=False, version=5) is NONE
    assert client.producer_epoch == 1
    assert client.end(is_commit=True, version=4) is ErrorCode.INVALID_TXN_STATE


def test_a_produce_outside_of_the_transaction_is_refused(client: TransactionClient) -> None:
    client.init()
    client.add(TOPIC, 0)
    assert client.write(TOPIC, "a", partition=1, version=9) is ErrorCode.INVALID_TXN_STATE
    assert client.write(TOPIC, "a", partition=1, version=11) is ErrorCode.TRANSACTION_ABORTABLE
    assert client.write(TOPIC, "a", partition=1, version=12) is NONE
    assert client.write(TOPIC, "b", partition=1, sequence=1, is_transactional=False) is ErrorCode.INVALID_TXN_STATE
    assert client.end(is_commit=False) is NONE


def test_a_newcomer_begins_with_its_first_sequence(client: TransactionClient) -> None:
    client.init()
    assert client.write(TOPIC, "a", sequence=5, version=12) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.end(is_commit=False, version=5) is NONE


def test_who_comes_back_fences_who_was_there(client: TransactionClient, broker: Broker) -> None:
    client.init()
    zombie = zombie_of(client, broker)
    zombie.add(TOPIC, 0)
    assert zombie.write(TOPIC, "a") is NONE
    assert client.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    wait_until(lambda: client.init() is NONE)
    assert client.producer_epoch == zombie.producer_epoch + 2
    assert zombie.write(TOPIC, "b", sequence=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.add(TOPIC, 0) == {0: ErrorCode.PRODUCER_FENCED}
    assert zombie.add(TOPIC, 0, version=1) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert zombie.add_offsets("g") is ErrorCode.PRODUCER_FENCED
    assert zombie.add_offsets("g", version=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.end(is_commit=True) is ErrorCode.PRODUCER_FENCED
    assert zombie.end(is_commit=True, version=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.end(is_commit=True, version=5) is ErrorCode.PRODUCER_FENCED
    expected = (zombie.producer_id, zombie.producer_epoch)
    assert zombie.init(expected=expected) is ErrorCode.PRODUCER_FENCED
    assert zombie.init(expected=expected, version=3) is ErrorCode.INVALID_PRODUCER_EPOCH
    zombie.socket.close()


def test_an_owner_may_ask_for_the_next_epoch_and_ask_again(client: TransactionClient) -> None:
    client.init()
    had = (client.producer_id, client.producer_epoch)
    assert client.init(expected=had) is NONE
    assert client.init(expected=had) is NONE
    assert (client.producer_id, client.producer_epoch) == (had[0], had[1] + 1)


def test_strange_requests_get_their_codes(client: TransactionClient) -> None:
    assert client.state() == "TRANSACTIONAL_ID_NOT_FOUND"
    assert client.add(TOPIC, 0) == {0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert client.end(is_commit=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert client.init(timeout_ms=0) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert client.init(timeout_ms=900_001) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    client.init()
    owner = client.producer_id
    client.producer_id = owner + 1000
    assert client.add(TOPIC, 0) == {0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert client.write(TOPIC, "a") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    client.producer_id = owner
    assert client.add(TOPIC, 0, 7) == {
        0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert client.state() == "Empty"


def test_offsets_need_their_partition_in_the_transaction(client: TransactionClient) -> None:
    client.init()
    assert client.add("u", 0) == {0: NONE}
    client.ask(10, 4, Message(key_type=0, coordinator_keys=["wire-offsets"]))
    assert client.commit_offset("wire-offsets", TOPIC, 5) is ErrorCode.INVALID_TXN_STATE
    assert client.commit_offset("wire-offsets", TOPIC, 5, version=4) is ErrorCode.TRANSACTION_ABORTABLE
    assert client.commit_offset("wire-offsets", TOPIC, 5, version=5) is NONE
    assert client.commit_offset("", TOPIC, 5, version=5) is ErrorCode.INVALID_GROUP_ID
    assert client.commit_offset("wire-offsets", "nothing", 5) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.add_offsets("wire-offsets") is NONE
    assert client.end(is_commit=True) is NONE


def test_operators_list_what_they_ask_for(client: TransactionClient) -> None:
    client.init()
    client.add(TOPIC, 0)

    def listed(**filters: object) -> list[str]:
        request = Message(state_filters=[], producer_id_filters=[], duration_filter=-1, transactional_id_pattern=None)
        reply = client.ask(LIST, 2, Message(**{**vars(request), **filters}))
        assert reply.error_code == 0
        return [one.transactional_id for one in reply.transaction_states]

    me = client.transactional_id
    assert me in listed()
    assert me in listed(state_filters=["Ongoing"])
    assert me not in listed(state_filters=["Empty"])
    assert listed(producer_id_filters=[client.producer_id]) == [me]
    assert me not in listed(duration_filter=3_600_000)
    assert listed(transactional_id_pattern="test_operators_.*_for") == [me]
    assert listed(transactional_id_pattern="operators") == []
    bad = client.ask(
        LIST,
        2,
        Message(
            state_filters=["Sleepy"], producer_id_filters=[], duration_filter=-1, transactional_id_pattern="(?<=a)b"
        ),
    )
    assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert bad.unknown_state_filters == ["Sleepy"]
    client.end(is_commit=False)


def test_a_hanging_transaction_is_ended_by_a_marker(client: TransactionClient) -> None:
    client.init()
    client.add("u", 0)
    assert client.write("u", "hanging") is NONE

    def marked(epoch: int, coordinator_epoch: int = 0, topic: str = "u") -> ErrorCode:
        marker = Message(
            producer_id=client.producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            coordinator_epoch=coordinator_epoch,
            topics=[Message(name=topic, partition_indexes=[0])],
        )
        reply = client.ask(MARKERS, 1, Message(markers=[marker]))
        return ErrorCode(reply.markers[0].topics[0].partitions[0].error_code)

    def open_since() -> dict[int, int]:
        reply = client.ask(DESCRIBE_PRODUCERS, 0, Message(topics=[Message(name="u", partition_indexes=[0])]))
        return {one.producer_id: one.current_txn_start_offset for one in reply.topics[0].partitions[0].active_producers}

    assert open_since()[client.producer_id] >= 0
    assert marked(client.producer_epoch, topic="nothing") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert marked(client.producer_epoch, coordinator_epoch=5) is NONE
    assert open_since()[client.producer_id] == -1
    assert marked(client.producer_epoch, coordinator_epoch=4) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert marked(client.producer_epoch + 2, coordinator_epoch=5) is NONE
    assert marked(client.producer_epoch, coordinator_epoch=5) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert client.end(is_commit=False) is NONE


def test_an_overdue_transaction_is_aborted_and_its_producer_fenced(client: TransactionClient, broker: Broker) -> None:
    client.init(timeout_ms=300)
    client.add(TOPIC, 0)
    assert client.write(TOPIC, "overdue") is NONE
    wait_until(lambda: client.state() == "CompleteAbort", timeout_s=30)
    assert client.end(is_commit=True) is ErrorCode.PRODUCER_FENCED
    assert "overdue" not in read(broker, TOPIC)


def test_an_id_without_epochs_left_is_replaced(client: TransactionClient, broker: Broker) -> None:
    """Nobody waits for 32,767 transactions: the coordinator is told that they have been."""
    client.init()
    node = broker.node
    assert node is not None
    assert node.broker is not None
    shard = node.broker.coordinators.transaction_shards.shard_of(client.transactional_id)
    assert not isinstance(shard, ErrorCode)
    known = shard.core.transactions
    known[client.transactional_id] = replace(known[client.transactional_id], producer_epoch=32766)
    client.producer_epoch = 32766
    old_id = client.producer_id
    assert client.write(TOPIC, "last", version=12) is NONE
    assert client.end(is_commit=True, version=5) is NONE
    assert client.producer_id != old_id
    assert client.producer_epoch == 0
    wait_until(lambda: client.state() == "CompleteCommit")
    assert client.write(TOPIC, "first", version=12) is NONE
    assert client.end(is_commit=True, version=5) is NONE
    values = read(broker, TOPIC)
    assert "last" in values
    assert "first" in values


def test_metrics_tell_how_transactions_ended(client: TransactionClient, broker: Broker) -> None:
    before = metrics(broker)
    client.init()
    client.add("u", 0)
    client.write("u", "a", partition=0)
    assert metrics(broker)['moldau_txn_open{state="Ongoing"}'] == before['moldau_txn_open{state="Ongoing"}'] + 1
    client.end(is_commit=True)
    wait_until(lambda: client.state() == "CompleteCommit")
    client.write(TOPIC, "not added", sequence=0)
    after = metrics(broker)
    assert after["moldau_txn_committed_total"] == before["moldau_txn_committed_total"] + 1
    failures = "kafka_server_addpartitionstotxnmanager_verificationfailurerate_total"
    assert after[failures] == before.get(failures, 0) + 1


def metrics(broker: Broker) -> dict[str, float]:
    node = broker.node
    assert node is not None
    assert node.broker is not None
    registry = Metrics()
    attach_metrics(registry, node.broker, Parts(broker_state=lambda: 3))
    lines = "".join(registry.render_prometheus()).splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}
