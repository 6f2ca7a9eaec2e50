"""The results of the demo's pipeline so far, read from its output topic by a normal consumer."""

from __future__ import annotations

import struct
import threading
from collections import Counter

from moldau.cli.cluster_options import report_client_log
from moldau.cli.tool import CLOSE_S
from moldau.client.connection import build
from moldau.client.waiting import close_within

__all__ = ["Results"]

_WINDOW_START = struct.Struct(">q")


class Results:
    """A thread that reads committed counts per page and window."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-results", daemon=True)
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, int], int] = {}
        self.received = 0
        """Updates read: one for each page, window and batch that counted it."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def counted(self) -> int:
        """The total of visits in all windows."""
        with self._lock:
            return sum(self._counts.values())

    def windows(self) -> list[int]:
        """Starts of the windows seen, oldest first."""
        with self._lock:
            return sorted({start for _, start in self._counts})

    def top(self, window_start: int, limit: int) -> list[tuple[str, int]]:
        """The most visited pages of a window."""
        with self._lock:
            pages = Counter({page: count for (page, start), count in self._counts.items() if start == window_start})
        return pages.most_common(limit)

    def _run(self) -> None:
        from confluent_kafka import Consumer, TopicPartition

        properties = {
            "bootstrap.servers": self._bootstrap,
            "group.id": "demo-screen",
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            "fetch.max.wait.ms": "50",
        }
        consumer, _ = build(
            Consumer, "consumer", properties, report=report_client_log, title="Consumer clientId=demo-screen"
        )
        consumer.assign([TopicPartition(self._topic, partition, 0) for partition in range(self._partitions)])
        while not self._stopping.is_set():
            for record in consumer.consume(1_000, timeout=0.1):
                if record.error() is None:
                    self._take(record.key() or b"", record.value() or b"")
        close_within(consumer, CLOSE_S)

    def _take(self, key: bytes, value: bytes) -> None:
        """Store a count. The windowed key is the page, then the window's start in the last eight bytes."""
        page, (start,) = key[:-8].decode(), _WINDOW_START.unpack(key[-8:])
        with self._lock:
            self._counts[page, start] = int.from_bytes(value, "big")
        self.received += 1
