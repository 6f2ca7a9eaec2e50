"""What is measured: each workload does the same to whichever broker it is given and returns numbers.

Alternation, medians and tables are elsewhere (`bench.rounds`, `bench.report`); growth with partitions and data is
`bench.growth`. Start at `WORKLOADS`.
"""

from __future__ import annotations

import itertools
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import clients, groups
from bench.brokers import BrokerProcess
from bench.machine import drop_from_page_cache

__all__ = ["FULL", "QUICK", "TINY", "WORKLOADS", "Metric", "Scale", "Workload"]

Numbers = dict[str, float]


@dataclass(frozen=True)
class Scale:
    """How much of everything: enough to see that it works, for a look, or for the record."""

    rounds: int
    warm_up_bytes: int
    """Sent through each broker before anything is timed; a JVM wants a gigabyte."""
    throughput_bytes: int
    """Below what makes the disk the limit: about 1 GB."""
    seconds: int
    latency_seconds: int
    cold_bytes: int
    cleaner_bytes: int
    cleaner_seconds: int
    idle_connections: int = 2000
    group_members: int = 100
    group_partitions: int = 1000
    settle_s: float = 60.0
    """Longest wait for a quiet machine before each run."""


TINY = Scale(1, 50_000_000, 30_000_000, 1, 2, 50_000_000, 50_000_000, 3, 200, 10, 100, settle_s=1)
QUICK = Scale(1, 500_000_000, 250_000_000, 3, 4, 500_000_000, 200_000_000, 20, settle_s=20)
FULL = Scale(3, 1_500_000_000, 800_000_000, 6, 10, 3_000_000_000, 600_000_000, 30)


@dataclass(frozen=True)
class Metric:
    key: str
    unit: str
    is_more_better: bool = False


MB_PER_S = Metric("mb_per_s", "MB/s", is_more_better=True)
CPU_PER_GB = Metric("cpu_s_per_gb", "CPU s/GB")
REQUESTS_PER_S = Metric("requests_per_s", "requests/s", is_more_better=True)
CPU_PER_REQUEST = Metric("cpu_us_per_request", "CPU µs/request")
P50, P99, P999 = Metric("p50_ms", "p50 ms"), Metric("p99_ms", "p99 ms"), Metric("p999_ms", "p99.9 ms")
THROUGHPUT = (MB_PER_S, CPU_PER_GB)
LATENCY = (P50, P99, P999)


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    measure: Callable[[BrokerProcess, Scale], Numbers]
    metrics: tuple[Metric, ...]
    is_quick: bool = True
    """Part of `--quick` too."""


_serial = itertools.count(1)


@contextmanager
def _topic(broker: BrokerProcess, partitions: int = 1, **config: object) -> Iterator[str]:
    """A topic of its own for one run; its files go at once, so that nobody else's run pays for that."""
    name = f"bench-{next(_serial)}"
    broker.create_topic(name, partitions, file_delete_delay_ms=100, **config)
    try:
        yield name
    finally:
        broker.delete_topic(name)


@dataclass(frozen=True)
class Load:
    """The knobs of a librdkafka producer that the throughput workloads turn."""

    size: int = 1000
    partitions: int = 1
    acks: str = "all"
    is_idempotent: bool = False
    codec: str = "none"

    transaction: int = 0
    """Records in one transaction; 0 means none."""

    def produce(self, broker: BrokerProcess, topic: str, total_bytes: int, keys: int = 0) -> Numbers:
        return clients.run(
            "rdkafka_load",
            "produce",
            brokers=broker.bootstrap,
            topic=topic,
            partitions=self.partitions,
            size=self.size,
            count=total_bytes // self.size,
            acks="all" if self.is_idempotent else self.acks,
            idempotent=int(self.is_idempotent),
            codec=self.codec,
            keys=keys,
            transaction=self.transaction,
        )


def produce(load: Load, broker: BrokerProcess, scale: Scale, **config: object) -> Numbers:
    with _topic(broker, load.partitions, **config) as topic:
        before = broker.usage()
        result = load.produce(broker, topic, scale.throughput_bytes)
        cpu_s = broker.usage().cpu_s - before.cpu_s
    return {"mb_per_s": result["mb_per_s"], "cpu_s_per_gb": cpu_s / (scale.throughput_bytes / 1e9)}


_filled: dict[tuple[str, int, Load], tuple[str, int]] = {}


def _filled_topic(load: Load, broker: BrokerProcess, total_bytes: int) -> tuple[str, int]:
    """A topic with `total_bytes` in it and how many records that is; filled once, read in every round."""
    key = (broker.name, broker.port, load)
    if key not in _filled:
        topic = f"bench-full-{next(_serial)}"
        broker.create_topic(topic, load.partitions)
        _filled[key] = topic, int(load.produce(broker, topic, total_bytes)["written"])
    return _filled[key]


