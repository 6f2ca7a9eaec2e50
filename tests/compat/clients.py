"""Four clients with one face: the same records in, the same records out.

librdkafka of two ages (confluent-kafka's and, in kcat, Debian's), kafka-python and Apache Kafka's Java console tools.
Start at `PRODUCERS` and `CONSUMERS`.
"""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from tests.oracle.apache_kafka import run_tool

with warnings.catch_warnings():
    # It reads its definitions in a way that Python 3.11 warns about, and warnings end our tests.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as PythonTopicPartition

__all__ = ["CODECS", "CONSUMERS", "PRODUCERS", "Line"]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WAIT_S = 30


class Line(NamedTuple):
    """A record as every client can say it: text without tabs."""

    key: str
    value: str


Produce = Callable[[str, str, str, Sequence[Line]], None]
"""(bootstrap, topic, codec, lines): send the lines in order and return once they are acknowledged."""

Consume = Callable[[str, str, int], list[Line]]
"""(bootstrap, topic, count): the first records of partition 0."""


def produce_with_librdkafka(bootstrap: str, topic: str, codec: str, lines: Sequence[Line]) -> None:
    failures: list[object] = []
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50}
    producer = Producer(settings)
    for line in lines:
        producer.produce(
            topic,
            key=line.key,
            value=line.value,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(WAIT_S) == 0
    assert not failures


def produce_with_kafka_python(bootstrap: str, topic: str, codec: str, lines: Sequence[Line]) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, linger_ms=50
    )
    try:
        sent = [producer.send(topic, key=line.key.encode(), value=line.value.encode()) for line in lines]
        for future in sent:
            future.get(timeout=WAIT_S)
    finally:
        producer.close()


def produce_with_kcat(bootstrap: str, topic: str, codec: str, lines: Sequence[Line]) -> None:
    command = ["kcat", "-P", "-b", bootstrap, "-t", topic, "-z", codec, "-K", "\t"]
    subprocess.run(command, input=tabbed(lines), text=True, check=True, timeout=WAIT_S, capture_output=True)


def produce_with_java(bootstrap: str, topic: str, codec: str, lines: Sequence[Line]) -> None:
    target = ["--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec]
    done = run_tool(
        "org.apache.kafka.tools.ConsoleProducer", [*target, "--reader-property", "parse.key=true"], stdin=tabbed(lines)
    )
    assert done.returncode == 0, done.stderr
    assert "ERROR" not in done.stderr


def consume_with_librdkafka(bootstrap: str, topic: str, count: int) -> list[Line]:
    # librdkafka wants a group's name even from a consumer that never joins one.
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        messages = consumer.consume(count, timeout=WAIT_S)
        return [Line((m.key() or b"").decode(), (m.value() or b"").decode()) for m in messages if not m.error()]
    finally:
        consumer.close()


def consume_with_kafka_python(bootstrap: str, topic: str, count: int) -> list[Line]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_S * 1000
    )
    try:
        consumer.assign([PythonTopicPartition(topic, 0)])
        return [Line(m.key.decode(), m.value.decode()) for m in islice(consumer, count)]
    finally:
        consumer.close()


def consume_with_kcat(bootstrap: str, topic: str, count: int) -> list[Line]:
    source = ["-b", bootstrap, "-t", topic, "-p", "0", "-o", "beginning"]
    command = ["kcat", "-C", *source, "-c", str(count), "-q", "-f", r"%k\t%s\n"]
    done = subprocess.run(command, text=True, check=True, timeout=WAIT_S, capture_output=True)
    return untabbed(done.stdout)


def consume_with_java(bootstrap: str, topic: str, count: int) -> list[Line]:
    source = ["--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest"]
    limits = ["--max-messages", str(count), "--timeout-ms", str(WAIT_S * 1000)]
    done = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        [*source, *limits, "--formatter-property", "print.key=true"],
    )
    assert done.returncode == 0, done.stderr
    return untabbed(done.stdout)


def tabbed(lines: Sequence[Line]) -> str:
    return "".join(f"{line.key}\t{line.value}\n" for line in lines)


def untabbed(text: str) -> list[Line]:
    return [Line(*line.split("\t")) for line in text.splitlines()]


PRODUCERS: Mapping[str, Produce] = {
    "librdkafka": produce_with_librdkafka,
    "kafka-python": produce_with_kafka_python,
    "kcat": produce_with_kcat,
    "java": produce_with_java,
}
CONSUMERS: Mapping[str, Consume] = {
    "librdkafka": consume_with_librdkafka,
    "kafka-python": consume_with_kafka_python,
    "kcat": consume_with_kcat,
    "java": consume_with_java,
}
