"""Groups and their offsets in one data directory under two brokers: each finds what the other left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.oracle.apache_kafka import ApacheKafka, needs_apache_kafka
from tests.oracle.dumping import dumped_by_kafka

from moldau.testing import Broker

pytestmark = pytest.mark.java

FEW = {"offsets.topic.num.partitions": "2"}


def consume(bootstrap: str, group: str, count: int) -> list[int]:
    """Join the group, read this many records, commit, leave; the offsets that were read."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["t"])
    try:
        found = []
        while len(found) < count:
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None, message.error()
            found.append(message.offset())
        consumer.commit(asynchronous=False)
        return found
    finally:
        consumer.close()


def commit_alone(bootstrap: str, group: str, offset: int) -> None:
    """As somebody who never joins."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition("t", 0, offset, "note")], asynchronous=False)
    consumer.close()


def committed(bootstrap: str, group: str) -> tuple[int, str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        found = committed_once_loaded(consumer)
    finally:
        consumer.close()
    return found.offset, (found.metadata or "").rstrip("\0")


def committed_once_loaded(consumer: Consumer) -> TopicPartition:
    """A broker that was just started is coordinator before it has loaded its groups, and librdkafka gives up then."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return consumer.committed([TopicPartition("t", 0)], timeout=30)[0]
        except KafkaException as error:
            is_loading = error.args[0].code() in (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
            if not is_loading or time.monotonic() > deadline:
                raise


def states(bootstrap: str) -> dict[str, ConsumerGroupState]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return {one.group_id: one.state for one in admin.list_consumer_groups().result(30).valid}


def test_groups_go_on_under_the_other_broker(tmp_path: Path) -> None:
    needs_apache_kafka()
    data = tmp_path / "data"
    with Broker(FEW, data=data) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for created in admin.create_topics([NewTopic("t", 1, 1)]).values():
            created.result(30)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(30):
            producer.produce("t", str(number))
        assert producer.flush(30) == 0
        assert consume(broker.bootstrap_servers, "readers", 10) == list(range(10))
        commit_alone(broker.bootstrap_servers, "loner", 7)
        commit_alone(broker.bootstrap_servers, "doomed", 8)
        admin.delete_consumer_groups(["doomed"])["doomed"].result(30)
        del admin, producer
    logs = [path for path in data.glob("__consumer_offsets-*/*.log") if path.stat().st_size]
    dump = dumped_by_kafka(logs, "--offsets-decoder").out
    assert '"protocolType":"consumer","generation":1,"protocol":"range"' in dump
    assert '"data":{"offset":7,"leaderEpoch":-1,"metadata":"note' in dump
    assert '{"type":"1","data":{"group":"doomed","topic":"t","partition":0}} payload: <DELETE>' in dump

    settings = FEW | {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
    with ApacheKafka(tmp_path, settings) as kafka:
        assert committed(kafka.bootstrap, "loner") == (7, "note")
        assert consume(kafka.bootstrap, "readers", 10) == list(range(10, 20))
        assert states(kafka.bootstrap) == {"readers": ConsumerGroupState.EMPTY, "loner": ConsumerGroupState.EMPTY}
        commit_alone(kafka.bootstrap, "loner", 9)
    with Broker(FEW, data=data) as broker:
        bootstrap = broker.bootstrap_servers
        assert consume(bootstrap, "readers", 10) == list(range(20, 30))
        assert committed(bootstrap, "loner") == (9, "note")
        assert states(bootstrap) == {"readers": ConsumerGroupState.EMPTY, "loner": ConsumerGroupState.EMPTY}
