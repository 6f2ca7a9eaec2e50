"""The metrics of a pipeline: rates, batch time, state size, lag. Start at `PipelineMetrics`."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from moldau.core.ids import TopicPartition

__all__ = ["BatchReport", "MetricsSnapshot", "PipelineMetrics"]

Offsets = Mapping[TopicPartition, int]
RATE_WINDOW_S = 10.0
REPORTED_BATCHES = 20


@dataclass(frozen=True, slots=True)
class BatchReport:
    """One finished batch."""

    batch: int
    finished_ms: int
    """Wall-clock time."""
    records_in: int
    records_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSnapshot:
    """The metrics at one point in time."""

    batch: int | None
    """Number of the last batch; None before the first."""
    records_in: int
    records_out: int
    """Since the start of this process, without repeated batches."""
    input_rate: float
    output_rate: float
    """Records per second, over the last ten seconds."""
    batch_ms: float
    """Duration of the last batch."""
    state_records: int
    state_bytes: int
    lag: int
    """Records in the topics that no finished batch has read yet."""
    lag_by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)
    restarts: int
    batches: tuple[BatchReport, ...] = ()
    """The last finished batches of this process, oldest first."""
    last_error: str | None = None
    """Why it last had to be restarted."""

    def as_progress(self) -> dict[str, Any]:
        """The metrics with what they are made of, as `/progress` shows them."""
        return {
            "metrics": self.as_dict(),
            "lag": {str(place): lag for place, lag in sorted(self.lag_by_partition.items())},
            "batches": [asdict(batch) for batch in self.batches],
            "last_error": self.last_error,
        }

    def as_dict(self) -> dict[str, float | int | None]:
        """The metrics by Kafka-like names, for printing and export."""
        return {
            "batch": self.batch,
            "records-in-total": self.records_in,
            "records-out-total": self.records_out,
            "process-rate": round(self.input_rate, 1),
            "send-rate": round(self.output_rate, 1),
            "batch-time-ms": self.batch_ms,
            "state-records": self.state_records,
            "state-bytes": self.state_bytes,
            "records-lag": self.lag,
            "restarts": self.restarts,
        }


class PipelineMetrics:
    """Updated when a batch finishes; may be read by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch: int | None = None
        self._ends: dict[TopicPartition, int] = {}
        self._records_in = 0
        self._records_out = 0
        self._recent: deque[tuple[float, int, int]] = deque()
        self._batch_ms = 0.0
        self._state_records = 0
        self._state_bytes = 0
        self._reports: deque[BatchReport] = deque(maxlen=REPORTED_BATCHES)
        self.restarts = 0
        self.last_error: str | None = None

    def count_from(self, offsets: Offsets) -> None:
        """Set the offsets at which the first batch starts."""
        with self._lock:
            self._ends = {**offsets, **self._ends}

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """The end offsets of finished batches."""
        with self._lock:
            return dict(self._ends)

    @property
    def has_batch(self) -> bool:
        """Whether a batch has finished in this process."""
        return self._batch is not None

    def count_batch(self, batch: int, ends: Offsets, written: int) -> None:
        now = time.monotonic()
        with self._lock:
            read = sum(max(0, end - self._ends.get(place, end)) for place, end in ends.items())
            self._batch = batch
            self._ends.update(ends)
            self._records_in += read
            self._records_out += written
            self._recent.append((now, read, written))
            self._reports.append(BatchReport(batch, round(time.time() * 1000), read, written))
            self._forget(now)

    def note_progress(self, progress: Mapping[str, Any]) -> None:
        """Record Spark's report of its last batch."""
        operators = progress.get("stateOperators") or ()
        with self._lock:
            self._batch_ms = float(progress.get("batchDuration") or 0)
            self._state_records = sum(int(one.get("numRowsTotal") or 0) for one in operators)
            self._state_bytes = sum(int(one.get("memoryUsedBytes") or 0) for one in operators)

    def snapshot(self, latest: Offsets) -> MetricsSnapshot:
        """The current metrics; `latest` are the end offsets of the topics, for the lag."""
        now = time.monotonic()
        with self._lock:
            self._forget(now)
            began = self._recent[0][0] if self._recent else now
            # A single batch does not show how long its records took to arrive.
            seconds = max(now - began, self._batch_ms / 1000, 1.0)
            lags = {place: max(0, end - self._ends.get(place, end)) for place, end in latest.items()}
            return MetricsSnapshot(
                batch=self._batch,
                records_in=self._records_in,
                records_out=self._records_out,
                input_rate=sum(read for _, read, _ in self._recent) / seconds,
                output_rate=sum(written for _, _, written in self._recent) / seconds,
                batch_ms=self._batch_ms,
                state_records=self._state_records,
                state_bytes=self._state_bytes,
                lag=sum(lags.values()),
                lag_by_partition=lags,
                restarts=self.restarts,
                batches=tuple(self._reports),
                last_error=self.last_error,
            )

    def _forget(self, now: float) -> None:
        while self._recent and now - self._recent[0][0] > RATE_WINDOW_S:
            self._recent.popleft()
