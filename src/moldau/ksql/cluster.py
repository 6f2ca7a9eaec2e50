"""The Kafka cluster as the server uses it: topics, offsets, and records it writes itself. Methods block.

Start at `KafkaCluster`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moldau.client.admin import Admin, TopicDescription
from moldau.client.connection import build, log_report, normalize_servers
from moldau.client.errors import ClientError, UnreachableError, client_error
from moldau.client.partitioners import hashed_partition
from moldau.client.wire_producer import WireProducer
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.pipeline.ksql.errors import KsqlError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, Producer

__all__ = ["KafkaCluster", "arrived", "assign"]

LATEST = -1
NOW = 0
"""librdkafka's code for the current time."""
QUESTION_MS = 10_000
DELIVERY_S = 30.0
POLL_S = 0.05

_logger = logging.getLogger("moldau.ksql")


class KafkaCluster:
    """Clients are made on first use and closed with `close`."""

    def __init__(self, servers: str, properties: Mapping[str, str]) -> None:
        self.servers = normalize_servers(servers)
        self._properties = properties
        self._admin: Admin | None = None
        self._producer: Producer | None = None
        self._wire: WireProducer | None = None

    @property
    def admin(self) -> Admin:
        """The admin client."""
        if self._admin is None:
            self._admin = self.open_admin()
        return self._admin

    def open_admin(self) -> Admin:
        """An admin client of the caller's own."""
        return Admin(self.servers, {**self._properties, "client.id": "ksql-admin"}, timeout_ms=QUESTION_MS)

    # What the catalogue asks (`pipeline.ksql.catalogue.services.Topics`)

    def partitions(self, topic: str) -> int | None:
        """The number of partitions of a topic; None if there is no such topic."""
        return self.admin.partition_counts().get(topic)

    def create(self, topic: str, partitions: int, replicas: int, settings: Mapping[str, str]) -> None:
        """Create a topic; one that exists by now is fine."""
        try:
            self.admin.create_topic(topic, partitions=partitions, replication_factor=replicas, configs=settings)
        except ClientError as error:
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise KsqlError(f"Could not create topic {topic}: {error}") from None

    def delete(self, topic: str) -> None:
        """Delete a topic; one that is gone by now is fine."""
        try:
            self.admin.delete_topics([topic])
        except ClientError as error:
            if error.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise KsqlError(f"Could not delete topic {topic}: {error}") from None

    # Topics and offsets

    def topics(self) -> list[TopicDescription]:
        """All topics, by name."""
        return self.admin.describe_topics(sorted(self.admin.topic_names()))

    def end_offsets(self, topics: Sequence[str]) -> dict[str, dict[str, int]]:
        """The offsets after the last records, by topic and partition, as JSON carries them."""
        counts = self.admin.partition_counts()
        wanted = [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]
        found = self.admin.list_offsets(dict.fromkeys(wanted, LATEST))
        ends: dict[str, dict[str, int]] = {topic: {} for topic in topics}
        for place, offset in found.items():
            ends[place.topic][str(place.partition)] = offset
        return ends

    # Records

    def produce(self, topic: str, key: bytes | None, value: bytes | None, timestamp_ms: int | None) -> None:
        """Write one record and wait until it is stored; raises `ClientError`."""
        if timestamp_ms == NOW:
            self._write_at_zero(topic, key, value)
            return
        from confluent_kafka import KafkaException

        producer = self._open_producer()
        outcome: list[Any] = []
        try:
            producer.produce(
                topic,
                key=key,
                value=value,
                timestamp=NOW if timestamp_ms is None else timestamp_ms,
                on_delivery=lambda error, _message: outcome.append(error),
            )
        except KafkaException as error:  # a record that is too large is refused at once
            raise client_error(error.args[0], about=f"topic {topic}") from None
        producer.flush(DELIVERY_S)
        if not outcome:
            raise UnreachableError(f"no broker took the record for topic {topic} within {DELIVERY_S:g} s")
        if outcome[0] is not None:
            raise client_error(outcome[0], about=f"topic {topic}")

    def _write_at_zero(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """librdkafka would write the current time."""
        if self._wire is None:
            self._wire = WireProducer(self.admin)
        count = self.partitions(topic)
        if not count:
            raise ClientError(f"Topic {topic} does not exist", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        number = secrets.randbelow(count) if key is None else hashed_partition(key, count)
        self._wire.write(TopicPartition(topic, number), key, value, 0)

    def new_consumer(self, client_id: str, extra: Mapping[str, str] | None = None) -> Consumer:
        """A consumer that is given its partitions and commits nothing."""
        from confluent_kafka import Consumer as RdkafkaConsumer

        properties = {
            **self._properties,
            "bootstrap.servers": self.servers,
            "client.id": client_id,
            "group.id": client_id,  # librdkafka requires one; nothing is ever committed
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "allow.auto.create.topics": "false",
            "fetch.wait.max.ms": "10",
            **(extra or {}),
        }
        consumer, _ = build(RdkafkaConsumer, "consumer", properties, report=log_report, title=client_id)
        return consumer

    def _open_producer(self) -> Producer:
        from confluent_kafka import Producer as RdkafkaProducer

        if self._producer is not None:
            return self._producer
        properties = {
            **self._properties,
            "bootstrap.servers": self.servers,
            "client.id": "ksql-producer",
            "acks": "all",
            "enable.idempotence": "true",
            "linger.ms": "0",
            "partitioner": "murmur2_random",
        }
        producer: Producer
        producer, _ = build(RdkafkaProducer, "producer", properties, report=log_report, title="ksql producer")
        self._producer = producer
        return producer

    def close(self) -> None:
        """Close the clients."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.flush(1.0)
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
        self._admin = None


def assign(consumer: Consumer, places: Mapping[TopicPartition, int]) -> None:
    """Have a consumer read these partitions from these offsets, from now on and without delay."""
    from confluent_kafka import KafkaException
    from confluent_kafka import TopicPartition as RdkafkaPartition

    # A consumer that does not know a topic's leaders yet looks for them only after half a second.
    for topic in dict.fromkeys(place.topic for place in places):
        try:
            consumer.list_topics(topic, timeout=QUESTION_MS / 1000)
        except KafkaException as error:
            _logger.debug("the leaders of %s are not known yet: %s", topic, error)
    consumer.assign([RdkafkaPartition(place.topic, place.partition, offset) for place, offset in places.items()])


def arrived(consumer: Consumer, most: int, timeout_s: float) -> list[Message]:
    """What has arrived, as soon as there is something: `consume` alone would wait for more."""
    first = consumer.poll(timeout_s)
    return [] if first is None else [first, *consumer.consume(most, 0)]
