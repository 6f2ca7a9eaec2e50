"""Many persistent queries on one server: memory, CPU when idle, and how long a record takes. Start at `measured`."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from bench.ksql.latency import Visitor
from bench.ksql.records import COLUMNS, make_topic
from bench.ksql.server import KsqlProcess, Session

__all__ = ["measured"]

IDLE_S = 20


def measured(count: int, *, bootstrap: str, folder: Path, samples: int) -> dict[str, float]:
    """Half of the queries filter, half count; each has a source and a result of its own."""
    with KsqlProcess(bootstrap, folder) as server:
        session = Session(server.url)
        began = time.monotonic()
        for number in range(count):
            _start(session, bootstrap, number)
        visitors = [Visitor(bootstrap, f"fleet-in-{number}", f"fleet-out-{number}") for number in range(count)]
        try:
            for visitor in visitors:
                visitor.visit(3)
            running_s = time.monotonic() - began
            before, at = server.usage(), time.monotonic()
            time.sleep(IDLE_S)
            after = server.usage()
            idle = (after.cpu_s - before.cpu_s) / (time.monotonic() - at)
            found = [one for visitor in visitors for one in visitor.visit(samples)]
        finally:
            for visitor in visitors:
                visitor.close()
    return {
        "all running s": running_s,
        "resident MB": after.resident_bytes / 1e6,
        "idle cores": idle,
        "p50 ms": statistics.median(found),
        "p90 ms": sorted(found)[int(len(found) * 0.9)],
    }


def _start(session: Session, bootstrap: str, number: int) -> None:
    make_topic(bootstrap, f"fleet-in-{number}")
    make_topic(bootstrap, f"fleet-out-{number}")
    into = f"WITH (KAFKA_TOPIC='fleet-out-{number}', PARTITIONS=4)"
    query = (
        f"CREATE STREAM O{number} {into} AS SELECT * FROM S{number} WHERE PRICE < 500;"
        if number % 2
        else f"CREATE TABLE O{number} {into} AS SELECT ID, COUNT(*) AS N FROM S{number} GROUP BY ID;"
    )
    session.statements(
        f"CREATE STREAM S{number} ({COLUMNS}) WITH (KAFKA_TOPIC='fleet-in-{number}', VALUE_FORMAT='JSON');{query}"
    )
