"""A topic in memory for `TopicLog`, with brokers that go away, answer late or forget. Start at `FakeTopic`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from moldau.client.coordination.topic_log import (
    LogRecord,
    LogWrite,
    Offsets,
    ReadBatch,
    TopicFacts,
    TopicLogError,
    WriteOutcome,
)
from moldau.client.errors import FencedError, UnreachableError

__all__ = ["FakeTopic"]


class FakeTopic:
    """Appended records are read by every reader; failures are set from outside, by any thread."""

    name = "memory"
    servers = "fake:9092"

    def __init__(self, partitions: int = 1, *, is_exclusive: bool = False) -> None:
        self.is_exclusive = is_exclusive
        self.partitions: list[list[LogWrite]] = [[] for _ in range(partitions)]
        self.changed = threading.Condition()
        self.are_brokers_away = False
        self.read_failures: list[Exception] = []
        """Raised by the next reads, one each."""
        self.write_failures: list[Exception] = []
        self.are_reads_held = False
        self.opened_readers: list[Offsets] = []
        self.opened_writers = 0
        self.largest_write = 0
        """The most groups that were written together."""

    def prepare(self, deadline: float, is_stopping: Callable[[], bool]) -> TopicFacts:
        while self.are_brokers_away and not is_stopping():
            time.sleep(0.001)
        return TopicFacts("fake-cluster", len(self.partitions))

    def open_reader(self, positions: Offsets) -> _Reader:
        self.opened_readers.append(dict(positions))
        return _Reader(self, positions)

    def open_writer(self) -> _Writer:
        if self.are_brokers_away:
            raise UnreachableError("no broker answers")
        self.opened_writers += 1
        return _Writer(self, self.opened_writers)

    def store(self, write: LogWrite) -> tuple[int, int]:
        """Append as any writer would; partition and offset."""
        with self.changed:
            partition = write.partition if write.partition is not None else sum(write.key or b"") % len(self.partitions)
            self.partitions[partition].append(write)
            self.changed.notify_all()
            return partition, len(self.partitions[partition]) - 1


class _Reader:
    def __init__(self, topic: FakeTopic, positions: Offsets) -> None:
        self._topic = topic
        self._positions = dict(positions)

    def end_offsets(self) -> Offsets:
        return {partition: len(records) for partition, records in enumerate(self._topic.partitions)}

    def read(self, timeout_s: float) -> ReadBatch | None:
        topic = self._topic
        with topic.changed:
            if topic.read_failures:
                raise topic.read_failures.pop(0)
            if not self._available():
                topic.changed.wait(timeout_s)
            records = self._available()
        for record in records:
            self._positions[record.partition] = record.offset + 1
        return ReadBatch(records, dict(self._positions)) if records else None

    def _available(self) -> list[LogRecord]:
        if self._topic.are_reads_held or self._topic.are_brokers_away:
            return []
        return [
            LogRecord(partition, offset, *self._topic.partitions[partition][offset][:2])
            for partition, position in self._positions.items()
            for offset in range(position, min(position + 3, len(self._topic.partitions[partition])))
        ]

    def close(self) -> None:
        pass


class _Writer:
    def __init__(self, topic: FakeTopic, number: int) -> None:
        self._topic = topic
        self._number = number
        self.is_usable = True

    def write(self, groups: Sequence[Sequence[LogWrite]], is_over: Callable[[], bool]) -> Sequence[WriteOutcome]:
        self._topic.largest_write = max(self._topic.largest_write, len(groups))
        if self._topic.is_exclusive and self._number != self._topic.opened_writers:
            self.is_usable = False
            return [FencedError("a newer writer has the transactional id")] * len(groups)
        if self._topic.write_failures:
            failure = self._topic.write_failures.pop(0)
            self.is_usable = isinstance(failure, TopicLogError)
            raise failure
        while self._topic.are_brokers_away and not is_over():
            time.sleep(0.001)
        return [dict(map(self._topic.store, group)) for group in groups]

    def serve(self) -> None:
        pass

    def close(self, timeout_s: float) -> None:
        pass
