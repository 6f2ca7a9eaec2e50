"""Many seeds of a simulation on all cores: the slow tier of the tests beside this file. Start at `main`.

scripts/simulate                        a hundred thousand whole clusters
scripts/simulate raft --seeds 5000      controllers alone; `replicas` is a partition alone
scripts/simulate --replay 431           one seed again, with its last events
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from typing import Any

from moldau.testing.simulation.raft_cluster import RaftCluster
from moldau.testing.simulation.replica_cluster import ReplicaCluster
from moldau.testing.simulation.whole_cluster import WholeCluster

CLUSTERS: dict[str, Any] = {"whole": WholeCluster, "raft": RaftCluster, "replicas": ReplicaCluster}
PROGRESS_S = 10.0


def run_seed(task: tuple[str, int]) -> tuple[int, str | None, dict[str, int]]:
    """The seed, what went wrong, and what happened."""
    logging.disable(logging.CRITICAL)
    name, seed = task
    cluster = CLUSTERS[name](seed)
    problem = None
    try:
        cluster.run()
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return seed, problem, cluster.kernel.counters


def replay(name: str, seed: int, lines: int) -> int:
    logging.disable(logging.CRITICAL)
    cluster = CLUSTERS[name](seed)
    try:
        cluster.run()
    except Exception as error:
        print(cluster.kernel.story(lines), cluster.describe(), f"seed {seed}: {error}", sep="\n")
        return 1
    print(f"seed {seed} breaks no rule")
    return 0


def run_many(name: str, seeds: range, jobs: int) -> int:
    reached: Counter[str] = Counter()
    failed: list[int] = []
    began = shown = time.monotonic()
    with multiprocessing.Pool(jobs) as pool:
        for done, (seed, problem, counters) in enumerate(
            pool.imap_unordered(run_seed, ((name, seed) for seed in seeds), chunksize=20), 1
        ):
            reached.update(counters)
            if problem is not None:
                failed.append(seed)
                print(f"seed {seed}: {problem.splitlines()[0]}", flush=True)
            if time.monotonic() - shown > PROGRESS_S:
                shown = time.monotonic()
                left_s = (shown - began) / done * (len(seeds) - done)
                print(f"{done} of {len(seeds)} seeds, {left_s / 60:.0f} minutes left", flush=True)
    print(f"{len(seeds)} seeds from {seeds.start} on in {time.monotonic() - began:.0f} s; what happened in them:")
    for what, count in sorted(reached.items()):
        print(f"  {count:>12,} {what}")
    for seed in failed[:5]:
        print(f"to see it again: scripts/simulate {name} --replay {seed}")
    print(f"{len(failed)} seeds broke a rule" if failed else "no rule was broken")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/simulate", description="Simulate clusters under misfortune.")
    parser.add_argument("what", nargs="?", choices=CLUSTERS, default="whole")
    parser.add_argument("--seeds", type=int, default=100_000, help="how many (default 100000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run this one, and tell its last events if it fails")
    parser.add_argument("--lines", type=int, default=200, help="how many events a replay tells")
    arguments = parser.parse_args()
    if arguments.replay is not None:
        return replay(arguments.what, arguments.replay, arguments.lines)
    return run_many(arguments.what, range(arguments.first, arguments.first + arguments.seeds), arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
