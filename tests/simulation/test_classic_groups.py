"""Groups of the classic protocol under seeded crashes, stalls, full disks and restarts."""

from __future__ import annotations

import logging
import os

import pytest
from tests.simulation.classic_group_world import World

SEEDS = int(os.environ.get("MOLDAU_SIMULATION_SEEDS", "1000"))
CHUNKS = 4


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_one_owner_in_each_generation_and_nobody_waits_forever(chunk: int) -> None:
    for seed in range(chunk, SEEDS, CHUNKS):
        world = World(seed)
        try:
            for _ in range(150):
                world.step()
                world.check()
            world.check_replay()
            world.settle()
            world.check_settled()
            world.check_replay()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_the_simulation_reaches_what_it_is_about() -> None:
    seen: set[str] = set()
    generations = 0
    for seed in range(60):
        world = World(seed)
        for _ in range(150):
            world.step()
        seen |= world.seen
        group = world.group()
        generations += 0 if group is None else group.generation_id
    assert {
        "NONE",
        "MEMBER_ID_REQUIRED",
        "UNKNOWN_MEMBER_ID",
        "FENCED_INSTANCE_ID",
        "REBALANCE_IN_PROGRESS",
        "ILLEGAL_GENERATION",
        "GROUP_MAX_SIZE_REACHED",
        "INCONSISTENT_GROUP_PROTOCOL",
    } <= seen
    assert generations > 200
