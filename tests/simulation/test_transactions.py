"""Transactions under seeded delay, failure and kills: none is torn, none is decided twice, none stays open."""

from __future__ import annotations

import logging
import os

import pytest
from tests.simulation.transaction_world import World

SEEDS = int(os.environ.get("MOLDAU_SIMULATION_SEEDS", "1000"))
CHUNKS = 4


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # thousands of full disks


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_transaction_is_torn_doubled_or_left_open(chunk: int) -> None:
    for seed in range(chunk, SEEDS, CHUNKS):
        world = World(seed)
        try:
            world.run(steps=200)
            world.check_history()
            world.check_settled()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_the_simulation_reaches_what_it_is_about() -> None:
    worlds = [World(seed) for seed in range(40)]
    for world in worlds:
        world.run(steps=200)
    assert sum(len(world.committed) for world in worlds) > 100
    assert sum(len(world.aborted) for world in worlds) > 50
    assert sum(world.kills for world in worlds) > 20
