"""Random writers and readers of one broker, killed at random with it, and their notes judged by the history checker.

Two writers of transactions (a third of them aborted), a plain one, and a reader of each kind write down what they did
and saw. Whoever is killed comes back. When all have stopped, everything is read once more, and the notes of all lives
together must be a history that a correct broker can have. Start at `run`; `scripts/history --kills 100` is the long
version.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.history_client import FENCED, PARTITIONS, TOPICS
from tests.integration.killable import KillableBroker, KillableProcess

from moldau.testing.history import History, Outcome, problems

__all__ = ["Report", "run"]

WRITERS = {"writer-1": "transactions", "writer-2": "transactions", "plain": "plain"}
READERS = {"reader": "read_uncommitted", "committed-reader": "read_committed"}
PATIENCE_S = 60
SETTINGS = {
    # Small segments and indexes, so that kills also meet rolls, index writes and producer snapshots.
    "log.segment.bytes": "100000",
    "log.index.interval.bytes": "1024",
}


@dataclass
class Report:
    """What happened, for a person to read."""

    kills: Counter[str] = field(default_factory=Counter)
    fenced: int = 0
    writes: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    reads: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        killed = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        ended = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        line = f"kills: {killed}; {self.writes} writes, transactions: {ended}; {self.reads} reads"
        verdict = [f"{len(self.problems)} problems:", *self.problems[:20]] if self.problems else ["nothing is wrong"]
        return "\n".join([line, *verdict])


def run(*, kills: int, seed: int, folder: Path) -> Report:
    """Kill `kills` times, then judge; `seed` decides whom and when."""
    broker = KillableBroker(folder, SETTINGS)
    clients = {
        name: KillableProcess(
            "tests.integration.history_client",
            [role, name, broker.bootstrap_servers, str(folder / f"{name}.notes")],
            folder / f"{name}.out",
        )
        for name, role in (WRITERS | READERS).items()
    }
    report, history = Report(), History()
    try:
        broker.start()
        _create_topics(broker.bootstrap_servers)
        for client in clients.values():
            client.spawn()
        _trouble(broker, clients, kills, random.Random(seed), folder, report)
        for client in clients.values():
            client.terminate()
        for name in clients:
            history.replay((folder / f"{name}.notes").read_text().splitlines())
        for isolation in READERS.values():
            _read_to_the_end(broker.bootstrap_servers, isolation, history)
    finally:
        for client in clients.values():
            client.kill()
        broker.close()
    return _judged(history, report)


def _trouble(  # noqa: PLR0917
    broker: KillableBroker,
    clients: Mapping[str, KillableProcess],
    kills: int,
    chance: random.Random,
    folder: Path,
    report: Report,
) -> None:
    for _ in range(kills):
        _wait_for_notes(folder, chance.randrange(1, 4000), clients, report)
        time.sleep(chance.uniform(0.0, 0.1))
        name = chance.choice(["broker", "broker", *clients])
        report.kills[name] += 1
        victim = broker if name == "broker" else clients[name]
        victim.kill()
        victim.spawn()
        if name == "broker":
            broker.wait_until_it_answers()
    _wait_for_notes(folder, 4000, clients, report)


def _wait_for_notes(folder: Path, size: int, clients: Mapping[str, KillableProcess], report: Report) -> None:
    """Every writer must have written on by `size` bytes of notes, else the next kill meets an idle one."""
    notes = {name: folder / f"{name}.notes" for name in WRITERS}
    wanted = {name: _size(path) + size for name, path in notes.items()}
    deadline = time.monotonic() + PATIENCE_S
    while late := [name for name, path in notes.items() if _size(path) < wanted[name]]:
        for client in clients.values():
            if client.exit_code is not None:
                if client.exit_code != FENCED:
                    raise RuntimeError(f"a client ended with {client.exit_code}:\n{client.last_words}")
                report.fenced += 1
                client.spawn()
        if time.monotonic() > deadline:
            raise RuntimeError(f"{late} did not go on within {PATIENCE_S} s:\n{clients[late[0]].last_words}")
        time.sleep(0.01)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _read_to_the_end(bootstrap: str, isolation: str, history: History) -> None:
    """The last reader of its kind, which a stuck transaction would keep from the end of the log."""
    is_committed = isolation == "read_committed"
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "last-reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    places = {(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)}
    consumer.assign([TopicPartition(*place, 0) for place in places])
    reader = f"last-{isolation}"
    try:
        deadline = time.monotonic() + PATIENCE_S
        while places and time.monotonic() < deadline:
            for message in consumer.consume(1000, timeout=0.2):
                topic, partition, error = str(message.topic()), message.partition() or 0, message.error()
                if error is None:
                    options = {"offset": message.offset() or 0, "value": bytes(message.value() or b"").decode()}
                    history.read(reader, topic, partition, is_committed=is_committed, **options)
                elif error.code() == KafkaError._PARTITION_EOF:
                    history.finished(reader, topic, partition, is_committed=is_committed)
                    places.discard((topic, partition))
    finally:
        consumer.close()


def _judged(history: History, report: Report) -> Report:
    report.writes = len(history.writes)
    report.outcomes = Counter(history.outcomes.values())
    report.reads = sum(len(reading.records) for reading in history.readings.values())
    complete = sum(reading.is_complete for reading in history.readings.values())
    if complete < len(READERS) * len(TOPICS) * PARTITIONS:
        report.problems.append("a last reader did not come to the end of its partitions")
    report.problems += problems(history)
    return report


def _create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in TOPICS]).values():
        future.result(30)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/history", description="Kill clients and their broker; judge notes.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="repeats a run's choices")
    parser.add_argument("--keep", action="store_true", help="leave the notes and the broker's folder for a look")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="moldau-history-"))
    report = run(kills=arguments.kills, seed=arguments.seed, folder=folder)
    print(f"seed {arguments.seed}: {report}")
    if arguments.keep:
        print(f"the notes and the broker's folder are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
