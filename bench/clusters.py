"""Three brokers beside three of Apache Kafka: replicated load, memory, start, and how long a killed leader is missed.

Each cluster runs alone, with the same time-outs, topics with three replicas and `min.insync.replicas=2`. Part of the
full benchmark and of `--only cluster`. Start at `measure_clusters`.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from bench import clients
from bench.brokers import BrokerError, BrokerProcess, Moldau, end, free_port
from bench.clients import ClientError
from bench.machine import settle
from bench.workloads import CPU_PER_GB, MB_PER_S, P50, P99, Metric, Numbers, Scale

__all__ = ["CLUSTER_WORKLOADS", "ClusterWorkload", "measure_clusters"]

COUNT = 3
CLUSTER_ID = "bW9sZGF1LWJlbmNoLTAwMQ"
SESSION_MS = 3_000
TIMES = {
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
}
REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
}
TIMEOUT_S = 120.0
MOST_BYTES = 300_000_000
"""What one run writes to each broker: more would measure the disk, which has everything three times."""


@dataclass(frozen=True)
class ClusterWorkload:
    name: str
    title: str
    metrics: tuple[Metric, ...]
    is_quick: bool = True


CLUSTER_WORKLOADS: tuple[ClusterWorkload, ...] = (
    ClusterWorkload("cluster-start", "3 brokers: start to first acknowledged record", (Metric("start_s", "s"),)),
    ClusterWorkload("cluster-produce-1k", "3 brokers: produce 1 KB, acks=all", (MB_PER_S, CPU_PER_GB)),
    ClusterWorkload("cluster-latency-1k", "3 brokers: end to end at 1,000/s, acks=all", (P50, P99)),
    ClusterWorkload(
        "cluster-memory",
        "3 brokers: memory",
        (Metric("idle_mb", "MB idle"), Metric("loaded_mb", "MB loaded")),
    ),
    ClusterWorkload(
        "cluster-kill",
        f"3 brokers: a leader is killed (session {SESSION_MS / 1000:g} s)",
        (Metric("missed_s", "s median"), Metric("worst_s", "s worst"), Metric("beyond_s", "s beyond the session")),
    ),
    ClusterWorkload(
        "cluster-partitions",
        "3 brokers: 1,000 partitions",
        (
            Metric("creation_s", "s to create"),
            Metric("resident_mb", "MB"),
            Metric("idle_cpu", "CPU s/min idle"),
            Metric("failover_s", "s to fail over"),
        ),
        is_quick=False,
    ),
)


class Cluster:
    """Three nodes of one kind, each a broker and a controller."""

    def __init__(self, kind: type[BrokerProcess], folder: Path) -> None:
        self.name = kind.name
        self.folder = folder
        self.nodes = [kind(folder / str(number)) for number in range(1, COUNT + 1)]
        controllers = [free_port() for _ in self.nodes]
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
        for number, (node, port) in enumerate(zip(self.nodes, controllers, strict=True), 1):
            node.settings = {
                "node.id": str(number),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{port}",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                **TIMES,
                **REPLICATED,
            }
            node.prepare()
            if isinstance(node, Moldau):
                self._format(node)

    @staticmethod
    def _format(node: Moldau) -> None:
        from moldau.cli.storage.command import main as kafka_storage

        with contextlib.redirect_stdout(None):
            kafka_storage(["format", "-t", CLUSTER_ID, "-c", str(node.directory / "server.properties")])

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes)

    def start(self) -> float:
        """Start all nodes; return the seconds to the first record that all replicas have."""
        began = time.monotonic()
        for node in self.nodes:
            self.spawn(node)
        producer = Producer(_client(self.bootstrap) | {"message.timeout.ms": int(TIMEOUT_S * 1000), "acks": "all"})
        acknowledged: list[float] = []
        producer.produce(
            "bench-ready", b"x", on_delivery=lambda error, _: error or acknowledged.append(time.monotonic())
        )
        producer.flush(TIMEOUT_S)
        if not acknowledged:
            raise BrokerError(f"{self.name}: three brokers acknowledged nothing within {TIMEOUT_S:g} s")
        return acknowledged[0] - began

    def spawn(self, node: BrokerProcess) -> None:
        with (node.directory / "output").open("ab") as output:
            node.process = subprocess.Popen(node._command(), stdout=output, stderr=output, cwd=node.directory)

    def stop(self) -> None:
        for node in self.nodes:
            if node.process is not None:
                end(node.process)
                node.process = None

    def cpu_s(self) -> float:
        return sum(node.usage().cpu_s for node in self.nodes)

    def resident_mb(self) -> float:
        return sum(node.usage().resident_bytes for node in self.nodes) / 1e6

    @contextmanager
    def topic(self, name: str, partitions: int = 1) -> Iterator[str]:
        options = {"brokers": self.bootstrap, "topic": name, "partitions": partitions, "replicas": COUNT}
        clients.run("rdkafka_load", "create", **options, config="min.insync.replicas=2")
        self.wait_until_in_sync(name, partitions)
        try:
            yield name
        finally:
            with contextlib.suppress(ClientError):
                clients.run("rdkafka_load", "delete", brokers=self.bootstrap, topic=name)

    def wait_until_in_sync(self, name: str, partitions: int) -> float:
        """Until every partition has a leader and all its replicas; returns the seconds that took."""
        admin, began = AdminClient(_client(self.bootstrap)), time.monotonic()
        while time.monotonic() - began < TIMEOUT_S:
            with contextlib.suppress(KafkaException):
                found = admin.list_topics(name, timeout=5).topics[name].partitions.values()
                if len(found) == partitions and all(len(one.isrs) == COUNT and one.leader > 0 for one in found):
                    return time.monotonic() - began
            time.sleep(0.02)
        raise BrokerError(f"{self.name}: {name} is not in sync after {TIMEOUT_S:g} s")

    def leaders(self, name: str) -> dict[int, int]:
        admin = AdminClient(_client(self.bootstrap))
        with contextlib.suppress(KafkaException):
            partitions = admin.list_topics(name, timeout=5).topics[name].partitions
            return {number: one.leader for number, one in partitions.items()}
        return {}


def _client(bootstrap: str) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "reconnect.backoff.ms": 5,
        "reconnect.backoff.max.ms": 20,
        "retry.backoff.ms": 5,
        "retry.backoff.max.ms": 20,
        "topic.metadata.refresh.fast.interval.ms": 20,
        "error_cb": lambda _error: None,
    }


class Pacer:
    """Sends a record every few milliseconds to each partition, and knows when which was acknowledged."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._topic, self._partitions = topic, partitions
        self.acknowledged: list[list[float]] = [[] for _ in range(partitions)]
        self._stop = threading.Event()
        self._producer = Producer(_client(bootstrap) | {"acks": "all", "linger.ms": 0, "enable.idempotence": True})
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self) -> None:
        while not self._stop.wait(0.01):
            for number in range(self._partitions):
                done = self.acknowledged[number]
                with contextlib.suppress(BufferError):
                    self._producer.produce(
                        self._topic,
                        b"x" * 100,
                        partition=number,
                        on_delivery=lambda error, _, done=done: error or done.append(time.monotonic()),
                    )
            self._producer.poll(0)

    def wait_after(self, moment: float) -> None:
        """Until every partition acknowledged something that was sent after a moment."""
        deadline = time.monotonic() + TIMEOUT_S
        while not all(one and one[-1] > moment for one in self.acknowledged):
            if time.monotonic() > deadline:
                raise BrokerError("a partition is not written to any more")
            time.sleep(0.01)

    def longest_gap(self, since: float) -> float:
        """The longest time in which a partition acknowledged nothing."""
        gaps = []
        for times in self.acknowledged:
            seen = [since, *(one for one in times if one > since)]
            gaps.append(max(later - earlier for earlier, later in itertools.pairwise(seen)))
        return max(gaps)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(30)


