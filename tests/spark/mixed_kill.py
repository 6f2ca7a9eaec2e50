"""Kill the driver of a pipeline that is partly native and partly Python, and check that its results are exactly right.

With caching a batch emits the last count of each key only, so counts must rise and end with the number of clicks; what
is written by sinks without state must be there once, be it by Spark itself or by Python. Start at `run`.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import Message
from tests.integration.killable import KillableBroker
from tests.spark.kill_worker import RECEIPTS
from tests.spark.streams_kill import VICTIMS, Application, Auditor, Feeder, create_topics, wait, wait_for_a_moment

__all__ = ["problems_of_cached_counts", "problems_of_copies", "run"]


class MixedAuditor(Auditor):
    """Reads the committed outputs as they come: counts by key, copies by key and value."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.counts_of: defaultdict[str, list[int]] = defaultdict(list)
        self.copies: Counter[tuple[str, str]] = Counter()

    def _take(self, message: Message) -> None:
        key, value = bytes(message.key() or b"").decode(), bytes(message.value() or b"").decode()
        if message.topic() == RECEIPTS:
            self.copies[key, value] += 1
        else:
            self.counts_of[key].append(int(value))
        self.seen += 1

    @property
    def counted(self) -> int:
        return sum(counts[-1] for counts in list(self.counts_of.values()))


def run(*, kills: int, seed: int, folder: Path, per_second: int = 100) -> list[str]:
    """Kill `kills` times; returns what is wrong in the end."""
    chance = random.Random(seed)
    broker = KillableBroker(folder, {})
    broker.start()
    application = Application(broker.bootstrap_servers, folder, module="tests.spark.mixed_kill_worker")
    try:
        create_topics(broker.bootstrap_servers)
        with MixedAuditor(broker.bootstrap_servers) as auditor:
            with Feeder(broker.bootstrap_servers, per_second) as feeder:
                killed = 0
                while killed < kills:
                    application.start_if_gone()
                    wait_for_a_moment(auditor, application, chance)
                    killed += application.strike(chance.choice(VICTIMS))
            application.start_if_gone()
            clicks, copies = feeder.clicks.total(), 2 * feeder.orders
            wait(
                lambda: auditor.counted >= clicks and auditor.copies.total() >= copies,
                application,
                f"{clicks} clicks and {copies} copies",
                auditor,
            )
            status = application.terminate()
        by_key: Counter[str] = Counter()
        for (key, _), count in feeder.clicks.items():
            by_key[key] += count
        return [
            *feeder.failures[:5],
            *problems_of_cached_counts(by_key, auditor.counts_of),
            *problems_of_copies(feeder.orders, auditor.copies),
            *([] if status == 0 else [f"told to end, the application ended with {status}"]),
        ]
    finally:
        application.close()
        broker.close()


def problems_of_cached_counts(clicks: Mapping[str, int], counts: Mapping[str, Sequence[int]]) -> list[str]:
    """Where the counts of a key do not rise to the number of its clicks."""
    problems = []
    for key in sorted({*clicks, *counts}):
        found = list(counts.get(key, ()))
        if found != sorted(set(found)) or found[-1:] != [clicks.get(key, 0)]:
            problems.append(f"{key}: {clicks.get(key, 0)} clicks, counted {found[:3]}…{found[-3:]}")
    return problems


def problems_of_copies(orders: int, copies: Mapping[tuple[str, str], int]) -> list[str]:
    """Which orders and payments were not copied exactly once."""
    expected = {(f"order-{number}", text) for number in range(orders) for text in ("ORDER", "payment")}
    wrong = sorted(place for place in {*expected, *copies} if copies.get(place, 0) != (place in expected))
    return [f"{place} is there {copies.get(place, 0)} times" for place in wrong[:10]]
