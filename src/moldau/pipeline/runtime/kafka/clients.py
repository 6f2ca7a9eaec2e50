"""The Kafka clients of a pipeline, all created here from properties with Java's names.

Of their log lines only those that `client.connection_log` selects are logged. Start at `KafkaClients`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moldau.client.admin import Admin
from moldau.client.connection import build, log_report
from moldau.client.connection_log import ConnectionLog

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer

__all__ = ["CLOSE_S", "KafkaClients", "report_client_log"]

ADMIN_TIMEOUT_MS = 8_000
CLOSE_S = 5.0

_TOLD_BY_THE_PIPELINE = "Static consumer fenced by other consumer"
"""Another instance has taken the pipeline's place in its group; not logged, because the pipeline reports it itself."""

_PRODUCER_DEFAULTS: Mapping[str, str] = {
    "linger.ms": "5",
    "batch.size": "1000000",
    "buffer.memory": "268435456",
    "acks": "all",
    "enable.idempotence": "true",
}

_NOT_FOR_MEMBERS = frozenset(
    {"max.poll.records", "auto.offset.reset", "group.protocol", "partition.assignment.strategy"}
)
"""Consumer properties for reading, which are dropped: these consumers do not read."""

_NOT_FOR_THE_CONNECTOR = frozenset(
    """auto.offset.reset client.id enable.auto.commit group.id interceptor.classes key.deserializer max.poll.records
    group.protocol value.deserializer key.serializer value.serializer heartbeat.interval.ms session.timeout.ms
    max.poll.interval.ms""".split()  # noqa: SIM905, a list of 13 lines says no more
)
"""Settings that Spark's connector sets itself, or rejects."""

OnFailure = Callable[["KafkaError | None", "Message"], None]


def report_client_log(level: str, text: str) -> None:
    """Log a client's line, unless the pipeline reports the same."""
    if _TOLD_BY_THE_PIPELINE not in text:
        log_report(level, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaClients:
    """A cluster, and the properties of each kind of client, by Java's names and without `bootstrap.servers`."""

    bootstrap_servers: str
    admin: Mapping[str, str] = field(default_factory=dict)
    consumer: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, str] = field(default_factory=dict)

    def new_admin(self) -> Admin:
        return Admin(self.bootstrap_servers, self.admin, report=report_client_log, timeout_ms=ADMIN_TIMEOUT_MS)

    def new_consumer(self, group_id: str, extra: Mapping[str, str] | None = None) -> Consumer:
        """A consumer of a group that commits only on request."""
        from confluent_kafka import Consumer as RdkafkaConsumer

        properties = {
            **{key: value for key, value in self.consumer.items() if key not in _NOT_FOR_MEMBERS},
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": group_id,
            "enable.auto.commit": "false",
            "auto.offset.reset": "latest",
            "isolation.level": "read_committed",
            **(extra or {}),
        }
        title = f"Consumer groupId={group_id}"
        consumer, _ = build(RdkafkaConsumer, "consumer", properties, report=report_client_log, title=title)
        return consumer

    def new_producer(self, extra: Mapping[str, str], on_failure: OnFailure) -> Producer:
        """A producer; `on_failure` is called for records that cannot be delivered."""
        from confluent_kafka import Producer as RdkafkaProducer

        servers = {"bootstrap.servers": self.bootstrap_servers}
        properties = {"client.id": "producer", **_PRODUCER_DEFAULTS, **self.producer, **servers, **extra}
        title = f"Producer clientId={properties['client.id']}"
        # Successes are not reported: a callback for each record would cost more than sending it.
        callbacks = {"delivery.report.only.error": True, "on_delivery": on_failure}
        producer, _ = build(
            RdkafkaProducer, "producer", properties, report=report_client_log, title=title, extra=callbacks
        )
        return producer

    def connector_properties(self, kind: str) -> dict[str, str]:
        """The properties of a consumer or producer as options of Spark's connector, which uses Java clients."""
        given = {
            **(self.consumer if kind == "consumer" else self.producer),
            "bootstrap.servers": self.bootstrap_servers,
        }
        return {f"kafka.{key}": value for key, value in given.items() if key not in _NOT_FOR_THE_CONNECTOR}

    @property
    def outage(self) -> str | None:
        """A message if the cluster does not answer now; None if it does, or if no client has connected yet."""
        is_cut_off = ConnectionLog.to(report_client_log).is_cut_off
        return f"no broker answers at {self.bootstrap_servers}" if is_cut_off else None
