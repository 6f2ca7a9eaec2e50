"""What the paths that Kafka kept in ZooKeeper say of a cluster."""

from __future__ import annotations

import json

import pytest

from moldau.cli.server.zookeeper_shell import children, content
from moldau.client.admin import PartitionDescription, TopicDescription


class OneBroker:
    cluster_id = "q1Sh-9_ISia_zwGINzRvyQ"
    brokers = ((0, "localhost", 9092),)
    topic_names = ("first_topic", "orders")

    def topic(self, name: str) -> TopicDescription:
        partitions = tuple(PartitionDescription(number, 0, (0,), (0,)) for number in range(2))
        return TopicDescription(name, "id-of-topic", False, partitions)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/", ["brokers", "cluster", "controller"]),
        ("/brokers", ["ids", "topics"]),
        ("/brokers/ids/", ["0"]),
        ("/brokers/ids/0", []),
        ("/brokers/topics", ["first_topic", "orders"]),
        ("/brokers/topics/orders", ["partitions"]),
        ("/brokers/topics/orders/partitions", ["0", "1"]),
        ("/brokers/topics/orders/partitions/1", ["state"]),
        ("/brokers/topics/orders/partitions/1/state", []),
        ("/cluster", ["id"]),
        ("/controller", []),
        ("/consumers", None),
        ("/brokers/ids/1", None),
        ("/brokers/topics/none", None),
        ("/brokers/topics/orders/partitions/2", None),
    ],
)
def test_names_below_a_path(path: str, names: list[str] | None) -> None:
    assert children(path, OneBroker()) == names
    assert (content(path, OneBroker()) is None) == (names is None)


def test_contents_are_kafkas_json() -> None:
    def read(path: str) -> object:
        return json.loads(content(path, OneBroker()) or "null")

    broker = read("/brokers/ids/0")
    assert isinstance(broker, dict)
    assert (broker["host"], broker["port"], broker["endpoints"]) == ("localhost", 9092, ["PLAINTEXT://localhost:9092"])
    assert read("/controller") == {"version": 1, "brokerid": 0}
    assert read("/cluster/id") == {"version": "1", "id": "q1Sh-9_ISia_zwGINzRvyQ"}
    topic = read("/brokers/topics/orders")
    assert isinstance(topic, dict)
    assert topic["partitions"] == {"0": [0], "1": [0]}
    assert read("/brokers/topics/orders/partitions/0/state") == {"leader": 0, "isr": [0], "version": 1}
