"""Replicas under seeded crashes, cuts, pauses, lost power and orderly stops: nothing acknowledged is lost.

`MOLDAU_SIMULATION_SEEDS` says how many clusters; a failing seed is printed with its last events, and gives the same run
when `ReplicaCluster(seed).run()` is called again.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from tests.simulation.replica_mutants import MUTANTS, Mutant

from moldau.testing.simulation.kernel import InvariantError
from moldau.testing.simulation.replica_cluster import ReplicaCluster

SEEDS = int(os.environ.get("MOLDAU_SIMULATION_SEEDS", "300"))
CHUNKS = 2
MUTANT_SEEDS = 400


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_acknowledged_is_lost_and_calm_brings_all_replicas_back(chunk: int) -> None:
    for seed in range(chunk, SEEDS, CHUNKS):
        cluster = ReplicaCluster(seed)
        try:
            cluster.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n{cluster.kernel.story()}\n{cluster.describe()}") from error


def test_the_simulation_reaches_what_it_is_about() -> None:
    reached: Counter[str] = Counter()
    for seed in range(40):
        cluster = ReplicaCluster(seed)
        cluster.run()
        reached.update(cluster.kernel.counters)
    least = {
        "elections": 100,
        "crashes": 100,
        "brokers fenced": 100,
        "orderly stops": 40,
        "pauses": 40,
        "power losses": 5,
        "network cuts": 50,
        "messages lost": 500,
        "messages doubled": 200,
        "divergent truncations": 40,
        "ISRs expanded": 80,
        "ISRs shrunk": 5,
        "records acknowledged": 2000,
        "eligible leaders elected": 20,
        "last leaders elected": 5,
    }
    assert {what: reached[what] for what, count in least.items() if reached[what] < count} == {}


def test_a_seed_gives_the_same_run_again() -> None:
    first, second = ReplicaCluster(12), ReplicaCluster(12)
    first.run()
    second.run()
    assert first.kernel.story(400) == second.kernel.story(400)
    assert first.kernel.counters == second.kernel.counters
    assert first.acknowledged == second.acknowledged


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_broken_replication_is_caught_by_the_rule_that_forbids_it(mutant: Mutant) -> None:
    seeds = range(mutant.first_seed, mutant.first_seed + MUTANT_SEEDS)
    seed = next(seed for seed in seeds if _is_caught(mutant, seed))
    ReplicaCluster(seed).run()


def _is_caught(mutant: Mutant, seed: int) -> bool:
    with mutant.broken():
        try:
            ReplicaCluster(seed, node=mutant.node).run()
        except InvariantError as error:
            return error.invariant in mutant.rules
        except AssertionError:
            return False
    return False
