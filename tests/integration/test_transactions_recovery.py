"""Transactions across restarts and kills: what was decided is carried out, once, and what was not is undone."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.killable import KillableBroker
from tests.integration.server_process import wait_until
from tests.integration.test_transactions import create, read_from
from tests.integration.transaction_client import TransactionClient

from moldau.broker.coordination import transaction_markers
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message
from moldau.protocol.records import split_batches
from moldau.testing import Broker

NONE = ErrorCode.NONE


def markers_in(client: TransactionClient, topic: str, partition: int) -> int:
    fetched = client.fetch(topic, 0, partitions=(partition,))
    return sum(header.is_control for header, _ in split_batches(fetched.records or b""))


@pytest.mark.parametrize(("add_version", "end_version"), [(9, 4), (12, 5)])
def test_a_decided_transaction_is_completed_after_a_restart_with_one_marker_each(
    monkeypatch: pytest.MonkeyPatch, add_version: int, end_version: int
) -> None:
    write = transaction_markers.Markers.write

    def write_to_one_only(
        self: transaction_markers.Markers,
        topic_partition: TopicPartition,
        marker: transaction_markers.Marker,
        done: Callable[[ErrorCode], None],
        **options: bool,
    ) -> None:
        if topic_partition.partition == 0:
            write(self, topic_partition, marker, done, **options)  # type: ignore[arg-type]

    with Broker() as broker:
        topic = create(broker, "restarted")
        with TransactionClient(broker.port, "restarted") as client:
            client.init()
            if add_version < 12:
                client.add(topic, 0, 1)
            for partition in (0, 1):
                assert client.write(topic, f"{partition}", partition=partition, version=add_version) is NONE
            monkeypatch.setattr(transaction_markers.Markers, "write", write_to_one_only)
            assert client.end(is_commit=True, version=end_version) is NONE
            wait_until(lambda: markers_in(client, topic, 0) == 1)
            assert client.state() == "PrepareCommit"
            assert client.init() is ErrorCode.CONCURRENT_TRANSACTIONS
        monkeypatch.undo()
        broker.restart()
        with TransactionClient(broker.port, "restarted") as client:
            wait_until(lambda: client.state() == "CompleteCommit")
            assert [markers_in(client, topic, partition) for partition in (0, 1)] == [1, 1]
        assert sorted(read_from(broker.bootstrap_servers, topic)) == ["0", "1"]


def test_transactional_offsets_survive_a_restart_on_either_side_of_their_marker() -> None:
    with Broker() as broker:
        topic = create(broker, "offsets")
        with TransactionClient(broker.port, "offsets") as client:
            client.init()
            client.ask(10, 4, Message(key_type=0, coordinator_keys=["g"]))
            assert client.commit_offset("g", topic, 7, version=5) is NONE
        broker.restart()
        with TransactionClient(broker.port, "offsets") as client:
            wait_until(lambda: client.state() == "Ongoing")
            client.producer_id, client.producer_epoch = owner_of(client)
            assert committed(client, "g", topic) == -1
            assert client.end(is_commit=True, version=5) is NONE
            wait_until(lambda: committed(client, "g", topic) == 7)
        broker.restart()
        with TransactionClient(broker.port, "offsets") as client:
            wait_until(lambda: committed(client, "g", topic) == 7)


def owner_of(client: TransactionClient) -> tuple[int, int]:
    (found,) = client.ask(65, 0, Message(transactional_ids=[client.transactional_id])).transaction_states
    return found.producer_id, found.producer_epoch


def committed(client: TransactionClient, group: str, topic: str) -> int:
    request = Message(
        groups=[
            Message(
                group_id=group, member_id=None, member_epoch=-1, topics=[Message(name=topic, partition_indexes=[0])]
            )
        ],
        require_stable=False,
    )
    (found,) = client.ask(9, 8, request).groups
    if found.error_code:
        return -2
    offset: int = found.topics[0].partitions[0].committed_offset
    return offset


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_no_transaction_is_torn_by_kills(seed: int, tmp_path: Path) -> None:
    """Each transaction writes its number to every partition; kills come at any moment of it."""
    partitions, kills, each = 3, 6, 15
    random_ = random.Random(seed)
    broker = KillableBroker(tmp_path, {})
    fates: dict[int, bool] = {}
    try:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for created in admin.create_topics([NewTopic("t", partitions, 1)]).values():
            created.result(60)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "transactional.id": "killed",
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 200,
            }
        )
        producer.init_transactions(60)
        for _ in range(kills):
            killer = threading.Timer(random_.uniform(0.01, 0.2), lambda: (broker.kill(), broker.start()))
            killer.start()
            for number in range(len(fates), len(fates) + each):
                fates[number] = one_transaction(producer, number, partitions, is_commit=random_.random() < 0.7)
            killer.join()
        values = read_from(broker.bootstrap_servers, "t", partitions=partitions)
    finally:
        broker.kill()
    assert sorted(values) == sorted(str(number) for number, fate in fates.items() if fate for _ in range(partitions))


def one_transaction(producer: Producer, number: int, partitions: int, *, is_commit: bool) -> bool:
    """Whether it was committed; an error that asks for an abort makes it one."""
    producer.begin_transaction()
    for partition in range(partitions):
        producer.produce("t", f"{number}", partition=partition)
    while True:
        try:
            if not is_commit:
                producer.flush(60)
                producer.abort_transaction(60)
                return False
            producer.commit_transaction(60)
            return True
        except KafkaException as raised:
            error = raised.args[0]
            assert error.retriable() or error.txn_requires_abort(), error
            is_commit = is_commit and not error.txn_requires_abort()
