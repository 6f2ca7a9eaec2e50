"""Consumers of either protocol for tests: started, polled until something holds, judged by the describe API."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.testing import Broker

__all__ = [
    "QUICK",
    "create_topic",
    "describe",
    "heartbeat",
    "join",
    "new_consumer",
    "owners",
    "poll_until",
    "produce",
    "wire",
]

QUICK = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
}
"""Broker settings for groups that make up their minds within a test."""

PATIENCE_S = 90


def wire(broker: Broker) -> WireClient:
    return WireClient("127.0.0.1", broker.port)


def create_topic(broker: Broker, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_topics([NewTopic(name, partitions)]).values():
        future.result()


def produce(broker: Broker, topic: str, values: Iterable[int], partitions: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, str(value).encode(), partition=value % partitions)
    assert producer.flush(30) == 0


def new_consumer(broker: Broker, topics: list[str], **settings: Any) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    consumer.subscribe(topics)
    return consumer


def poll_until(consumers: Iterable[Consumer], holds: Callable[[], bool], seen: list[int] | None = None) -> None:
    """Poll all in turns until `holds`; values read are added to `seen`."""
    consumers = list(consumers)
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        for consumer in consumers:
            message = consumer.poll(0.02)
            if message is not None and message.error() is None and seen is not None:
                seen.append(int(message.value()))


def describe(client: WireClient, group_id: str = "g") -> Message:
    (group,) = client.send(ApiKey.CONSUMER_GROUP_DESCRIBE, Message(group_ids=[group_id])).groups
    return group


def owners(group: Message) -> dict[tuple[str, int], str]:
    """Who has what, by what the broker says; a partition with two owners is an error."""
    found: dict[tuple[str, int], str] = {}
    for member in group.members:
        for topic in member.assignment.topic_partitions:
            for partition in topic.partitions:
                assert (topic.topic_name, partition) not in found, "owned twice"
                found[topic.topic_name, partition] = member.member_id
    return found


def heartbeat(client: WireClient, member_id: str, epoch: int, **fields: object) -> Message:
    message = Message(group_id="g", member_id=member_id, member_epoch=epoch, topic_partitions=None)
    message.__dict__.update(fields)
    return client.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, message, 1)


def join(client: WireClient, member_id: str) -> Message:
    fields = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    client.send(ApiKey.FIND_COORDINATOR, Message(key_type=0, coordinator_keys=["g"]), 4)
    while (reply := heartbeat(client, member_id, 0, **fields)).error_code in (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    ):
        pass
    return reply
