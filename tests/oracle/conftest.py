"""A data directory that Apache Kafka wrote: every codec, both kinds of time, transactions, a cleaned log."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.oracle.apache_kafka import ApacheKafka, needs_apache_kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
START_MS = 1_700_000_000_000
SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "100",
    "log.retention.ms": "-1",
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
}
TOPICS = {
    "plain": {"index.interval.bytes": "100"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "transactions": {},
    "compacted": {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "1.0"},
}
Sent = tuple[bytes | None, bytes | None]


@dataclass
class KafkaWritten:
    """Where it lies, and what was sent in which order, by topic."""

    log_dir: Path
    sent: dict[str, list[Sent]] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    """Offsets of the topic `transactions` that no committed reader sees."""


@pytest.fixture(scope="session")
def kafka_written(tmp_path_factory: pytest.TempPathFactory) -> KafkaWritten:
    """Written once, stopped in order; tests must not change it."""
    needs_apache_kafka()
    directory = tmp_path_factory.mktemp("apache-kafka")
    with ApacheKafka(directory, SETTINGS) as kafka:
        written = KafkaWritten(kafka.log_dir)
        _create_topics(kafka.bootstrap)
        _send_plain(kafka.bootstrap, written)
        _send_transactions(kafka.bootstrap, written)
        _send_compacted(kafka.bootstrap, written)
        _let_clean(kafka.bootstrap)
        _wait_until_cleaned(kafka.log_dir / "cleaner-offset-checkpoint", "compacted 0 44")
    return written


def _create_topics(bootstrap: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()]
    for created in admin.create_topics(wanted).values():
        created.result(30)


def _send_plain(bootstrap: str, written: KafkaWritten) -> None:
    from confluent_kafka import Producer

    plain = written.sent["plain"] = []
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})
        for number in range(60):
            key = b"k%d" % (number % 7) if number % 3 else None
            value = f"Wert {codec} {number} äß".encode() if number % 11 else None
            headers = [("h1", b"x"), ("h2", None)] if number % 5 == 0 else None
            producer.produce("plain", key=key, value=value, headers=headers, timestamp=START_MS + len(plain))
            plain.append((key, value))
        producer.produce("append-time", b"v")
        producer.flush()


def _send_transactions(bootstrap: str, written: KafkaWritten) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "oracle"})
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        for part in range(3):
            producer.produce("transactions", key=b"%d" % part, value=b"%d" % number, timestamp=START_MS)
        producer.flush()
        if number % 2:
            producer.abort_transaction()
            written.aborted.update(range(number * 4, number * 4 + 3))
        else:
            producer.commit_transaction()


def _send_compacted(bootstrap: str, written: KafkaWritten) -> None:
    """One segment for every four records: each batch is more than `segment.ms` later than the one before."""
    from confluent_kafka import Producer

    producer, sent = Producer({"bootstrap.servers": bootstrap}), written.sent.setdefault("compacted", [])
    for number in range(12):
        for part in range(4):
            key = b"%d" % part if part else b"only-%d" % number
            value = None if part == 3 and number == 9 else b"%d" % number
            producer.produce("compacted", key=key, value=value, timestamp=START_MS + number * 1_000)
            sent.append((key, value))
        producer.flush()


def _let_clean(bootstrap: str) -> None:
    """Only now that all is written may the cleaner begin, so that one round does it all."""
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    entry = ConfigEntry("min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "compacted", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for changed in admin.incremental_alter_configs([resource]).values():
        changed.result(30)


def _wait_until_cleaned(checkpoint: Path, line: str, *, timeout_s: float = 60) -> None:
    pause, deadline = threading.Event(), time.monotonic() + timeout_s
    while not (checkpoint.exists() and line in checkpoint.read_text()):
        assert time.monotonic() < deadline, "Apache Kafka did not clean its log"
        pause.wait(0.05)
