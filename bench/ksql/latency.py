"""From produce to result, record by record, in micro-batches and in real time; and from a statement to its first row.

Start at `measured` and `first_result_s`.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.ksql.jobs import JOBS
from bench.ksql.records import PARTITIONS, Orders, end_offsets, make_topic
from bench.ksql.server import KsqlProcess, Session

__all__ = ["first_result_s", "measured"]

WARM_UP = 30
PACE_S = 0.05
PATIENCE_S = 120.0


def measured(job: str, *, is_realtime: bool, bootstrap: str, folder: Path, samples: int) -> dict[str, float]:
    """Milliseconds of single records; every record has a key of its own."""
    suffix = "realtime" if is_realtime else "batch"
    source, output = f"lat-in-{job}-{suffix}", f"lat-out-{job}-{suffix}"
    make_topic(bootstrap, source)
    make_topic(bootstrap, output)
    properties = {"moldau.latency": "realtime"} if is_realtime else {}
    with KsqlProcess(bootstrap, folder) as server:
        Session(server.url).statements(JOBS[job].statements(source, output, []), properties)
        visitor = Visitor(bootstrap, source, output)
        try:
            visitor.visit(WARM_UP)
            found = visitor.visit(samples)
        finally:
            visitor.close()
    return {"p50_ms": statistics.median(found), "p90_ms": sorted(found)[int(len(found) * 0.9)]}


class Visitor:
    """Sends a record and waits for its result, one after the other."""

    def __init__(self, bootstrap: str, source: str, output: str) -> None:
        self._source, self._sent = source, 0
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "partitioner": "murmur2_random"})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"visitor-{output}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 10,
            }
        )
        self._consumer.assign([TopicPartition(output, partition, 0) for partition in range(PARTITIONS)])

    def visit(self, count: int) -> list[float]:
        """The latencies of so many records in milliseconds."""
        found = []
        for _ in range(count):
            began = time.monotonic()
            found.append(self._visit() * 1000)
            time.sleep(max(0.0, PACE_S - (time.monotonic() - began)))
        return found

    def close(self) -> None:
        self._consumer.close()

    def _visit(self) -> float:
        self._sent += 1
        key = f"visit-{self._sent}".encode()
        sent = time.monotonic()
        self._producer.produce(self._source, b'{"ITEM":"a","PRICE":1,"QUANTITY":2,"NOTE":"x"}', key)
        self._producer.flush()
        while time.monotonic() - sent < PATIENCE_S:
            record = self._consumer.poll(1)
            if record is not None and record.error() is None and record.key() == key:
                return time.monotonic() - sent
        raise TimeoutError(f"no result within {PATIENCE_S} s")


def first_result_s(bootstrap: str, folder: Path) -> dict[str, float]:
    """Seconds from a statement to its first result: of the first query of a server, and of the next one."""
    make_topic(bootstrap, "first-in")
    Orders(bootstrap, "first-in", 10).write(100)
    found = {}
    with KsqlProcess(bootstrap, folder) as server:
        session = Session(server.url)
        for number, name in enumerate(("first query", "next query")):
            output = f"first-out-{number}"
            make_topic(bootstrap, output)
            text = JOBS["filter"].statements("first-in", output, [])
            create, query = text.split("\n")
            if number == 0:
                session.statements(create)
            began = time.monotonic()
            session.statements(query.replace("O_FILTER", f"O_{number}"))
            while not sum(end_offsets(bootstrap, output)):
                if time.monotonic() - began > PATIENCE_S:
                    raise TimeoutError(f"no result within {PATIENCE_S} s")
                time.sleep(0.01)
            found[name] = time.monotonic() - began
        began = time.monotonic()
        session.rows("SELECT * FROM S_FILTER EMIT CHANGES LIMIT 1;")
        found["push query"] = time.monotonic() - began
    return found
