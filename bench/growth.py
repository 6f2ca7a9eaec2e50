"""How cost grows: with partitions, from 1 to 2,000, and with data, from 10 MB to 20 GB, each ended by kill -9.

Flat is the aim: what a broker does for one partition or one megabyte must not depend on how many others it has.
Start at `by_partitions` and `by_data`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import clients
from bench.brokers import BrokerError, BrokerProcess
from bench.clients import ClientError
from bench.machine import settle
from bench.workloads import Load

__all__ = ["DATA_BYTES", "PARTITIONS", "by_data", "by_partitions", "collect"]

PARTITIONS = (1, 10, 100, 500, 1000, 2000)
DATA_BYTES = (10_000_000, 100_000_000, 1_000_000_000, 5_000_000_000, 20_000_000_000)

Row = dict[str, float]


def by_partitions(kind: type[BrokerProcess], folder: Path, counts: Sequence[int], load_bytes: int) -> Iterator[Row]:
    """A fresh broker for each count: rates, memory, and start-up after a kill with all partitions loaded."""
    for partitions in counts:
        with kind(Path(tempfile.mkdtemp(prefix="growth-", dir=folder))) as broker:
            broker.create_topic("grown", partitions)
            load = Load(partitions=partitions)
            # The first pass creates every log and warms a JVM up; the second one counts.
            load.produce(broker, "grown", load_bytes)
            settle()
            produced = load.produce(broker, "grown", load_bytes)
            row = {"partitions": partitions, "produce_mb_per_s": produced["mb_per_s"]}
            row |= _acknowledgements(broker, "grown", partitions)
            row["resident_mb"] = broker.usage().resident_bytes / 1e6
            row["restart_s"] = _restart_after_kill(broker)
        yield row


def by_data(kind: type[BrokerProcess], folder: Path, sizes: Sequence[int]) -> Iterator[Row]:
    """One partition that keeps growing: seeks all over it, memory, and start-up after a kill at each size."""
    written_bytes, end_offset = 0, 0
    load = Load()
    with kind(Path(tempfile.mkdtemp(prefix="growth-", dir=folder))) as broker:
        broker.create_topic("grown", 1)
        for size in sizes:
            produced = load.produce(broker, "grown", size - written_bytes)
            written_bytes, end_offset = size, end_offset + int(produced["written"])
            settle()
            seeks = clients.run("socket_load", "seek", port=broker.port, topic="grown", end=end_offset, count=300)
            row = {"data_mb": size / 1e6, "seek_p50_ms": seeks["p50_ms"], "seek_p99_ms": seeks["p99_ms"]}
            row |= _acknowledgements(broker, "grown", 1)
            row["resident_mb"] = broker.usage().resident_bytes / 1e6
            row["restart_s"] = _restart_after_kill(broker)
            yield row


def collect(name: str, rows: Iterator[Row], found: list[Row], say: Callable[[str], None]) -> None:
    """Keep the rows that were measured; a broker that does not get further ends its part of the table."""
    try:
        for row in rows:
            found.append(row)
            say(f"  {name}: " + ", ".join(f"{key} {value:.4g}" for key, value in row.items()))
    except (BrokerError, ClientError) as error:
        say(f"  {name} got no further: {error}")


def _acknowledgements(broker: BrokerProcess, topic: str, partitions: int) -> Row:
    options = {"port": broker.port, "topic": topic, "partitions": partitions, "size": 1000}
    result = clients.run("socket_load", "paced", connections=4, rate=1000, seconds=3, **options)
    return {"ack_p50_ms": result["p50_ms"], "ack_p99_ms": result["p99_ms"]}


def _restart_after_kill(broker: BrokerProcess) -> float:
    broker.kill()
    settle()
    return broker.start()
