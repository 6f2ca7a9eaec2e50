"""A running pipeline as a consumer group: one member that owns all partitions and reads none.

Spark reads the records; the member makes the group visible: lag tools see a live group with offsets, the offsets of a
running pipeline cannot be reset, and brokers keep offsets of a group that has members. It is a static member, so a
restarted instance takes its place at once, and a second instance fences the first one. Start at `GroupPresence`; how
offsets outlive a stopped pipeline is in `client.groups`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.client.errors import client_error
from moldau.client.waiting import close_within
from moldau.core.ids import TopicPartition
from moldau.pipeline.runtime.identity import PipelineIdentity
from moldau.pipeline.runtime.kafka.clients import CLOSE_S, KafkaClients

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError

__all__ = ["GroupPresence", "committed_offsets"]

logger = logging.getLogger("moldau.streams")

POLL_S = 0.1
CALL_S = 10.0

_FATAL = frozenset({"_FATAL", "FENCED_INSTANCE_ID", "_FENCED"})


class GroupPresence:
    """The group member. `on_taken_over` is called once when another instance has taken its place."""

    def __init__(
        self,
        identity: PipelineIdentity,
        clients: KafkaClients,
        topics: Iterable[str],
        pattern: str | None,
        on_taken_over: Callable[[], None],
    ) -> None:
        self._group_id = identity.group_id
        self._subscription = [*topics, *([f"^(?:{pattern})$"] if pattern else [])]
        self._on_taken_over = on_taken_over
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{identity.name}-group", daemon=True)
        self._consumer = clients.new_consumer(identity.group_id, {"group.instance.id": identity.name})
        self._is_member = False
        self.member_id = ""
        """This member's id in the group, set when it is closed."""
        self._lock = threading.Lock()
        self._wanted: list[Any] = []
        """Offsets to commit next; those of a newer batch replace those of an older one."""

    def start(self) -> None:
        """Join the group in the background."""
        self._consumer.subscribe(self._subscription, on_assign=self._own_nothing)
        self._thread.start()

    def commit_soon(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit these offsets, or newer ones, in the background; failed commits are retried."""
        with self._lock:
            self._wanted = _positions(offsets)

    def close(self) -> None:
        """Commit pending offsets and close the consumer; the static member stays in the group until its session ends.

        May be called again.
        """
        if self._stop.is_set():
            return
        self._stop.set()
        if self._thread.ident is None:
            self._close_consumer()
        else:
            # If no broker answers, the thread waits for a commit, and closes the consumer when that call returns. The
            # offsets are also in the checkpoint.
            self._thread.join(CLOSE_S)

    def _close_consumer(self) -> None:
        self.member_id = self._consumer.memberid() or ""
        self._consumer.close()

    def _own_nothing(self, consumer: Consumer, partitions: list[Any]) -> None:
        # The member only has to own the partitions; with an empty assignment nothing is fetched.
        consumer.assign([])
        self._is_member = True

    def _run(self) -> None:
        """The thread's loop. It makes all calls: the binding's commit never returns while another thread polls."""
        try:
            while not self._stop.is_set():
                message = self._consumer.poll(POLL_S)
                error = None if message is None else message.error()
                if error is not None and _is_fenced(error):
                    self._on_taken_over()
                    return
                self._commit()
            self._commit()
        finally:
            self._close_consumer()

    def _commit(self) -> None:
        from confluent_kafka import KafkaException

        with self._lock:
            wanted = self._wanted
        if not wanted or not self._is_member:
            return
        try:
            self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            logger.debug("offsets of group %s are not committed yet: %s", self._group_id, error)
            return
        with self._lock:
            if self._wanted is wanted:
                self._wanted = []


def _is_fenced(error: KafkaError) -> bool:
    """Whether the member was fenced; all other errors are temporary."""
    return error.name() in _FATAL and "fenced" in error.str()


def committed_offsets(
    group_id: str, clients: KafkaClients, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The group's offsets; partitions without one are left out."""
    from confluent_kafka import KafkaException
    from confluent_kafka import TopicPartition as Position

    asked = [Position(one.topic, one.partition) for one in partitions]
    if not asked:
        return {}
    consumer = clients.new_consumer(group_id)
    try:
        found = consumer.committed(asked, CALL_S)
    except KafkaException as error:
        raise client_error(error.args[0], about=f"offsets of group {group_id}") from None
    finally:
        close_within(consumer, CLOSE_S)
    return {TopicPartition(at.topic, at.partition): at.offset for at in found if at.offset >= 0}


def _positions(offsets: Mapping[TopicPartition, int]) -> list[Any]:
    """Offsets as librdkafka takes them. Without metadata: the binding reads other clients' metadata beyond its end."""
    from confluent_kafka import TopicPartition as Position

    return [Position(at.topic, at.partition, offset) for at, offset in offsets.items()]
