from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.ksql.queries import table_copies
from moldau.ksql.queries.table_copies import TIME_WINDOW_BYTES, TableCopies

HOUR_MS = 3_600_000


class Record:
    """A message as librdkafka gives it."""

    def __init__(self, key: bytes, value: bytes | None, time_ms: int, offset: int) -> None:
        self._key, self._value, self._time_ms, self._offset = key, value, time_ms, offset

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def error(self) -> None:
        return None

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return 1, self._time_ms

    def headers(self) -> None:
        return None


class Log:
    """A cluster with one topic of one partition, and the consumer of it."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._read = 0

    def new_consumer(self, _client_id: str) -> Log:
        return self

    def assign(self, _places: Any) -> None:
        """Reads on from where it is."""

    def list_topics(self, _topic: str, timeout: float) -> None:
        """Is connected."""

    def close(self) -> None:
        """Nothing is open."""

    def poll(self, _timeout_s: float) -> Record | None:
        return next(iter(self.consume(1, 0)), None) or time.sleep(0.005)

    def consume(self, count: int, _timeout_s: float) -> list[Record]:
        found = self.records[self._read : self._read + count]
        self._read += len(found)
        return found

    def append(self, key: bytes, value: bytes | None, time_ms: int) -> None:
        self.records.append(Record(key, value, time_ms, len(self.records)))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def copies(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TableCopies]:
    monkeypatch.setattr(table_copies, "EXPIRE_S", 0.0)
    copies = TableCopies(tmp_path / "tables.db", log)  # type: ignore[arg-type]
    copies.start()
    yield copies
    copies.stop()


def values(copies: TableCopies, log: Log) -> list[bytes]:
    """The values of the key k once all records are in the copy."""
    assert copies.wait_until("t", {"0": len(log.records)}, 10.0)
    return [row.value for row in copies.rows_of_key("t", b"k")]


def windowed(start_ms: int) -> bytes:
    return b"k" + start_ms.to_bytes(8)


def test_the_newest_record_of_a_key_is_its_row(copies: TableCopies, log: Log) -> None:
    copies.follow("t", 1)
    log.append(b"k", b"1", 5)
    log.append(b"k", b"2", 3)
    assert values(copies, log) == [b"2"]
    log.append(b"k", None, 6)
    assert values(copies, log) == []


def test_windows_go_when_their_retention_is_over(copies: TableCopies, log: Log) -> None:
    copies.follow("t", 1, TIME_WINDOW_BYTES, retention_ms=2 * HOUR_MS)
    for hour in range(3):
        log.append(windowed(hour * HOUR_MS), b"%d" % hour, hour * HOUR_MS)
    assert values(copies, log) == [b"0", b"1", b"2"]
    log.append(windowed(4 * HOUR_MS), b"4", 4 * HOUR_MS)
    values(copies, log)
    deadline = time.monotonic() + 10.0
    while len(values(copies, log)) > 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert values(copies, log) == [b"2", b"4"]


def test_windows_without_a_retention_stay(copies: TableCopies, log: Log) -> None:
    copies.follow("t", 1, TIME_WINDOW_BYTES)
    log.append(windowed(0), b"0", 0)
    log.append(windowed(10**9), b"1", 10**9)
    assert values(copies, log) == [b"0", b"1"]
    log.append(b"other", b"", 0)
    assert values(copies, log) == [b"0", b"1"]