def consume(load: Load, consumers: int, broker: BrokerProcess, scale: Scale) -> Numbers:
    topic, records = _filled_topic(load, broker, scale.throughput_bytes)
    before = broker.usage()
    result = clients.run(
        "rdkafka_load",
        "consume",
        brokers=broker.bootstrap,
        topic=topic,
        partitions=load.partitions,
        count=records,
        consumers=consumers,
    )
    cpu_s = broker.usage().cpu_s - before.cpu_s
    return {"mb_per_s": result["mb_per_s"], "cpu_s_per_gb": cpu_s / (records * load.size / 1e9)}


def end_to_end(rate: int, broker: BrokerProcess, scale: Scale) -> Numbers:
    with _topic(broker) as topic:
        count = rate * scale.latency_seconds
        return clients.run("rdkafka_load", "latency", brokers=broker.bootstrap, topic=topic, rate=rate, count=count)


def small_requests(connections: int, depth: int, broker: BrokerProcess, scale: Scale, **config: object) -> Numbers:
    partitions = min(connections, 10)
    with _topic(broker, partitions, **config) as topic:
        before = broker.usage()
        result = clients.run(
            "socket_load",
            "closed",
            port=broker.port,
            topic=topic,
            partitions=partitions,
            connections=connections,
            depth=depth,
            seconds=scale.seconds,
        )
        cpu_s = broker.usage().cpu_s - before.cpu_s
    return result | {"cpu_us_per_request": cpu_s * 1e6 / result["samples"]}


def idle_connections(broker: BrokerProcess, scale: Scale) -> Numbers:
    """Memory that silent connections take, and whether the busy ones notice them."""
    before = broker.usage()
    command = clients.command("socket_load", "idle", port=broker.port, connections=scale.idle_connections)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as idle:
        assert idle.stdin is not None
        assert idle.stdout is not None
        if not idle.stdout.readline():
            raise clients.ClientError(f"{broker.name} did not keep {scale.idle_connections} connections open")
        grown = broker.usage().resident_bytes - before.resident_bytes
        result = small_requests(10, 1, broker, scale)
        idle.stdin.close()
    return result | {"kb_per_connection": max(0.0, grown / 1024 / scale.idle_connections)}


def fresh_start(broker: BrokerProcess, scale: Scale) -> Numbers:
    """A second broker of the same kind from nothing: start-up, memory idle, memory under load."""
    directory = Path(tempfile.mkdtemp(prefix="fresh-", dir=broker.directory.parent))
    fresh = type(broker)(directory)
    try:
        fresh.prepare()
        startup_s = fresh.start()
        time.sleep(min(5, scale.seconds))
        idle_bytes = fresh.usage().resident_bytes
        loaded_bytes = _peak_memory_under_load(fresh, scale)
    finally:
        fresh.__exit__(None, None, None)
    return {"startup_s": startup_s, "idle_mb": idle_bytes / 1e6, "loaded_mb": loaded_bytes / 1e6}


def _peak_memory_under_load(broker: BrokerProcess, scale: Scale) -> int:
    load, peak_bytes, is_over = Load(partitions=6), 0, threading.Event()

    def watch() -> None:
        nonlocal peak_bytes
        while not is_over.wait(0.05):
            peak_bytes = max(peak_bytes, broker.usage().resident_bytes)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        broker.create_topic("load", load.partitions)
        records = int(load.produce(broker, "load", scale.throughput_bytes)["written"])
        options = {"brokers": broker.bootstrap, "topic": "load", "partitions": load.partitions}
        clients.run("rdkafka_load", "consume", count=records, consumers=3, **options)
    finally:
        is_over.set()
        watcher.join()
    return peak_bytes


def _paced(broker: BrokerProcess, topic: str, seconds: int) -> Numbers:
    """Acknowledgement latency of 1,000 one-record requests a second, timed from when each was due."""
    options = {"connections": 4, "partitions": 4, "rate": 1000, "size": 1000}
    return clients.run("socket_load", "paced", port=broker.port, topic=topic, seconds=seconds, **options)


def undisturbed(broker: BrokerProcess, scale: Scale) -> Numbers:
    with _topic(broker, 4) as topic:
        return _paced(broker, topic, scale.latency_seconds)


