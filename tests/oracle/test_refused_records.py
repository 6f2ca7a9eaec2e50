"""What a transactional producer goes through after a refused batch: the same with Apache Kafka and with moldau.

Both refuse records without a key on a compacted topic with INVALID_RECORD, which is how schema ids are refused too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.oracle.apache_kafka import ApacheKafka, needs_apache_kafka

from moldau.testing import Broker

pytestmark = pytest.mark.java

ONE_NODE = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    needs_apache_kafka()
    with ApacheKafka(None, ONE_NODE) as kafka:
        yield kafka.bootstrap


@pytest.fixture(scope="module")
def moldau() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def story(bootstrap: str) -> list[str]:
    """Three transactions, the first with a bad record; what is told of each."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic("compacted", 1, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([topic])["compacted"].result(30)
    told: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "storyteller", "linger.ms": 0})
    producer.init_transactions(30)

    def sent(key: str | None) -> None:
        def on_delivery(error: KafkaError | None, _: object) -> None:
            told.append("taken" if error is None else error.name())

        producer.produce("compacted", "value", key, on_delivery=on_delivery)
        assert producer.flush(30) == 0

    for keys in (["a", None], ["b"], ["c"]):
        producer.begin_transaction()
        for key in keys:
            sent(key)
        try:
            producer.commit_transaction(30)
            told.append("committed")
        except KafkaException:
            producer.abort_transaction(30)
            told.append("aborted")
    return told


def test_transactions_after_a_refusal_go_as_with_kafka(kafka: str, moldau: str) -> None:
    assert story(moldau) == story(kafka)
