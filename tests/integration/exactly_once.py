"""Kill workers and the broker at random, and check that every order has exactly one invoice.

A feeder writes orders, numbered for each key. Two workers turn them into invoices in transactions. At random moments a
worker or the broker is killed and started again, or a worker sleeps so long that the group goes on without it. At the
end the invoices, read with `read_committed`, must hold each order of each key once and in order.
Start at `run`; `scripts/exactly-once --kills 50` is the long version.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.exactly_once_worker import FENCED, INVOICES, ORDERS
from tests.integration.killable import KillableBroker, KillableProcess

__all__ = ["Report", "problems_of", "run"]

ORDER_PARTITIONS, INVOICE_PARTITIONS = 4, 3
KEYS = 12
PATIENCE_S = 60
SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "1500",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.initial.rebalance.delay.ms": "0",
    # Small segments, so that kills also meet rolls and producer snapshots.
    "log.segment.bytes": "200000",
}
CLASSIC = ("session.timeout.ms=1500", "heartbeat.interval.ms=300")
SLEEP_S = 2.5
"""Longer than a session: the sleeper's partitions go to the other worker, and it wakes as a zombie."""


@dataclass
class Report:
    """What happened, for a person to read."""

    worker_kills: int = 0
    broker_kills: int = 0
    sleeps: int = 0
    fenced: int = 0
    """Workers that ended by themselves because another of the same name had taken over."""
    orders: int = 0
    invoices: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return self.worker_kills + self.broker_kills

    def __str__(self) -> str:
        line = (
            f"{self.worker_kills} kills of a worker, {self.broker_kills} of the broker, {self.sleeps} long sleeps, "
            f"{self.fenced} fenced: {self.orders} orders, {self.invoices} invoices"
        )
        return "\n".join([line, *(self.problems or ["each order has one invoice, in order for every key"])])


