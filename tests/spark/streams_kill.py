"""Kill a pipeline's driver at random moments, and check that every output is there exactly once.

A feeder writes clicks, and orders with their payments. The application of `kill_worker` counts clicks in windows and
joins orders with payments, every change emitted, exactly once. At random moments its Python driver, Spark's Java
process, a Python worker or all of them are killed with -9; what is gone is started again. In the end, read with
`read_committed`, the counts of each key and window must be 1, 2, 3 and so on, and each order must have one receipt.
Start at `run`; `scripts/streams-kill --kills 20` is the long version.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.killable import REPOSITORY, KillableBroker
from tests.spark.kill_worker import CLICKS, COUNTS, ORDERS, PAYMENTS, RECEIPTS, WINDOW_MS

import moldau

__all__ = [
    "Application",
    "Auditor",
    "Feeder",
    "Report",
    "create_topics",
    "finish",
    "judge",
    "problems_of_counts",
    "problems_of_receipts",
    "run",
    "wait",
    "wait_for_a_moment",
]

INPUT_PARTITIONS, OUTPUT_PARTITIONS = 3, 2
KEYS = 8
PATIENCE_S = 180
RECEIPT_SHARE = 4
"""One click in so many comes with an order and its payment."""


@dataclass
class Report:
    """What happened, for a person to read."""

    kills: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    clicks: int = 0
    orders: int = 0
    counts: int = 0
    receipts: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        killed = ", ".join(f"{count} of {victim}" for victim, count in sorted(self.kills.items()))
        line = (
            f"{self.kills.total()} kills ({killed}), {self.starts} starts: {self.clicks} clicks gave {self.counts} "
            f"counts, {self.orders} orders gave {self.receipts} receipts"
        )
        return "\n".join([line, *(self.problems or ["every output is there exactly once"])])


class Feeder:
    """Writes without pause; idempotent, so that each record is in its topic once."""

    def __init__(self, bootstrap: str, per_second: int) -> None:
        self.clicks: Counter[tuple[str, int]] = Counter()
        """By key and window start."""
        self.orders = 0
        self.failures: list[str] = []
        self._pause_s = 1 / per_second
        self._stop = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2, "log_level": 0}
        )
        self._thread = threading.Thread(target=self._write, name="feeder")

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop.set()
        self._thread.join()
        if left := self._producer.flush(60):
            self.failures.append(f"{left} records are still not acknowledged")

    def _write(self) -> None:
        chance = random.Random(1)
        while not self._stop.wait(self._pause_s):
            now_ms = int(time.time() * 1000)
            key = f"key-{chance.randrange(KEYS)}"
            self.clicks[key, now_ms // WINDOW_MS * WINDOW_MS] += 1
            self._send(CLICKS, key, "click", now_ms)
            if chance.randrange(RECEIPT_SHARE) == 0:
                self._send(ORDERS, f"order-{self.orders}", "order", now_ms)
                self._send(PAYMENTS, f"order-{self.orders}", "payment", now_ms + chance.randrange(-900, 900))
                self.orders += 1
            self._producer.poll(0)

    def _send(self, topic: str, key: str, value: str, timestamp_ms: int) -> None:
        self._producer.produce(topic, value, key, timestamp=timestamp_ms, on_delivery=self._delivered)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(f"{message.topic()} {message.key()!r} failed: {error}")


class Auditor:
    """Reads the committed outputs as they come."""

    def __init__(self, bootstrap: str) -> None:
        self.counts: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self.receipts: Counter[str] = Counter()
        self.seen = 0
        self._stop = threading.Event()
        settings = {"bootstrap.servers": bootstrap, "group.id": "auditor", "isolation.level": "read_committed"}
        self._consumer = Consumer({**settings, "enable.auto.commit": False, "log_level": 0})
        topics = [(topic, number) for topic in (COUNTS, RECEIPTS) for number in range(OUTPUT_PARTITIONS)]
        self._consumer.assign([TopicPartition(topic, number, 0) for topic, number in topics])
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
                    self._take(message)

    def _take(self, message: Message) -> None:
        key, value = bytes(message.key() or b"").decode(), bytes(message.value() or b"").decode()
        if message.topic() == RECEIPTS:
            self.receipts[key] += 1
        else:
            # The count's record has the time of the click that caused it, so it tells its window.
            window = int(message.timestamp()[1]) // WINDOW_MS * WINDOW_MS
            self.counts[key, window].append(int(value))
        self.seen += 1


class Application:
    """The worker process, its Java process and their workers."""

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        state: str | None = None,
        module: str = "tests.spark.kill_worker",
    ) -> None:
        self._command = [sys.executable, "-m", module, bootstrap, state or f"file://{folder}/state"]
        self._environment = environment or {}
        self._output = folder / "application.out"
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start_if_gone(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None and self._process.returncode not in (-signal.SIGKILL, 0):
            raise RuntimeError(f"the application ended with {self._process.returncode}:\n{self.last_words}")
        path = os.pathsep.join([str(Path(moldau.__file__).parent.parent), str(REPOSITORY)])
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONPATH": path, **self._environment},
            )
        self.starts += 1

    def strike(self, victim: str) -> bool:
        """Kill -9 somebody; False where there is no such process just now."""
        assert self._process is not None
        driver = self._process.pid
        spark = [pid for pid in _children(driver) if "java" in _name(pid)]
        workers = [pid for java in spark for pid in _descendants(java)]
        victims = {"driver": [driver], "Java process": spark, "worker": workers[-1:], "everything": []}[victim]
        if victim == "everything":
            victims = [driver, *spark, *workers]
        if not victims:
            return False
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if driver in victims:
            self._process.wait()
        return True

    def terminate(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE_S)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.strike("everything")

    @property
    def last_words(self) -> str:
        return self._output.read_text(errors="replace")[-3000:]


VICTIMS = ("driver", "driver", "everything", "everything", "Java process", "worker")


def run(*, kills: int, seed: int, folder: Path, per_second: int = 200) -> Report:
    """Kill `kills` times and check what is left; `seed` decides whom and when."""
    broker = KillableBroker(folder, {})
    broker.start()
    application = Application(broker.bootstrap_servers, folder)
    try:
        create_topics(broker.bootstrap_servers)
        return _run(broker.bootstrap_servers, application, kills, random.Random(seed), per_second)
    finally:
        application.close()
        broker.close()


def _run(bootstrap: str, application: Application, kills: int, chance: random.Random, per_second: int) -> Report:
    report = Report()
    with Auditor(bootstrap) as auditor:
        with Feeder(bootstrap, per_second) as feeder:
            while report.kills.total() < kills:
                application.start_if_gone()
                wait_for_a_moment(auditor, application, chance)
                victim = chance.choice(VICTIMS)
                if application.strike(victim):
                    report.kills[victim] += 1
        application.start_if_gone()
        status = finish(application, feeder, auditor)
    judge(report, application, feeder, auditor, status)
    return report


def finish(application: Application, feeder: Feeder, auditor: Auditor) -> int:
    """Wait until everything that was fed has its output, and tell the application to end; its exit code."""
    clicks, orders = feeder.clicks.total(), feeder.orders
    wait(lambda: auditor.seen >= clicks + orders, application, f"{clicks} counts and {orders} receipts", auditor)
    return application.terminate()


def judge(report: Report, application: Application, feeder: Feeder, auditor: Auditor, status: int) -> None:
    """Compare what was fed with what came out."""
    clicks, orders = feeder.clicks.total(), feeder.orders
    report.starts = application.starts
    report.clicks, report.orders = clicks, orders
    report.counts, report.receipts = sum(map(len, auditor.counts.values())), auditor.receipts.total()
    report.problems = [
        *feeder.failures[:5],
        *problems_of_counts(feeder.clicks, auditor.counts),
        *problems_of_receipts(orders, auditor.receipts),
        *([] if status == 0 else [f"told to end, the application ended with {status}"]),
    ]


def problems_of_counts(clicks: Mapping[tuple[str, int], int], counts: Mapping[tuple[str, int], list[int]]) -> list[str]:
    """Where the counts of a key and window are not 1, 2, 3 to the number of its clicks: one line each."""
    problems = [f"{place}: counted without clicks" for place in counts.keys() - clicks.keys()]
    for place, expected in clicks.items():
        found = list(counts.get(place, ()))
        if found != list(range(1, expected + 1)):
            problems.append(f"{place}: {expected} clicks, counted {found[:3]}…{found[-3:]} in {len(found)} outputs")
    return problems[:10]


def problems_of_receipts(orders: int, receipts: Mapping[str, int]) -> list[str]:
    """Which orders have no receipt or more than one."""
    expected = {f"order-{number}" for number in range(orders)}
    lost = sorted(expected - receipts.keys())
    doubled = sorted(key for key, count in receipts.items() if count > 1)
    problems = [f"{len(lost)} orders without a receipt, such as {lost[0]}"] if lost else []
    problems += [f"{len(doubled)} orders with more than one receipt, such as {doubled[0]}"] if doubled else []
    return problems


def wait_for_a_moment(auditor: Auditor, application: Application, chance: random.Random) -> None:
    """Any moment of the start, or one soon after new outputs."""
    if chance.random() < 0.25:
        time.sleep(chance.uniform(0, 8))
        return
    seen = auditor.seen
    wait(lambda: auditor.seen > seen + chance.randrange(300), application, "new outputs", auditor)
    time.sleep(chance.uniform(0, 1.5))


def wait(reached: Callable[[], bool], application: Application, what: str, auditor: Auditor) -> None:
    """Until something is reached, starting the application anew where it is gone."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        application.start_if_gone()
        if time.monotonic() > deadline:
            raise RuntimeError(f"no {what} in {PATIENCE_S} s, {auditor.seen} seen:\n{application.last_words}")
        time.sleep(0.02)


def create_topics(bootstrap: str) -> None:
    """All that the application reads and writes."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wanted = [NewTopic(topic, INPUT_PARTITIONS, 1) for topic in (CLICKS, ORDERS, PAYMENTS)]
    wanted += [NewTopic(topic, OUTPUT_PARTITIONS, 1) for topic in (COUNTS, RECEIPTS)]
    for future in admin.create_topics(wanted).values():
        future.result(30)


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    own = [int(word) for word in text.split()]
    # Threads other than the first start children as well.
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            own += [int(word) for word in task.read_text().split()]
        except OSError:
            continue
    return list(dict.fromkeys(own))


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in _children(pid):
        found += [child, *_descendants(child)]
    return found


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/streams-kill", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--rate", type=int, default=200, help="clicks a second")
    parser.add_argument("--keep", action="store_true", help="leave the folder for a look")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="moldau-streams-kill-"))
    print(f"seed {options.seed}, in {folder}", flush=True)
    report = run(kills=options.kills, seed=options.seed, folder=folder, per_second=options.rate)
    print(report)
    if not options.keep and not report.problems:
        shutil.rmtree(folder)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
