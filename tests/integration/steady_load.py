"""A producer and a consumer that go on while a cluster changes under them; what they saw is compared at the end.

Start at `SteadyLoad`.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer

__all__ = ["SteadyLoad"]

PAUSE_S = 0.002
PATIENCE_S = 60.0


class SteadyLoad:
    """Numbers, by an idempotent producer with acks=all, read by a group of one."""

    def __init__(self, servers: str, topic: str) -> None:
        self._topic = topic
        self.sent = 0
        self.acknowledged: set[int] = set()
        self.refused: list[str] = []
        self.read: dict[tuple[int, int], int] = {}
        """By partition and offset."""
        self.consumer_errors: list[str] = []
        self.rereads: list[str] = []
        """Offsets that were read with another content."""
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "acks": "all",
                "enable.idempotence": True,
                "log_level": 0,
                "linger.ms": 5,
            },
            error_cb=lambda error: None,
        )
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"readers-of-{topic}",
                "auto.offset.reset": "earliest",
                "log_level": 0,
                "error_cb": lambda error: None,
            }
        )
        self._consumer.subscribe([topic])
        self._is_producing, self._is_reading = True, True
        self._threads = [threading.Thread(target=one) for one in (self._produce, self._consume)]

    def __enter__(self) -> Self:
        for one in self._threads:
            one.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(has_failed=kind is not None)

    def finish(self, *, has_failed: bool = False) -> None:
        """Stop producing, read what is left, and stop; while the cluster still runs."""
        self._is_producing = False
        self._threads[0].join()
        deadline = time.monotonic() + PATIENCE_S
        while not has_failed and len(self.read) < len(self.acknowledged) and time.monotonic() < deadline:
            time.sleep(0.05)
        self._is_reading = False
        self._threads[1].join()

    @property
    def lost(self) -> set[int]:
        return self.acknowledged - set(self.read.values())

    @property
    def doubled(self) -> int:
        return len(self.read) - len(set(self.read.values()))

    def _produce(self) -> None:
        while self._is_producing:
            self._producer.produce(self._topic, str(self.sent), key=str(self.sent), on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(PAUSE_S)
        self._producer.flush(PATIENCE_S)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.add(int(message.value() or b""))
        else:
            self.refused.append(str(error))

    def _consume(self) -> None:
        while self._is_reading:
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                self.consumer_errors.append(str(message.error()))
                continue
            place, number = (message.partition() or 0, message.offset() or 0), int(message.value() or b"")
            if self.read.setdefault(place, number) != number:
                self.rereads.append(f"{place}: {self.read[place]}, then {number}")
        self._consumer.close()
