"""How far each part of the demo is: a thread that looks at one part again and again. Start at `Watch`.

What a look finds is a `Found`: how many orders have arrived there, and when the newest of them was placed.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from pyarrow.parquet import ParquetFile

from moldau.cli.cluster_options import report_client_log
from moldau.cli.demo.story.pipelines import TABLE_QUESTION, Pipelines
from moldau.cli.demo.story.program import ORDERS
from moldau.cli.demo.story.shop import Totals
from moldau.cli.tool import CLOSE_S, ToolError
from moldau.client.connection import build
from moldau.client.errors import SchemaRegistryError
from moldau.client.serialization import prepared_serde
from moldau.client.waiting import close_within
from moldau.serdes.schema_serde import AvroSerde

__all__ = ["FilesLook", "Found", "TableLook", "TopicLook", "Watch"]

LOOK_S: Final = 0.1
END_S: Final = 1.0
RATE_LOOKS: Final = 20
"""Rates are those of so many looks, so that numbers do not flicker."""


@dataclass(frozen=True, slots=True)
class Found:
    orders: int = 0
    newest_ms: int = 0
    totals: Totals = field(default_factory=dict)
    note: str = ""


class Watch:
    """A thread that repeats a look; what it found last is `found`."""

    def __init__(self, look: Callable[[], Found], close: Callable[[], None] = lambda: None) -> None:
        self._look = look
        self._close = close
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._history: deque[tuple[float, int]] = deque([(time.monotonic(), 0)], maxlen=RATE_LOOKS)
        self.ages_ms: list[int] = []
        self.found = Found()
        self.first_s: float | None = None
        """When the first order was seen, as `time.monotonic`."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a look under way that waits for a service is left to itself."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(END_S)

    def rate(self) -> float:
        """Orders per second lately."""
        (then, before), (now, after) = self._history[0], self._history[-1]
        return (after - before) / (now - then) if now > then else 0.0

    def age_ms(self) -> int | None:
        """How old the newest order was when it was seen here, lately."""
        return self.ages_ms[-1] if self.ages_ms else None

    def usual_age_ms(self) -> float | None:
        """The median of that while everything was running: the second half of what was seen."""
        late = self.ages_ms[len(self.ages_ms) // 2 :]
        return median(late) if late else None

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                found = self._look()
            except (ToolError, SchemaRegistryError, OSError):
                found = self.found  # what is looked at is not there yet, or is just being replaced
            if found.newest_ms > self.found.newest_ms:
                self.ages_ms.append(max(0, time.time_ns() // 1_000_000 - found.newest_ms))
            if found.orders and self.first_s is None:
                self.first_s = time.monotonic()
            self.found = found
            self._history.append((time.monotonic(), found.orders))
            self._stopping.wait(LOOK_S)
        self._close()


class TopicLook:
    """Reads the topic of orders, as any consumer would; orders that come twice are counted twice."""

    def __init__(self, bootstrap: str, registry_url: str, partitions: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        properties = {
            "bootstrap.servers": bootstrap,
            "group.id": "demo-screen",
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            "fetch.max.wait.ms": "50",
        }
        self._consumer, _ = build(
            Consumer, "consumer", properties, report=report_client_log, title="Consumer clientId=demo-screen"
        )
        self._consumer.assign([TopicPartition(ORDERS, partition, 0) for partition in range(partitions)])
        self._serde = prepared_serde(AvroSerde(), {"schema.registry.url": registry_url})
        self._found = Found()

    def __call__(self) -> Found:
        orders, newest_ms, totals = self._found.orders, self._found.newest_ms, dict(self._found.totals)
        for record in self._consumer.consume(2_000, timeout=LOOK_S):
            value = record.value()
            if record.error() is not None or value is None:
                continue
            row = self._serde.deserialize(ORDERS, bytes(value))
            count, cents = totals.get(row["product"], (0, 0))
            totals[row["product"]] = (count + 1, cents + row["cents"])
            orders, newest_ms = orders + 1, max(newest_ms, row["placed_ms"])
        self._found = Found(orders, newest_ms, totals)
        return self._found

    def close(self) -> None:
        close_within(self._consumer, CLOSE_S)


class TableLook:
    """Asks the table of ksql over HTTP."""

    def __init__(self, pipelines: Pipelines) -> None:
        self._pipelines = pipelines

    def __call__(self) -> Found:
        began = time.monotonic()
        rows = self._pipelines.select(TABLE_QUESTION)
        note = f"answered in {(time.monotonic() - began) * 1000:.0f} ms"
        totals = {country: (orders, cents) for country, orders, cents, _ in rows}
        return Found(sum(row[1] for row in rows), max((row[3] for row in rows), default=0), totals, note)


class FilesLook:
    """Reads the Parquet files; each has changes of the results, of which the last for a product and window counts."""

    _NAME = re.compile(r"[^+]+\+(\d+)\+(\d+)\+\d+\.parquet")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: set[str] = set()
        self._newest_ms = 0
        self._latest: dict[tuple[str, int], tuple[int, int]] = {}

    def __call__(self) -> Found:
        for path in self._fresh():
            rows = [
                {name.lower(): value for name, value in row.items()} for row in ParquetFile(path).read().to_pylist()
            ]
            for row in rows:
                self._latest[row["product"], row["window_start_ms"]] = (row["orders"], row["cents"])
                self._newest_ms = max(self._newest_ms, row["newest_ms"])
            self._read.add(path.name)
        totals: Totals = {}
        for (product, _), (orders, cents) in self._latest.items():
            count, sum_ = totals.get(product, (0, 0))
            totals[product] = (count + orders, sum_ + cents)
        note = f"{len(self._read)} files" if self._read else ""
        return Found(sum(count for count, _ in totals.values()), self._newest_ms, totals, note)

    def _fresh(self) -> list[Path]:
        """Files not read yet, in the order of their offsets, which their names tell."""
        named = [
            (found, path) for path in self._folder.rglob("*.parquet") if (found := self._NAME.fullmatch(path.name))
        ]
        ordered = sorted((int(found[1]), int(found[2]), path) for found, path in named)
        return [path for _, _, path in ordered if path.name not in self._read]
