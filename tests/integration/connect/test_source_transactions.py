"""A source under load: polls that share transactions, and restarts in the middle of them."""

from __future__ import annotations

import httpx
from confluent_kafka import Consumer, TopicPartition
from tests.integration.connect.talk import COUNTER, await_states, delete, make
from tests.integration.server_process import wait_until

from moldau.testing import Broker

LIMIT = 40_000


def test_each_record_is_there_once_and_in_order_whatever_is_restarted(
    moldau_broker: Broker, connect: httpx.Client
) -> None:
    make(connect, "loaded", {"connector.class": COUNTER, "topic": "loaded", "batch": "500", "limit": str(LIMIT)})
    await_states(connect, "loaded", "RUNNING", "RUNNING")

    def position() -> int:
        found = connect.get("/connectors/loaded/offsets").json()["offsets"]
        return int(found[0]["offset"]["next"]) if found else 0

    for _ in range(3):
        before = position()
        wait_until(lambda before=before: position() > before or position() == LIMIT, what="some progress")
        assert connect.post("/connectors/loaded/tasks/0/restart").status_code == 204
    wait_until(lambda: position() == LIMIT, timeout_s=120, what=f"all {LIMIT} numbers, it was {position()}")
    assert committed(moldau_broker, "loaded", LIMIT) == [f"0:{number}" for number in range(LIMIT)]
    delete(connect, "loaded")


def committed(broker: Broker, topic: str, count: int) -> list[str]:
    """The values of the committed records of a topic with one partition, once there are so many."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"reads-{topic}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    try:
        while True:
            for message in consumer.consume(1000, 10):
                if message.error() is None:
                    found.append((message.value() or b"").decode())
                elif len(found) >= count:
                    return found
    finally:
        consumer.close()
