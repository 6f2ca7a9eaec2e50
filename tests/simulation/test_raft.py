"""Clusters of controllers under seeded crashes, cuts, full disks and changes of voters: nothing committed is lost.

`MOLDAU_SIMULATION_SEEDS` says how many clusters; a failing seed is printed with its last events, and gives the same run
when `RaftCluster(seed).run()` is called again.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from tests.simulation.raft_mutants import MUTANTS, Mutant

from moldau.raft.replica import QuorumBrokenError
from moldau.testing.simulation.kernel import InvariantError
from moldau.testing.simulation.raft_cluster import RaftCluster

SEEDS = int(os.environ.get("MOLDAU_SIMULATION_SEEDS", "1000"))
CHUNKS = 4
MUTANT_SEEDS = 400


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_committed_is_lost_and_calm_brings_a_leader(chunk: int) -> None:
    for seed in range(chunk, SEEDS, CHUNKS):
        cluster = RaftCluster(seed)
        try:
            cluster.run()
        except (AssertionError, QuorumBrokenError) as error:
            raise AssertionError(f"seed {seed}: {error}\n{cluster.kernel.story()}\n{cluster.describe()}") from error


def test_the_simulation_reaches_what_it_is_about() -> None:
    reached: Counter[str] = Counter()
    for seed in range(60):
        cluster = RaftCluster(seed)
        cluster.run()
        reached.update(cluster.kernel.counters)
    least = {
        "elections": 200,
        "pre-votes": 200,
        "leaders that stepped down": 20,
        "records acknowledged": 1000,
        "crashes": 300,
        "orderly ends": 50,
        "network cuts": 200,
        "messages lost": 500,
        "messages doubled": 100,
        "truncations": 20,
        "snapshots": 50,
        "snapshots installed": 20,
        "voters added": 8,
        "voters removed": 8,
        "upgrades": 4,
        "failed appends": 20,
        "cores started anew": 10,
    }
    assert {what: reached[what] for what, count in least.items() if reached[what] < count} == {}


def test_a_seed_gives_the_same_run_again() -> None:
    first, second = RaftCluster(12), RaftCluster(12)
    first.run()
    second.run()
    assert first.kernel.story(400) == second.kernel.story(400)
    assert first.kernel.counters == second.kernel.counters
    assert first.rules.committed == second.rules.committed


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_quorum_is_caught_by_the_rule_that_forbids_it(mutant: Mutant) -> None:
    seed = next(seed for seed in range(MUTANT_SEEDS) if _is_caught(mutant, seed))
    RaftCluster(seed).run()


def _is_caught(mutant: Mutant, seed: int) -> bool:
    with mutant.broken():
        cluster = RaftCluster(seed, node_factory=mutant.node)
        try:
            cluster.run()
        except InvariantError as error:
            return error.invariant in mutant.rules
        except (QuorumBrokenError, AssertionError):
            return False
    return False
