"""Groups shared by both protocols under seeded loss, stalls and restarts: no partition has two users at any time."""

from __future__ import annotations

import logging
import os

import pytest
from tests.simulation.mixed_group_world import MixedWorld

SEEDS = int(os.environ.get("MOLDAU_SIMULATION_SEEDS", "500"))
CHUNKS = 4


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # full disks


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_partition_has_two_users_whichever_protocol_they_speak(chunk: int) -> None:
    for seed in range(chunk, SEEDS, CHUNKS):
        world = MixedWorld(seed)
        try:
            for _ in range(200):
                world.step()
                world.check()
            world.check_replay()
            world.settle()
            world.check_settled()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_the_simulation_changes_protocol_both_ways() -> None:
    changes = []
    for seed in range(60):
        world = MixedWorld(seed)
        for _ in range(200):
            world.step()
            world.check()
        changes += list(zip(world.kinds, world.kinds[1:], strict=False))
    assert changes.count(("classic", "consumer")) > 20
    assert changes.count(("consumer", "classic")) > 20
