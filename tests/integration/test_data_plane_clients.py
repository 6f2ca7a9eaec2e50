"""Records pass through the broker with the clients people use."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from moldau.testing.broker import Broker

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"num.partitions": "1"}) as running:
        yield running


def consumed(broker: Broker, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "none", "enable.auto.commit": False}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        messages = consumer.consume(count, timeout=20)
        return [(message.key(), message.value()) for message in messages]
    finally:
        # Closing would wait for a coordinator to leave its group.
        consumer.unassign()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("idempotent", [False, True])
def test_librdkafka_reads_what_it_wrote(broker: Broker, codec: str, idempotent: bool) -> None:
    topic = f"rdkafka-{codec}-{idempotent}"
    offsets: list[int] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            "linger.ms": 5,
        }
    )
    for number in range(3000):
        producer.produce(
            topic,
            f"value {number}",
            f"key {number}",
            on_delivery=lambda error, message: offsets.append(message.offset()),
        )
    assert producer.flush(20) == 0
    assert offsets == list(range(3000))
    assert consumed(broker, topic, 3000) == [(b"key %d" % n, b"value %d" % n) for n in range(3000)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("codec", [None, "lz4"])
def test_kafka_python_reads_what_it_wrote(broker: Broker, codec: str | None) -> None:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as KafkaPythonPartition

    topic = f"kafka-python-{codec}"
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, compression_type=codec, linger_ms=5)
    futures = [producer.send(topic, b"value %d" % number, headers=[("n", b"%d" % number)]) for number in range(500)]
    producer.flush(20)
    assert [future.get(timeout=20).offset for future in futures] == list(range(500))
    producer.close()

    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, consumer_timeout_ms=5000)
    consumer.assign([KafkaPythonPartition(topic, 0)])
    consumer.seek_to_beginning()
    read = []
    for record in consumer:
        read.append((record.value, record.headers))
        if len(read) == 500:
            break
    consumer.close()
    assert read == [(b"value %d" % number, [("n", b"%d" % number)]) for number in range(500)]


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_reads_what_it_wrote(broker: Broker) -> None:
    kcat = ["kcat", "-b", broker.bootstrap_servers, "-t", "kcat"]
    lines = "".join(f"line {number}\n" for number in range(100))
    subprocess.run([*kcat, "-P"], input=lines, text=True, timeout=30, check=True)
    read = subprocess.run([*kcat, "-C", "-e", "-q"], capture_output=True, text=True, timeout=30, check=True)
    assert read.stdout == lines