class Feeder:
    """Writes orders without pause; idempotent, so that each is in the topic once although the broker dies."""

    def __init__(self, bootstrap: str) -> None:
        self.sent: dict[str, int] = dict.fromkeys((f"key-{number}" for number in range(KEYS)), 0)
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 300_000,
                "linger.ms": 2,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.max.ms": 100,
                "log_level": 0,
            },
            error_cb=lambda _error: None,
        )
        self._thread = threading.Thread(target=self._write, name="feeder")

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Send no more, and wait until all is acknowledged."""
        self._stop.set()
        self._thread.join()
        left = self._producer.flush(5 if failure[0] else 120)
        if left:
            self.failures.append(f"{left} orders are still not acknowledged")

    def _write(self) -> None:
        chance = random.Random(0)
        while not self._stop.wait(0.004):
            key = chance.choice(list(self.sent))
            self._producer.produce(ORDERS, str(self.sent[key]), key=key, on_delivery=self._delivered)
            self.sent[key] += 1
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(f"order {message.key()!r} {message.value()!r} failed: {error}")


class Auditor:
    """Reads the committed invoices as they come, in a thread of its own."""

    def __init__(self, bootstrap: str) -> None:
        self.numbers: defaultdict[str, list[int]] = defaultdict(list)
        """For each key, the orders invoiced, as they were read."""
        self.count = 0
        self._stop = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "auditor",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 100,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            },
            error_cb=lambda _error: None,
        )
        self._consumer.assign([TopicPartition(INVOICES, number, 0) for number in range(INVOICE_PARTITIONS)])
        self._thread = threading.Thread(target=self._read, name="auditor")

    def __enter__(self) -> Auditor:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(500, timeout=0.1):
                if message.error() is None:
                    key, value = bytes(message.key() or b"").decode(), bytes(message.value() or b"").decode()
                    self.numbers[key].append(int(value.split()[0]))
                    self.count += 1


def problems_of(sent: Mapping[str, int], invoiced: Mapping[str, Sequence[int]]) -> list[str]:
    """Where the invoices differ from one for each order, in order: one line per key."""
    problems = [f"{key}: invoices for a key without orders" for key in invoiced.keys() - sent.keys()]
    for key, count in sent.items():
        numbers = list(invoiced.get(key, ()))
        if numbers == list(range(count)):
            continue
        doubled = sorted({number for number in numbers if numbers.count(number) > 1})
        lost = sorted(set(range(count)) - set(numbers))
        what = f"doubled {doubled[:5]}" if doubled else f"lost {lost[:5]}" if lost else "out of order"
        problems.append(f"{key}: {len(numbers)} invoices for {count} orders, {what}")
    return problems


def run(*, kills: int, seed: int, folder: Path, protocol: str = "classic") -> Report:
    """Kill `kills` times and check what is left; `seed` decides whom and when."""
    broker = KillableBroker(folder, SETTINGS)
    workers = _workers(broker, folder, protocol)
    try:
        broker.start()
        _create_topics(broker.bootstrap_servers)
        return _run(broker, workers, kills, random.Random(seed))
    finally:
        for worker in workers:
            worker.kill()
        broker.close()


def _run(broker: KillableBroker, workers: Sequence[KillableProcess], kills: int, chance: random.Random) -> Report:
    report, bootstrap = Report(), broker.bootstrap_servers
    with Auditor(bootstrap) as live:
        with Feeder(bootstrap) as feeder:
            for worker in workers:
                worker.spawn()
            while report.kills < kills:
                _wait_for_invoices(live, live.count + chance.randrange(1, 40), workers, report)
                _strike(chance, broker, workers, report)
        report.orders = sum(feeder.sent.values())
        _wait_for_invoices(live, report.orders, workers, report)
        for worker in workers:
            worker.terminate()
        report.invoices = live.count
        report.problems += feeder.failures[:5] + problems_of(feeder.sent, live.numbers)
    report.problems += _second_opinion(bootstrap, report.orders, feeder.sent)
    return report


def _workers(broker: KillableBroker, folder: Path, protocol: str) -> list[KillableProcess]:
    """One that keeps its place in the group when it comes back, and one that joins anew each time."""
    common = ["group.protocol=consumer"] if protocol == "consumer" else list(CLASSIC)
    settings = {"static": [*common, "group.instance.id=static"], "dynamic": common}
    return [
        KillableProcess(
            "tests.integration.exactly_once_worker", [broker.bootstrap_servers, name, *pairs], folder / f"{name}.out"
        )
        for name, pairs in settings.items()
    ]


def _strike(chance: random.Random, broker: KillableBroker, workers: Sequence[KillableProcess], report: Report) -> None:
    """One misfortune, at a moment of its own."""
    time.sleep(chance.uniform(0.0, 0.15))
    worker = chance.choice(workers)
    what = chance.random()
    if what < 0.4:
        broker.kill()
        report.broker_kills += 1
        broker.spawn()
        broker.wait_until_it_answers()
    elif what < 0.9:
        worker.kill()
        report.worker_kills += 1
        worker.spawn()
    else:
        worker.freeze()
        time.sleep(SLEEP_S)
        worker.thaw()
        report.sleeps += 1


def _wait_for_invoices(live: Auditor, count: int, workers: Sequence[KillableProcess], report: Report) -> None:
    """Work must go on between two kills, else the second one meets nothing under way."""
    deadline = time.monotonic() + PATIENCE_S
    while live.count < count:
        _revive(workers, report)
        if time.monotonic() > deadline:
            words = "\n".join(worker.last_words for worker in workers)
            raise RuntimeError(f"{live.count} invoices, and no {count} within {PATIENCE_S} s:\n{words}")
        time.sleep(0.01)


def _revive(workers: Sequence[KillableProcess], report: Report) -> None:
    for worker in workers:
        status = worker.exit_code
        if status is not None:
            if status != FENCED:
                raise RuntimeError(f"a worker ended with {status}:\n{worker.last_words}")
            report.fenced += 1
            worker.spawn()


def _second_opinion(bootstrap: str, count: int, sent: Mapping[str, int]) -> list[str]:
    """Read everything again from the beginning: what a reader saw live must be what stays."""
    deadline = time.monotonic() + PATIENCE_S
    with Auditor(bootstrap) as again:
        while again.count < count and time.monotonic() < deadline:
            time.sleep(0.01)
    return [f"read again: {problem}" for problem in problems_of(sent, again.numbers)]


def _create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wanted = [NewTopic(ORDERS, ORDER_PARTITIONS, 1), NewTopic(INVOICES, INVOICE_PARTITIONS, 1)]
    for future in admin.create_topics(wanted).values():
        future.result(30)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/exactly-once", description="Kill workers and their broker.")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="repeats a run's choices")
    parser.add_argument("--protocol", choices=["classic", "consumer"], default="classic", help="of the workers' group")
    parser.add_argument("--keep", action="store_true", help="leave the folder for a look")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="moldau-exactly-once-"))
    report = run(kills=arguments.kills, seed=arguments.seed, folder=folder, protocol=arguments.protocol)
    print(f"seed {arguments.seed}: {report}")
    if arguments.keep:
        print(f"the folder of the broker and the workers is {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
