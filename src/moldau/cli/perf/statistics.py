"""Latencies and rates of a run, and the report lines in Kafka's format. No I/O. Start at `ProducerStats`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["ProducerStats", "Window", "percentile"]

MEBIBYTE = 1024 * 1024


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """The value below which `fraction` of the sorted values lie; 0 if there are no values."""
    return ordered[min(int(len(ordered) * fraction), len(ordered) - 1)] if ordered else 0.0


@dataclass(slots=True)
class Window:
    """The counts since the last report."""

    began: float
    records: int = 0
    latency_sum_ms: float = 0.0
    latency_count: int = 0
    latency_max_ms: float = 0.0


@dataclass(slots=True)
class ProducerStats:
    """Counts of one producing run; times are seconds of a monotonic clock."""

    record_size: float
    began: float
    records: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    window: Window = field(init=False)

    def __post_init__(self) -> None:
        self.window = Window(self.began)

    def acknowledged(self, total: int) -> None:
        """Set the number of records acknowledged since the start."""
        self.window.records += total - self.records
        self.records = total

    def latency(self, milliseconds: float) -> None:
        self.latencies_ms.append(milliseconds)
        window = self.window
        window.latency_sum_ms += milliseconds
        window.latency_count += 1
        window.latency_max_ms = max(window.latency_max_ms, milliseconds)

    def close_window(self, now: float) -> str:
        """Return the report line of the current window, and start a new window."""
        window, self.window = self.window, Window(now)
        elapsed = max(now - window.began, 1e-9)
        rate = window.records / elapsed
        average = window.latency_sum_ms / window.latency_count if window.latency_count else 0.0
        return (
            f"{window.records} records sent, {rate:.1f} records/sec ({self._megabytes(rate):.2f} MB/sec), "
            f"{average:.1f} ms avg latency, {window.latency_max_ms:.1f} ms max latency."
        )

    def total(self, now: float) -> str:
        rate = self.records / max(now - self.began, 1e-9)
        ordered = sorted(self.latencies_ms)
        average = sum(ordered) / len(ordered) if ordered else 0.0
        tail = ", ".join(
            f"{percentile(ordered, fraction):.0f} ms {name}"
            for fraction, name in ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))
        )
        return (
            f"{self.records} records sent, {rate:f} records/sec ({self._megabytes(rate):.2f} MB/sec), "
            f"{average:.2f} ms avg latency, {ordered[-1] if ordered else 0:.2f} ms max latency, {tail}."
        )

    def _megabytes(self, rate: float) -> float:
        return rate * self.record_size / MEBIBYTE
