"""Whole clusters under seeded kills, cuts, pauses, full disks and lost power: nothing told to anyone is lost.

`MOLDAU_SIMULATION_SEEDS` says how many clusters, `scripts/simulate` runs many; a failing seed is printed with its last
events, and gives the same run when `WholeCluster(seed).run()` is called again.
"""

from __future__ import annotations

import logging
import os
from collections import Counter

import pytest
from tests.simulation.whole_mutants import MUTANTS, Mutant

from moldau.raft.replica import QuorumBrokenError
from moldau.testing.simulation.kernel import InvariantError
from moldau.testing.simulation.whole_cluster import WholeCluster

SEEDS = int(os.environ.get("MOLDAU_SIMULATION_SEEDS", "400"))
CHUNKS = 4
MUTANT_SEEDS = 100


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # thousands of full disks


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_that_was_told_is_lost_and_calm_brings_everything_back(chunk: int) -> None:
    for seed in range(chunk, SEEDS, CHUNKS):
        cluster = WholeCluster(seed)
        try:
            cluster.run()
        except (AssertionError, QuorumBrokenError) as error:
            raise AssertionError(f"seed {seed}: {error}\n{cluster.kernel.story()}\n{cluster.describe()}") from error


def test_the_simulation_reaches_what_it_is_about() -> None:
    reached: Counter[str] = Counter()
    for seed in range(40):
        cluster = WholeCluster(seed)
        cluster.run()
        reached.update(cluster.kernel.counters)
    least = {
        "elections": 60,
        "leaders of partitions": 250,
        "divergent truncations": 60,
        "truncations": 3,
        "snapshots": 40,
        "snapshots installed": 6,
        "coordinators loaded": 60,
        "transactions committed": 60,
        "transactions aborted": 25,
        "kills": 50,
        "power losses": 20,
        "pauses": 20,
        "orderly stops": 20,
        "full disks": 30,
        "failed appends": 100,
        "network cuts": 30,
        "brokers fenced": 60,
        "ISRs expanded": 200,
        "ISRs shrunk": 30,
        "records acknowledged": 8_000,
    }
    assert {what: reached[what] for what, count in least.items() if reached[what] < count} == {}


def test_a_seed_gives_the_same_run_again() -> None:
    first, second = WholeCluster(12), WholeCluster(12)
    first.run()
    second.run()
    assert first.kernel.story(400) == second.kernel.story(400)
    assert first.kernel.counters == second.kernel.counters


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_cluster_is_caught_by_the_rule_that_forbids_it(mutant: Mutant) -> None:
    seeds = range(mutant.first_seed, mutant.first_seed + MUTANT_SEEDS)
    seed = next(seed for seed in seeds if _is_caught(mutant, seed))
    WholeCluster(seed).run()


def _is_caught(mutant: Mutant, seed: int) -> bool:
    try:
        mutant.make(seed).run()
    except InvariantError as error:
        return error.invariant in mutant.rules
    except (QuorumBrokenError, AssertionError):
        return False
    return False
