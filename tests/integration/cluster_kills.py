"""Kill brokers of a cluster of three under load, again and again, and check that nothing acknowledged is lost.

The load and the promises are those of `kill9`; topics have three replicas and `min.insync.replicas=2`. Victims are
chosen at random, or are the leader of a partition or the active controller; some are stopped in order, and some are
frozen for a while instead. Start at `run`; `scripts/cluster-kills --kills 30` is the long version.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration.cluster import Cluster
from tests.integration.kill9 import PARTITIONS, Writer, broken_promises, wait_until_acknowledged

__all__ = ["Report", "run"]

FREEZE_S = 3.0


@dataclass
class Report:
    ends: list[str] = field(default_factory=list)
    acknowledged: int = 0
    longest_silence_s: float = 0.0
    """The longest time until both producers were answered again after an end."""
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        line = (
            f"{len(self.ends)} ends ({', '.join(self.ends)}), {self.acknowledged} records acknowledged, "
            f"writes went on after {self.longest_silence_s:.2f} s at most"
        )
        return "\n".join([line, *(self.problems or ["every acknowledged record is there, in order, once"])])


def run(*, kills: int, seed: int, folder: Path) -> Report:
    chance, report = random.Random(seed), Report()
    with Cluster(folder, settings={"min.insync.replicas": "2", "log.segment.bytes": "400000"}) as cluster:
        for topic in ("idempotent", "plain"):
            cluster.create_topic(topic, PARTITIONS, 3)
        writers = [
            Writer(cluster.bootstrap_servers, "idempotent", is_idempotent=True),
            Writer(cluster.bootstrap_servers, "plain", is_idempotent=False),
        ]
        for writer in writers:
            writer.start()
        try:
            for _ in range(kills):
                _end_one(cluster, writers, chance, report)
        except BaseException:
            for writer in writers:
                writer.stop()
            raise
        for writer in writers:
            writer.finish()
        for writer in writers:
            report.acknowledged += sum(map(len, writer.acknowledged))
            report.problems += writer.failures[:5] + broken_promises(cluster.bootstrap_servers, writer)
    return report


def _end_one(cluster: Cluster, writers: list[Writer], chance: random.Random, report: Report) -> None:
    """End one broker under load, see writes go on without it, bring it back and wait until all are in sync."""
    wait_until_acknowledged(writers, more=chance.randrange(1, 300))
    leaders = cluster.leaders("idempotent")
    victim = leaders.get(0, 1) if chance.random() < 0.5 else chance.choice(list(cluster.nodes))
    how = chance.choice(["kill", "kill", "freeze", "stop"])
    began = time.monotonic()
    if how == "kill":
        cluster.kill(victim)
    elif how == "freeze":
        cluster.process(victim).freeze()
    else:
        cluster.terminate(victim)
    wait_until_acknowledged(writers, more=50)
    report.longest_silence_s = max(report.longest_silence_s, time.monotonic() - began)
    report.ends.append(f"{how} {victim}")
    if how == "freeze":
        time.sleep(max(0.0, FREEZE_S - (time.monotonic() - began)))
        cluster.process(victim).thaw()
    else:
        cluster.spawn(victim)
    for topic in ("idempotent", "plain"):
        cluster.wait_until_in_sync(topic)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/cluster-kills", description="Kill brokers of a cluster under load.")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="repeats a run's choices")
    parser.add_argument("--keep", action="store_true", help="leave the folder for a look")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="moldau-cluster-"))
    report = run(kills=arguments.kills, seed=arguments.seed, folder=folder)
    print(f"seed {arguments.seed}: {report}")
    if arguments.keep:
        print(f"the cluster's folder is {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
