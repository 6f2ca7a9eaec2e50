"""One data directory, two brokers: Apache Kafka goes on where moldau stopped, and moldau where Apache Kafka did."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.server_process import wait_until
from tests.oracle.apache_kafka import ApacheKafka, needs_apache_kafka
from tests.oracle.conftest import CODECS, KafkaWritten, Sent

from moldau.testing import Broker

pytestmark = pytest.mark.java


def read_all(bootstrap: str, topic: str) -> list[Sent]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Sent] = []
        while True:
            message = consumer.poll(30)
            assert message is not None, f"{len(found)} records of {topic}, then nothing"
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return found
            assert error is None, error
            found.append((message.key(), message.value()))
    finally:
        consumer.close()


def send(bootstrap: str, topic: str, records: list[Sent], codec: str = "none") -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True})
    for key, value in records:
        producer.produce(topic, key=key, value=value)
    assert producer.flush(30) == 0


def test_apache_kafka_takes_over_from_moldau(tmp_path: Path) -> None:
    needs_apache_kafka()
    sent: list[Sent] = []
    with Broker(data=tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for created in admin.create_topics([NewTopic("orders", 1, 1, config={"retention.ms": "-1"})]).values():
            created.result(30)
        for codec in CODECS:
            records: list[Sent] = [(b"k%d" % number, f"{codec} {number}".encode()) for number in range(30)]
            send(broker.bootstrap_servers, "orders", records, codec)
            sent += records
        del admin
    # moldau does not fence itself when it stops, so Kafka waits for its session to end first.
    with ApacheKafka(tmp_path, {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}) as kafka:
        assert read_all(kafka.bootstrap, "orders") == sent
        send(kafka.bootstrap, "orders", [(b"k", b"one more")])
        assert read_all(kafka.bootstrap, "orders") == [*sent, (b"k", b"one more")]
        assert "stray" not in kafka.output.read_text()
    with Broker(data=tmp_path / "data") as broker:
        assert read_all(broker.bootstrap_servers, "orders") == [*sent, (b"k", b"one more")]


def test_moldau_takes_over_from_apache_kafka(kafka_written: KafkaWritten, tmp_path: Path) -> None:
    data = Path(shutil.copytree(kafka_written.log_dir, tmp_path / "data"))
    with Broker({"log.retention.ms": "-1"}, data=data) as broker:
        assert read_all(broker.bootstrap_servers, "plain") == kafka_written.sent["plain"]
        committed = [(b"%d" % part, b"%d" % number) for number in (0, 2, 4) for part in range(3)]
        assert read_all(broker.bootstrap_servers, "transactions") == committed
        send(broker.bootstrap_servers, "plain", [(b"k", b"one more")])
        assert read_all(broker.bootstrap_servers, "plain") == [*kafka_written.sent["plain"], (b"k", b"one more")]


def test_nobody_misses_segments_that_apache_kafka_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Kafka rolls, deletes and compacts without knowing the manifest; a manifest out of date must not accuse it."""
    needs_apache_kafka()
    data = tmp_path / "data"
    large = [(b"k%d" % (number % 3), b"%d " % number + b"." * 300_000) for number in range(12)]
    with Broker({"log.cleaner.enable": "false"}, data=data) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        policies = {"orders": "delete", "users": "compact"}
        topics = [
            NewTopic(
                name,
                1,
                1,
                config={
                    "segment.bytes": "1048576",
                    "retention.ms": "-1",
                    "cleanup.policy": policy,
                    "min.cleanable.dirty.ratio": "0.01",
                    "file.delete.delay.ms": "0",
                },
            )
            for name, policy in policies.items()
        ]
        for created in admin.create_topics(topics).values():
            created.result(30)
        for name in policies:
            send(broker.bootstrap_servers, name, large)
        del admin
    segments = {path for name in policies for path in (data / f"{name}-0").glob("*.log")}
    quick = {
        "broker.session.timeout.ms": "1000",
        "broker.heartbeat.interval.ms": "200",
        "log.retention.check.interval.ms": "200",
        "log.initial.task.delay.ms": "100",
        "log.cleaner.backoff.ms": "100",
    }
    with ApacheKafka(tmp_path, quick) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for done in admin.delete_records([TopicPartition("orders", 0, 10)]).values():
            done.result(30)
        del admin
        wait_until(lambda: not (data / "orders-0" / f"{0:020d}.log").exists())
        wait_until(lambda: "users" in cleaner_checkpoint(data))
    assert {path for path in segments if path.exists()} < segments
    for _ in range(2):
        with Broker({"log.cleaner.enable": "false"}, data=data) as broker:
            assert read_all(broker.bootstrap_servers, "users")[-1] == large[-1]
            send(broker.bootstrap_servers, "orders", [(b"k", b"one more")])
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []


def cleaner_checkpoint(data: Path) -> str:
    path = data / "cleaner-offset-checkpoint"
    return path.read_text() if path.exists() else ""
