"""The demo's input: visits to the pages of a shop, some pages far more often than others, at a steady rate."""

from __future__ import annotations

import json
import random
import threading
import time
from typing import TYPE_CHECKING

from moldau.cli.cluster_options import report_client_log
from moldau.client.connection import build
from moldau.client.unsent_records import end_producer

if TYPE_CHECKING:
    from confluent_kafka import Producer

__all__ = ["PAGES", "Traffic"]

PAGES = (
    "/", "/search", "/cart", "/checkout", "/login", "/tea", "/coffee", "/books", "/bread", "/cheese",
    "/flowers", "/lamps", "/chairs", "/shoes", "/hats", "/maps", "/music", "/toys", "/help", "/about",
)  # fmt: skip
VISITORS = 5_000
LAST_RECORDS_S = 10.0
SLICE_S = 0.02
"""One batch of records is sent per this many seconds, so that the sender does not wait after each record."""


class Traffic:
    """A thread that produces `per_second` visits until it is stopped; `sent` counts them."""

    def __init__(self, bootstrap: str, topic: str, per_second: int) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._per_slice = max(1, round(per_second * SLICE_S))
        self._random = random.Random(7)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-traffic", daemon=True)
        self.sent = 0
        self.seconds = 0.0
        """How long it has sent records; set at the end."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop sending; when this returns, all counted records are acknowledged, unless the broker has stopped."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        from confluent_kafka import Producer

        properties = {"bootstrap.servers": self._bootstrap, "client.id": "demo-traffic"}
        producer, _ = build(
            Producer, "producer", properties, report=report_client_log, title="Producer clientId=demo-traffic"
        )
        weights = [1 / (rank + 1) for rank in range(len(PAGES))]
        began = due = time.monotonic()
        while not self._stopping.is_set():
            self._send(producer, self._random.choices(PAGES, weights, k=self._per_slice))
            due += SLICE_S
            self._stopping.wait(max(0.0, due - time.monotonic()))
        end_producer(producer, LAST_RECORDS_S)
        self.seconds = time.monotonic() - began

    def _send(self, producer: Producer, pages: list[str]) -> None:
        for page in pages:
            visit = {"page": page, "visitor": self._random.randrange(VISITORS)}
            producer.produce(self._topic, json.dumps(visit), key=page)
        producer.poll(0)
        self.sent += len(pages)
