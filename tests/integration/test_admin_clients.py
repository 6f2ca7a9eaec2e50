"""Other people's admin clients do their work on our broker: librdkafka's and kafka-python's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from moldau.core.errors import ErrorCode
from moldau.testing import Broker

TIMEOUT_S = 20


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def librdkafka(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})


@pytest.fixture(scope="module")
def kafka_python(broker: Broker) -> Iterator[Any]:
    from kafka.admin import KafkaAdminClient

    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    yield client
    client.close()


def done(futures: dict[Any, Any]) -> list[Any]:
    return [future.result(TIMEOUT_S) for future in futures.values()]


def refused(futures: dict[Any, Any]) -> int:
    with pytest.raises(KafkaException) as refusal:
        done(futures)
    code: int = refusal.value.args[0].code()
    return code


def test_librdkafka_creates_grows_and_deletes_topics(librdkafka: AdminClient) -> None:
    done(librdkafka.create_topics([NewTopic("rd-life", 2, 1, config={"retention.ms": "1000"})]))
    assert len(librdkafka.list_topics(timeout=TIMEOUT_S).topics["rd-life"].partitions) == 2
    done(librdkafka.create_partitions([NewPartitions("rd-life", 5)]))
    assert len(librdkafka.list_topics("rd-life", timeout=TIMEOUT_S).topics["rd-life"].partitions) == 5
    assert refused(librdkafka.create_topics([NewTopic("rd-life", 1, 1)])) == ErrorCode.TOPIC_ALREADY_EXISTS
    done(librdkafka.delete_topics(["rd-life"]))
    assert "rd-life" not in librdkafka.list_topics(timeout=TIMEOUT_S).topics


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("rd bad", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("rd-many", 1, 3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("rd-config", 1, 1, config={"no.such": "1"}), ErrorCode.INVALID_CONFIG),
    ],
)
def test_librdkafka_is_told_why_a_topic_cannot_be(librdkafka: AdminClient, topic: NewTopic, error: ErrorCode) -> None:
    assert refused(librdkafka.create_topics([topic])) == error


def test_librdkafka_describes_and_alters_settings(librdkafka: AdminClient) -> None:
    done(librdkafka.create_topics([NewTopic("rd-settings", 1, 1)]))
    op = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)
    resource = ConfigResource(ResourceType.TOPIC, "rd-settings", incremental_configs=[op])
    done(librdkafka.incremental_alter_configs([resource]))
    (configs,) = done(librdkafka.describe_configs([ConfigResource(ResourceType.TOPIC, "rd-settings")]))
    assert configs["cleanup.policy"].value == "delete,compact"
    assert not configs["cleanup.policy"].is_default
    assert list(configs["cleanup.policy"].synonyms) == ["cleanup.policy", "log.cleanup.policy"]
    (broker_configs,) = done(librdkafka.describe_configs([ConfigResource(ResourceType.BROKER, "1")]))
    assert broker_configs["num.partitions"].is_read_only
    assert broker_configs["ssl.key.password"].is_sensitive


def test_librdkafka_describes_the_cluster_and_topics(librdkafka: AdminClient) -> None:
    from confluent_kafka import TopicCollection

    done(librdkafka.create_topics([NewTopic("rd-described", 3, 1)]))
    cluster = librdkafka.describe_cluster(include_authorized_operations=True).result(TIMEOUT_S)
    assert [node.id for node in cluster.nodes] == [1]
    (topic,) = done(librdkafka.describe_topics(TopicCollection(["rd-described"]), include_authorized_operations=True))
    assert [len(partition.isr) for partition in topic.partitions] == [1, 1, 1]
    assert not topic.is_internal


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kafka_python_creates_describes_and_deletes(kafka_python: Any) -> None:
    from kafka.admin import NewTopic as KafkaPythonTopic

    kafka_python.create_topics([KafkaPythonTopic("kp-life", 2, 1)])
    assert "kp-life" in kafka_python.list_topics()
    (topic,) = kafka_python.describe_topics(["kp-life"])
    assert len(topic["partitions"]) == 2
    kafka_python.create_partitions({"kp-life": 4})
    (topic,) = kafka_python.describe_topics(["kp-life"])
    assert len(topic["partitions"]) == 4
    assert kafka_python.describe_cluster()["brokers"][0]["broker_id"] == 1
    kafka_python.delete_topics(["kp-life"])
    assert "kp-life" not in kafka_python.list_topics()
