"""One competitor on one job: started, warmed with a first load, measured with a second, then record by record.

A run has a broker's topics to itself. The clock of a throughput starts when the load starts to be produced and stops at
the append of the last output; so producing, processing and writing share the cores, for everybody alike. Latency is
from `produce` of one record to its output in a consumer's hands, at a calm pace. Start at `measured`.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from bench import clients
from bench.brokers import BrokerProcess, end
from bench.machine import Usage, usage_of
from bench.streams import outputs
from bench.streams.competitors import command
from bench.streams.jobs import Job

__all__ = ["Load", "Measured", "measured"]

Measured = dict[str, float]

KEYS = 10_000
WARM_UP = 100_000
LEAST_WARM_UP = 2_000
PACE_PER_S = 20
CALM_WARM_UP = 40
"""Records sent one by one before the clock counts: what runs for a batch of one is other code than under load."""
START_TIMEOUT_S = 120
KNOCKS = 16
"""Keys enough that every partition has some."""
RUN_TIMEOUT_S = 2400


@dataclass(frozen=True, slots=True)
class Load:
    """How many records a processor gets before the clock runs, and how many while it does."""

    warm_up: int
    records: int

    @classmethod
    def of(cls, records: int) -> Load:
        """Those who get few records to measure also get few to warm up with."""
        return cls(max(LEAST_WARM_UP, min(WARM_UP, records // 10)), records)

    @property
    def total(self) -> int:
        return self.warm_up + self.records


def measured(job: Job, competitor: str, broker: BrokerProcess, folder: Path, *, load: Load, samples: int) -> Measured:
    """Records per second, latencies, seconds from process start to the first output, CPU and memory."""
    _make_topics(broker, job)
    _produce(broker, "input", load.warm_up, job.record_bytes)
    began = time.monotonic()
    with _running(command(competitor, job.name, broker.bootstrap, folder), folder) as process:
        first_output_s = _first_output_s(broker, began, process)
        outputs.wait_until_quiet(broker.bootstrap, "output", 1, START_TIMEOUT_S, lambda: process.poll() is None)
        before = usage_of(process.pid)
        load_began = time.time()
        _produce(broker, "input", load.records, job.record_bytes)
        after, written = _finished(job, competitor, broker, load, process)
        seconds = written.last_append_ms / 1000 - load_began
        latencies = _latencies_ms(broker, samples, has_table=job.has_table)
    return {
        "records_per_s": load.records / seconds,
        "first_output_s": first_output_s,
        "p50_ms": statistics.median(latencies),
        "p90_ms": sorted(latencies)[int(len(latencies) * 0.9)],
        "p99_ms": sorted(latencies)[int(len(latencies) * 0.99)],
        "cpu_s_per_million": (after.cpu_s - before.cpu_s) / load.records * 1e6,
        "resident_mb": after.resident_bytes / 1e6,
    }


def _make_topics(broker: BrokerProcess, job: Job) -> None:
    broker.create_topic("input", outputs.PARTITIONS)
    broker.create_topic("output", outputs.PARTITIONS, message_timestamp_type="LogAppendTime")
    if job.has_table:
        broker.create_topic("table", outputs.PARTITIONS)
        _produce(broker, "table", KEYS, 20)


def _produce(broker: BrokerProcess, topic: str, count: int, size: int) -> None:
    clients.run("rdkafka_load", "text", brokers=broker.bootstrap, topic=topic, count=count, size=size, keys=KEYS)


def _least(job: Job, load: Load) -> int:
    """How many outputs there are at the least; a job that merges changes may end with one a key."""
    return load.total if job.is_one_to_one else 1_000


@contextmanager
def _running(words: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "output.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
    try:
        yield process
    finally:
        end(process)


def _first_output_s(broker: BrokerProcess, began: float, process: subprocess.Popen[bytes]) -> float:
    while time.monotonic() - began < START_TIMEOUT_S:
        if process.poll() is not None:
            raise RuntimeError(f"the program ended by itself with {process.returncode}; see output.log in its folder")
        if sum(outputs.end_offsets(broker.bootstrap, "output")):
            return time.monotonic() - began
        time.sleep(0.05)
    raise TimeoutError(f"no output within {START_TIMEOUT_S} s")


def _finished(
    job: Job, competitor: str, broker: BrokerProcess, load: Load, process: subprocess.Popen[bytes]
) -> tuple[Usage, outputs.Outputs]:
    """What the processor has used and written when its outputs are whole; fast and wrong is not in the race.

    A batch may take longer than a topic must be quiet to look finished, so that only the outputs tell.
    """
    expected = _expected_total(job, broker, load)
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while True:
        outputs.wait_until_quiet(
            broker.bootstrap, "output", _least(job, load), RUN_TIMEOUT_S, lambda: process.poll() is None
        )
        after = usage_of(process.pid)
        written = outputs.read(broker.bootstrap, "output")
        if expected is None or written.total() == expected:
            return after, written
        if time.monotonic() > deadline:
            raise RuntimeError(f"{competitor} counted {written.total():,} of {expected:,}")


def _expected_total(job: Job, broker: BrokerProcess, load: Load) -> int | None:
    """The sum of all counts, where a job counts and forgets nothing."""
    if not job.counts or job.name == "windowed-count":
        return None
    return outputs.words_in(broker.bootstrap, "input") if job.name == "word-count" else load.total


def _latencies_ms(broker: BrokerProcess, samples: int, *, has_table: bool) -> list[float]:
    """Send records with a key of their own one after the other, and wait for each in the output."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "partitioner": "murmur2_random"})
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bench-latency",
                         "enable.auto.commit": False, "isolation.level": "read_committed",
                         "fetch.wait.max.ms": 10})  # fmt: skip
    ends = outputs.end_offsets(broker.bootstrap, "output")
    consumer.assign([TopicPartition("output", partition, end) for partition, end in enumerate(ends)])
    keys = [f"lat{number:08d}" for number in range(CALM_WARM_UP + samples)]
    if has_table:
        _fill_table(producer, consumer, keys)
    found = []
    for key in keys:
        sent = time.monotonic()
        producer.produce("input", key, key=key)
        producer.flush()
        found.append(_waited_ms(consumer, key.encode(), sent))
        time.sleep(max(0.0, 1 / PACE_PER_S - (time.monotonic() - sent)))
    consumer.close()
    return found[CALM_WARM_UP:]


def _fill_table(producer: Producer, consumer: Consumer, keys: list[str]) -> None:
    """Give every key a row, then knock with the keys whose rows came last until each partition has joined one."""
    knocks = {f"knock{number}" for number in range(KNOCKS)}
    for key in (*keys, *knocks):
        producer.produce("table", b"row", key=key)
    producer.flush()
    deadline = time.monotonic() + START_TIMEOUT_S
    while knocks:
        if time.monotonic() > deadline:
            raise TimeoutError(f"new rows were not joined within {START_TIMEOUT_S} s")
        for key in knocks:
            producer.produce("input", key, key=key)
        producer.flush()
        for record in consumer.consume(1000, timeout=0.5):
            knocks.discard((record.key() or b"").decode())


def _waited_ms(consumer: Consumer, key: bytes, sent: float) -> float:
    while time.monotonic() - sent < 30:
        record = consumer.poll(1)
        if record is not None and record.error() is None and (record.key() or b"").startswith(key):
            return (time.monotonic() - sent) * 1000
    raise TimeoutError("a record did not come out within 30 s")
