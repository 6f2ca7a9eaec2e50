"""The programs of `examples/streams` on real Spark, from topic to topic over the embedded broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.streams_examples import BASE_MS, EXAMPLES, Example

from moldau.pipeline.runtime.engine import Engine
from moldau.streams import KafkaStreams
from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 120.0


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.program)
def test_an_example_program_gives_its_results_on_spark(
    example: Example, broker: Broker, registry: SchemaRegistry, spark: SparkSession, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    example = example.with_registry(registry.url)
    make_empty(bootstrap, example)
    produce(bootstrap, example)
    config = {
        "application.id": example.program,
        "bootstrap.servers": bootstrap,
        "schema.registry.url": registry.url,
        "processing.guarantee": "exactly_once_v2",
        "statestore.cache.max.bytes": "0",
        "state.dir": str(tmp_path),
    }

    with KafkaStreams(example.topology(), config, engine=Engine(spark=spark)) as streams:
        streams.start()
        found = {topic: read(bootstrap, topic, example) for topic in example.outputs}

    assert found == example.outputs


def make_empty(bootstrap: str, example: Example) -> None:
    """All topics of a program, new and with one partition, so that results have one order."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    there = set(admin.list_topics(timeout=10).topics) & set(example.serdes)
    if there:
        for deleted in admin.delete_topics(list(there)).values():
            deleted.result(10)
    # The records are old, and retention goes by their timestamps.
    topics = [NewTopic(topic, 1, 1, config={"retention.ms": "-1"}) for topic in example.serdes]
    for created in admin.create_topics(topics).values():
        created.result(10)


def produce(bootstrap: str, example: Example) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for topic, key, value, timestamp in example.piped:
        key_serde, value_serde = example.serdes[topic]
        producer.produce(
            topic,
            key=None if key is None else key_serde.serialize(topic, key),
            value=None if value is None else value_serde.serialize(topic, value),
            timestamp=BASE_MS + timestamp,
        )
    assert producer.flush(10) == 0


def read(bootstrap: str, topic: str, example: Example) -> list[tuple[Any, Any]]:
    """As many results as are expected, and whatever committed records are there beyond."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    key_serde, value_serde = example.serdes[topic]
    found: list[tuple[Any, Any]] = []
    while len(found) < len(example.outputs[topic]):
        record = consumer.poll(PATIENCE_S)
        assert record is not None, f"after {PATIENCE_S:.0f} s only {found}"
        found.append((decoded(record.key(), key_serde, topic), decoded(record.value(), value_serde, topic)))
    consumer.close()
    return found


def decoded(data: bytes | None, serde: Any, topic: str) -> Any:
    return None if data is None else serde.deserialize(topic, data)