def beside_cold_reader(broker: BrokerProcess, scale: Scale) -> Numbers:
    """Acknowledgements while someone reads data that is no longer in memory, again and again."""
    cold_topic, records = _filled_topic(Load(size=10_000), broker, scale.cold_bytes)
    is_over, read = threading.Event(), {"bytes": 0.0, "seconds": 1e-9}

    def read_cold() -> None:
        while not is_over.is_set():
            drop_from_page_cache(broker.data / f"{cold_topic}-0")
            started = time.monotonic()
            clients.run("rdkafka_load", "consume", brokers=broker.bootstrap, topic=cold_topic, count=records)
            read["bytes"] += records * 10_000
            read["seconds"] += time.monotonic() - started

    reader = threading.Thread(target=read_cold)
    with _topic(broker, 4) as topic:
        reader.start()
        try:
            result = _paced(broker, topic, scale.latency_seconds)
        finally:
            is_over.set()
            reader.join()
    return result | {"reader_mb_per_s": read["bytes"] / read["seconds"] / 1e6}


def beside_cleaner(broker: BrokerProcess, scale: Scale) -> Numbers:
    """Acknowledgements while the cleaner compacts; it is held back until the clock runs."""
    compacted = {"cleanup_policy": "compact", "segment_bytes": 32 << 20}
    with _topic(broker, 1, min_compaction_lag_ms=86_400_000, **compacted) as keyed, _topic(broker, 4) as topic:
        Load().produce(broker, keyed, scale.cleaner_bytes, keys=20_000)
        folder = broker.data / f"{keyed}-0"
        before = _log_bytes(folder)
        broker.alter_topic(keyed, file_delete_delay_ms=100, **compacted)
        result = _paced(broker, topic, scale.cleaner_seconds)
        return result | {"cleaned_mb": (before - _log_bytes(folder)) / 1e6}