# --- what is measured -------------------------------------------------------------------------------


def _produce(cluster: Cluster, scale: Scale) -> Numbers:
    size = min(MOST_BYTES, scale.throughput_bytes)
    with cluster.topic(f"bench-{time.monotonic_ns()}", 6) as topic:
        options = {"brokers": cluster.bootstrap, "topic": topic, "partitions": 6, "size": 1000, "acks": "all"}
        before = cluster.cpu_s()
        result = clients.run("rdkafka_load", "produce", count=size // 1000, codec="none", **options)
        cpu_s = cluster.cpu_s() - before
    return {"mb_per_s": result["mb_per_s"], "cpu_s_per_gb": cpu_s / (size / 1e9)}


def _latency(cluster: Cluster, scale: Scale) -> Numbers:
    with cluster.topic(f"bench-{time.monotonic_ns()}") as topic:
        count = 1000 * scale.latency_seconds
        options = {"brokers": cluster.bootstrap, "topic": topic, "rate": 1000, "count": count, "size": 1000}
        return clients.run("rdkafka_load", "latency", **options)


def _kills(cluster: Cluster, scale: Scale) -> Numbers:
    """Leaders are killed in turn; the active controller is among them each time it leads."""
    times = 10 if scale.rounds > 1 else 3
    missed: list[float] = []
    with cluster.topic("bench-kills", 3) as topic:
        pacer = Pacer(cluster.bootstrap, topic, 3)
        try:
            for number in range(times):
                pacer.wait_after(time.monotonic() + 0.5)
                victim = cluster.nodes[cluster.leaders(topic)[number % 3] - 1]
                killed = time.monotonic()
                victim.kill()
                time.sleep(0.1)
                pacer.wait_after(killed + SESSION_MS / 1000)
                missed.append(pacer.longest_gap(killed))
                cluster.spawn(victim)
                cluster.wait_until_in_sync(topic, 3)
        finally:
            pacer.stop()
    middle = median(missed)
    return {"missed_s": middle, "worst_s": max(missed), "beyond_s": max(0.0, middle - SESSION_MS / 1000)}


def _partitions(cluster: Cluster, scale: Scale) -> Numbers:
    count = 100 if scale.rounds == 1 else 1000
    began = time.monotonic()
    with cluster.topic("bench-many", count) as topic:
        creation_s = time.monotonic() - began
        time.sleep(3)
        cpu_s = cluster.cpu_s()
        time.sleep(10)
        idle_cpu = (cluster.cpu_s() - cpu_s) * 6
        resident_mb = cluster.resident_mb()
        victim = cluster.nodes[0]
        killed = time.monotonic()
        victim.kill()
        while any(leader in (1, -1) for leader in cluster.leaders(topic).values()):
            if time.monotonic() - killed > TIMEOUT_S:
                raise BrokerError("leaders did not move")
            time.sleep(0.05)
        failover_s = time.monotonic() - killed
        cluster.spawn(victim)
        cluster.wait_until_in_sync(topic, count)
    return {"creation_s": creation_s, "resident_mb": resident_mb, "idle_cpu": idle_cpu, "failover_s": failover_s}


def measure_clusters(  # noqa: PLR0917
    wanted: Sequence[ClusterWorkload],
    kinds: Sequence[type[BrokerProcess]],
    scale: Scale,
    folder: Path,
    results: dict[str, dict[str, list[Numbers]]],
    say: Callable[[str], None],
) -> None:
    """Each cluster alone, one after the other, once a round; the order flips."""
    for workload in wanted:
        results[workload.name] = {kind.name: [] for kind in kinds}
    for number in range(min(3, scale.rounds)):
        for kind in kinds if number % 2 == 0 else reversed(kinds):
            settle(scale.settle_s)
            with tempfile.TemporaryDirectory(prefix=f"{kind.name}-3-", dir=folder) as name:
                try:
                    _measure_one(wanted, Cluster(kind, Path(name)), scale, results, say)
                except (BrokerError, ClientError) as error:
                    say(f"  three brokers of {kind.name} failed: {error}")


def _measure_one(
    wanted: Sequence[ClusterWorkload],
    cluster: Cluster,
    scale: Scale,
    results: dict[str, dict[str, list[Numbers]]],
    say: Callable[[str], None],
) -> None:
    names = {one.name: one for one in wanted}

    def note(name: str, numbers: Numbers) -> None:
        if name in names:
            results[name][cluster.name].append(numbers)
            shown = ", ".join(f"{numbers[one.key]:.4g} {one.unit}" for one in names[name].metrics)
            say(f"  {names[name].title}: {cluster.name} {shown}")

    try:
        start_s = cluster.start()
        idle_mb = cluster.resident_mb()
        note("cluster-start", {"start_s": start_s})
        if names.keys() & {"cluster-produce-1k", "cluster-latency-1k", "cluster-memory"}:
            _produce(cluster, scale)  # a JVM wants to be warm
            note("cluster-produce-1k", _produce(cluster, scale))
            note("cluster-latency-1k", _latency(cluster, scale))
            note("cluster-memory", {"idle_mb": idle_mb, "loaded_mb": cluster.resident_mb()})
        for name, measure in (("cluster-kill", _kills), ("cluster-partitions", _partitions)):
            if name in names:
                note(name, measure(cluster, scale))
    finally:
        cluster.stop()
