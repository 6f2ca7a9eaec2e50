"""Rebalance callbacks: partitions assigned, revoked or lost, and seeking to where reading starts.

librdkafka takes the start offsets with the assignment itself and rejects a seek before it; here a listener can simply
seek, as in Java. Start at `RebalanceListener`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer as RdkafkaConsumer
    from confluent_kafka import TopicPartition as RdkafkaPartition

    from moldau.client.consumer import Consumer

__all__ = ["RebalanceListener", "Rebalancing"]


class RebalanceListener:
    """Called when partitions are assigned, revoked or lost; override the methods you need.

    All three are called from inside `Consumer.poll`, on its thread. An exception is raised by that `poll`.
    """

    def partitions_assigned(self, consumer: Consumer[Any, Any], partitions: set[TopicPartition]) -> None:
        """These partitions are now assigned to this consumer. `consumer.seek` sets where reading starts."""

    def partitions_revoked(self, consumer: Consumer[Any, Any], partitions: set[TopicPartition]) -> None:
        """These partitions are about to be revoked: the last chance to finish and to `consumer.commit`.

        With automatic commits, processed records are committed right after this.
        """

    def partitions_lost(self, consumer: Consumer[Any, Any], partitions: set[TopicPartition]) -> None:
        """These partitions were reassigned already, because this consumer's session or poll interval expired.

        Commits for them are rejected. Unless overridden, this does nothing: `partitions_revoked` is not called.
        """


class Rebalancing:
    """Adapts librdkafka's callbacks to a listener. One per consumer."""

    def __init__(
        self,
        consumer: Consumer[Any, Any],
        rdkafka: RdkafkaConsumer,
        properties: Mapping[str, str],
        forget: Callable[[set[TopicPartition]], None],
    ) -> None:
        self._consumer = consumer
        self._rdkafka = rdkafka
        self._is_incremental = is_incremental(properties)
        self._forget = forget
        self._starts: dict[TopicPartition, int] | None = None
        self._failure: Exception | None = None
        self.run: Callable[[Callable[[], object]], None] = _directly
        """Calls a listener: directly, or in the consumer's thread while another one closes the consumer."""
        self.is_under_way = False

    def callbacks(self, listener: RebalanceListener | None) -> dict[str, Callable[..., None]]:
        """The callback arguments of librdkafka's `subscribe`."""
        target = listener or RebalanceListener()
        return {
            "on_assign": lambda _, partitions: self._on_assigned(target, partitions),
            "on_revoke": lambda _, partitions: self._on_gone(target.partitions_revoked, partitions),
            "on_lost": lambda _, partitions: self._on_gone(target.partitions_lost, partitions),
        }

    def set_start_if_assigning(self, partition: TopicPartition, offset: int) -> bool:
        """Set where a partition starts if it is being assigned right now; returns whether it is."""
        if self._starts is None or partition not in self._starts:
            return False
        self._starts[partition] = offset
        return True

    def raise_failure(self) -> None:
        """Raise the exception of a listener, which must not be raised inside librdkafka's callbacks."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _on_assigned(self, listener: RebalanceListener, partitions: list[RdkafkaPartition]) -> None:
        self._starts = {TopicPartition(at.topic, at.partition): at.offset for at in partitions}
        try:
            self._run_callback(listener.partitions_assigned, partitions)
            for at in partitions:
                at.offset = self._starts[TopicPartition(at.topic, at.partition)]
        finally:
            self._starts = None
        if self._is_incremental:
            self._rdkafka.incremental_assign(partitions)
        else:
            self._rdkafka.assign(partitions)

    def _on_gone(
        self,
        callback: Callable[[Consumer[Any, Any], set[TopicPartition]], None],
        partitions: Iterable[RdkafkaPartition],
    ) -> None:
        self._run_callback(callback, partitions)
        self._forget(_as_set(partitions))

    def _run_callback(
        self,
        callback: Callable[[Consumer[Any, Any], set[TopicPartition]], None],
        partitions: Iterable[RdkafkaPartition],
    ) -> None:
        self.run(lambda: self._call(callback, _as_set(partitions)))

    def _call(
        self, callback: Callable[[Consumer[Any, Any], set[TopicPartition]], None], partitions: set[TopicPartition]
    ) -> None:
        self.is_under_way = True
        try:
            callback(self._consumer, partitions)
        except Exception as error:
            self._failure = error
        finally:
            self.is_under_way = False


def _directly(errand: Callable[[], object]) -> None:
    errand()


def is_incremental(properties: Mapping[str, str]) -> bool:
    """Whether rebalances are incremental (cooperative, or KIP-848) instead of reassigning all partitions."""
    if properties.get("group.protocol", "classic").strip().lower() == "consumer":
        return True
    names = [name.strip() for name in properties.get("partition.assignment.strategy", "").split(",") if name.strip()]
    return bool(names) and all("cooperative" in name.lower() for name in names)


def _as_set(partitions: Iterable[RdkafkaPartition]) -> set[TopicPartition]:
    return {TopicPartition(at.topic, at.partition) for at in partitions}