def _log_bytes(folder: Path) -> int:
    sizes = []
    for path in folder.glob("*.log"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return sum(sizes)


def flushed_settings(broker: BrokerProcess) -> dict[str, object]:
    """What makes an acknowledgement mean "on disk" on either broker."""
    return {"moldau_flush_on_ack": "true"} if broker.name == "moldau" else {"flush_messages": 1}


def produce_flushed(broker: BrokerProcess, scale: Scale) -> Numbers:
    return produce(Load(), broker, scale, **flushed_settings(broker))


def small_requests_flushed(connections: int, broker: BrokerProcess, scale: Scale) -> Numbers:
    return small_requests(connections, 1, broker, scale, **flushed_settings(broker))


def transactions(records: int, broker: BrokerProcess, scale: Scale) -> Numbers:
    """The same data twice, idempotent: without transactions, and in transactions of `records` each."""
    # Small transactions are about round trips: fewer bytes tell as much.
    total_bytes = scale.throughput_bytes if records >= 1000 else scale.throughput_bytes // 20
    with _topic(broker) as topic:
        plain = Load(is_idempotent=True).produce(broker, topic, total_bytes)
    with _topic(broker) as topic:
        before = broker.usage()
        result = Load(is_idempotent=True, transaction=records).produce(broker, topic, total_bytes)
        cpu_s = broker.usage().cpu_s - before.cpu_s
    return {
        "mb_per_s": result["mb_per_s"],
        "transactions_per_s": result["records"] / records / result["seconds"],
        "share_of_plain": result["mb_per_s"] / plain["mb_per_s"],
        "cpu_s_per_gb": cpu_s / (total_bytes / 1e9),
    }


def rebalances(times: Callable[[int, str, int, int], Numbers], broker: BrokerProcess, scale: Scale) -> Numbers:
    """How long a large group takes to its assignment, and to the next one after a member has left."""
    with _topic(broker, scale.group_partitions) as topic:
        before = broker.usage()
        result = times(broker.port, topic, scale.group_members, scale.group_partitions)
        return result | {"cpu_s": broker.usage().cpu_s - before.cpu_s}


def _produces() -> Iterator[Workload]:
    cases = [
        ("produce-1k", "produce 1 KB, acks=all", Load(), True),
        ("produce-1k-idempotent", "produce 1 KB, idempotent", Load(is_idempotent=True), True),
        ("produce-1k-acks1", "produce 1 KB, acks=1", Load(acks="1"), False),
        ("produce-1k-lz4", "produce 1 KB, lz4", Load(codec="lz4"), True),
        ("produce-1k-p6", "produce 1 KB, 6 partitions", Load(partitions=6), False),
        ("produce-1k-p60", "produce 1 KB, 60 partitions", Load(partitions=60), True),
        ("produce-100", "produce 100 B, acks=all", Load(size=100), True),
        ("produce-100-acks1", "produce 100 B, acks=1", Load(size=100, acks="1"), False),
        ("produce-100-idempotent", "produce 100 B, idempotent", Load(size=100, is_idempotent=True), False),
        ("produce-100-lz4", "produce 100 B, lz4", Load(size=100, codec="lz4"), False),
        ("produce-100-p60", "produce 100 B, 60 partitions", Load(size=100, partitions=60), False),
        ("produce-10k", "produce 10 KB, acks=all", Load(size=10_000), True),
        ("produce-10k-p6", "produce 10 KB, 6 partitions", Load(size=10_000, partitions=6), False),
    ]
    for name, title, load, is_quick in cases:
        yield Workload(name, title, partial(produce, load), THROUGHPUT, is_quick)


def _consumes() -> Iterator[Workload]:
    cases = [
        ("consume-1k", "consume 1 KB", Load(), 1, True),
        ("consume-1k-lz4", "consume 1 KB, lz4", Load(codec="lz4"), 1, False),
        ("consume-1k-p6", "consume 1 KB, 6 partitions", Load(partitions=6), 1, False),
        ("consume-1k-p6-c3", "consume 1 KB, 6 partitions, 3 consumers", Load(partitions=6), 3, True),
        ("consume-1k-p60-c3", "consume 1 KB, 60 partitions, 3 consumers", Load(partitions=60), 3, False),
        ("consume-100", "consume 100 B", Load(size=100), 1, True),
        ("consume-100-p6-c3", "consume 100 B, 6 partitions, 3 consumers", Load(size=100, partitions=6), 3, False),
        ("consume-10k", "consume 10 KB", Load(size=10_000), 1, False),
    ]
    for name, title, load, consumers, is_quick in cases:
        yield Workload(name, title, partial(consume, load, consumers), THROUGHPUT, is_quick)


SMALL = (REQUESTS_PER_S, P99, CPU_PER_REQUEST)
FRESH = (Metric("startup_s", "s to first ack"), Metric("idle_mb", "MB idle"), Metric("loaded_mb", "MB loaded"))
TRANSACTIONS = (
    MB_PER_S,
    Metric("transactions_per_s", "transactions/s", is_more_better=True),
    Metric("share_of_plain", "of the rate without", is_more_better=True),
    CPU_PER_GB,
)
REBALANCES = (
    Metric("first_s", "s to the first assignment"),
    Metric("again_s", "s to the next after one left"),
    Metric("cpu_s", "CPU s"),
)

WORKLOADS: tuple[Workload, ...] = (
    *_produces(),
    *_consumes(),
    Workload("latency-1k", "end to end, 1,000 msg/s", partial(end_to_end, 1000), LATENCY),
    Workload("latency-10k", "end to end, 10,000 msg/s", partial(end_to_end, 10_000), LATENCY),
    Workload("requests-10", "one-record requests, 10 connections", partial(small_requests, 10, 1), SMALL),
    Workload("requests-100", "one-record requests, 100 connections", partial(small_requests, 100, 1), SMALL),
    Workload("requests-64", "one-record requests, 1 connection, 64 deep", partial(small_requests, 1, 64), SMALL),
    Workload(
        "idle",
        "2,000 idle connections, 10 busy",
        idle_connections,
        (Metric("kb_per_connection", "KB per idle connection"), REQUESTS_PER_S, P99),
    ),
    Workload("fresh", "from nothing", fresh_start, FRESH),
    Workload("paced", "acknowledgement at 1,000/s", undisturbed, LATENCY),
    Workload(
        "paced-cold",
        "acknowledgement at 1,000/s beside a cold reader",
        beside_cold_reader,
        (*LATENCY, Metric("reader_mb_per_s", "MB/s of the reader", is_more_better=True)),
    ),
    Workload(
        "paced-cleaner",
        "acknowledgement at 1,000/s beside the cleaner",
        beside_cleaner,
        (*LATENCY, Metric("cleaned_mb", "MB cleaned away", is_more_better=True)),
    ),
    Workload("flushed-1k", "produce 1 KB, acknowledged = on disk", produce_flushed, THROUGHPUT),
    Workload(
        "flushed-10",
        "one-record requests, 10 connections, acknowledged = on disk",
        partial(small_requests_flushed, 10),
        SMALL,
    ),
    Workload(
        "flushed-100",
        "one-record requests, 100 connections, acknowledged = on disk",
        partial(small_requests_flushed, 100),
        SMALL,
        is_quick=False,
    ),
    Workload("transactions-1000", "transactions of 1,000 records of 1 KB", partial(transactions, 1000), TRANSACTIONS),
    Workload("transactions-10", "transactions of 10 records of 1 KB", partial(transactions, 10), TRANSACTIONS),
    Workload(
        "group-classic",
        "100 members on 1,000 partitions, classic protocol",
        partial(rebalances, groups.classic_times),
        REBALANCES,
    ),
    Workload(
        "group-consumer",
        "100 members on 1,000 partitions, consumer protocol",
        partial(rebalances, groups.consumer_times),
        REBALANCES,
    ),
)
