"""Transactions as librdkafka's clients see them: committed or not at all, and only by whoever owns the id."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.testing import Broker

TOPIC = "orders"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"num.partitions": "2"}) as running:
        yield running


def create(broker: Broker, topic: str, partitions: int = 2) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (created,) = admin.create_topics([NewTopic(topic, partitions, 1)]).values()
    created.result(30)
    return topic


def producer(broker: Broker, transactional_id: str, **settings: object) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            **settings,
        }
    )
    made.init_transactions(30)
    return made


def read(broker: Broker, topic: str, isolation: str = "read_committed", partitions: int = 2) -> list[str]:
    return read_from(broker.bootstrap_servers, topic, isolation, partitions)


def read_from(bootstrap_servers: str, topic: str, isolation: str = "read_committed", partitions: int = 2) -> list[str]:
    """Everything from the beginning to where each partition ends now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    values, ends = [], set[int]()
    while len(ends) < partitions:
        message = consumer.poll(20)
        assert message is not None, "no message and no end in 20 s"
        if message.error():
            ends.add(message.partition())
        else:
            values.append(message.value().decode())
    consumer.close()
    return values


def test_committed_records_are_read_and_aborted_ones_are_not(broker: Broker) -> None:
    topic = create(broker, "committed-and-aborted")
    writer = producer(broker, "committed-and-aborted")
    for number in range(6):
        writer.begin_transaction()
        for partition in range(2):
            writer.produce(topic, f"{number}", partition=partition)
        if number % 3 == 2:
            writer.flush(30)
            writer.abort_transaction(30)
        else:
            writer.commit_transaction(30)
    assert sorted(read(broker, topic)) == ["0", "0", "1", "1", "3", "3", "4", "4"]
    assert len(read(broker, topic, "read_uncommitted")) == 12


def test_an_open_transaction_holds_readers_of_committed_records_back(broker: Broker) -> None:
    topic = create(broker, "open", 1)
    writer = producer(broker, "open")
    writer.begin_transaction()
    writer.produce(topic, "open", partition=0)
    writer.flush(30)
    plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
    plain.produce(topic, "plain", partition=0)
    plain.flush(30)
    assert read(broker, topic, partitions=1) == []
    assert read(broker, topic, "read_uncommitted", partitions=1) == ["open", "plain"]
    writer.commit_transaction(30)
    assert read(broker, topic, partitions=1) == ["open", "plain"]


def test_a_second_producer_of_the_same_id_fences_the_first(broker: Broker) -> None:
    topic = create(broker, "fenced", 1)
    zombie = producer(broker, "fenced")
    zombie.begin_transaction()
    zombie.produce(topic, "of the zombie", partition=0)
    zombie.flush(30)
    successor = producer(broker, "fenced")
    zombie.produce(topic, "too late", partition=0)
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(30)
    assert refused.value.args[0].fatal()
    successor.begin_transaction()
    successor.produce(topic, "of the successor", partition=0)
    successor.commit_transaction(30)
    assert read(broker, topic, partitions=1) == ["of the successor"]


def test_offsets_sent_to_a_transaction_count_when_it_is_committed(broker: Broker) -> None:
    source, target = create(broker, "source", 1), create(broker, "target", 1)
    plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(5):
        plain.produce(source, f"{number}", partition=0)
    plain.flush(30)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "copies",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([source])
    copier = producer(broker, "copies")
    for fate in (copier.abort_transaction, copier.commit_transaction):
        copier.begin_transaction()
        for _ in range(5):
            message = consumer.poll(30)
            assert message is not None
            assert not message.error()
            copier.produce(target, message.value(), partition=0)
        copier.flush(30)
        copier.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 30
        )
        fate(30)
        (committed,) = consumer.committed([TopicPartition(source, 0)], 30)
        if fate == copier.abort_transaction:
            assert committed.offset < 0
            consumer.seek(TopicPartition(source, 0, 0))
        else:
            assert committed.offset == 5
    consumer.close()
    assert read(broker, target, partitions=1) == ["0", "1", "2", "3", "4"]
