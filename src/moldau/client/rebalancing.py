"""Partitions come and go: what an application is told, and how it moves the places where reading starts.

librdkafka wants the start offsets with the assignment itself and refuses to seek before; here a listener simply
seeks, as in Java. Start at `RebalanceListener`.
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
    """Told when partitions come and go; override what is of interest.

    All three are called from inside `Consumer.poll`, on its thread. An exception is raised by that `poll`.
    """

    def partitions_assigned(self, consumer: Consumer[Any, Any], partitions: set[TopicPartition]) -> None:
        """These partitions are this consumer's from now on. `consumer.seek` sets where reading starts."""

    def partitions_revoked(self, consumer: Consumer[Any, Any], partitions: set[TopicPartition]) -> None:
        """These partitions are about to go to others: the last chance to finish and to `consumer.commit`.

        With automatic commits, what is done is committed right after this.
        """

    def partitions_lost(self, consumer: Consumer[Any, Any], partitions: set[TopicPartition]) -> None:
        """These partitions are with others already, because this consumer did not answer in time.

        Commits for them are refused. Unless overridden, this does nothing: `partitions_revoked` is not called.
        """


class Rebalancing:
    """Between librdkafka's callbacks and a listener. One per consumer."""

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
        """What librdkafka's `subscribe` takes."""
        told = listener or RebalanceListener()
        return {
            "on_assign": lambda _, partitions: self._assigned(told, partitions),
            "on_revoke": lambda _, partitions: self._gone(told.partitions_revoked, partitions),
            "on_lost": lambda _, partitions: self._gone(told.partitions_lost, partitions),
        }

    def starts_at(self, partition: TopicPartition, offset: int) -> bool:
        """Whether the partition is being assigned right now; if so, it will start there."""
        if self._starts is None or partition not in self._starts:
            return False
        self._starts[partition] = offset
        return True

    def raise_failure(self) -> None:
        """Raise what a listener raised; librdkafka's callbacks are no place for that."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _assigned(self, listener: RebalanceListener, partitions: list[RdkafkaPartition]) -> None:
        self._starts = {TopicPartition(at.topic, at.partition): at.offset for at in partitions}
        try:
            self._guarded(listener.partitions_assigned, partitions)
            for at in partitions:
                at.offset = self._starts[TopicPartition(at.topic, at.partition)]
        finally:
            self._starts = None
        if self._is_incremental:
            self._rdkafka.incremental_assign(partitions)
        else:
            self._rdkafka.assign(partitions)

    def _gone(
        self,
        told: Callable[[Consumer[Any, Any], set[TopicPartition]], None],
        partitions: Iterable[RdkafkaPartition],
    ) -> None:
        self._guarded(told, partitions)
        self._forget(_as_set(partitions))

    def _guarded(
        self,
        told: Callable[[Consumer[Any, Any], set[TopicPartition]], None],
        partitions: Iterable[RdkafkaPartition],
    ) -> None:
        self.run(lambda: self._tell(told, _as_set(partitions)))

    def _tell(
        self, told: Callable[[Consumer[Any, Any], set[TopicPartition]], None], partitions: set[TopicPartition]
    ) -> None:
        self.is_under_way = True
        try:
            told(self._consumer, partitions)
        except Exception as error:
            self._failure = error
        finally:
            self.is_under_way = False


def _directly(errand: Callable[[], object]) -> None:
    errand()


def is_incremental(properties: Mapping[str, str]) -> bool:
    """Whether the group moves single partitions (cooperative, or the new protocol) instead of dealing all anew."""
    if properties.get("group.protocol", "classic").strip().lower() == "consumer":
        return True
    names = [name.strip() for name in properties.get("partition.assignment.strategy", "").split(",") if name.strip()]
    return bool(names) and all("cooperative" in name.lower() for name in names)


def _as_set(partitions: Iterable[RdkafkaPartition]) -> set[TopicPartition]:
    return {TopicPartition(at.topic, at.partition) for at in partitions}
