"""Groups of the consumer protocol under seeded loss, stalls, crashes and restarts: no partition has two owners."""

from __future__ import annotations

import logging
import os

import pytest
from tests.simulation.consumer_group_world import World

SEEDS = int(os.environ.get("MOLDAU_SIMULATION_SEEDS", "1000"))
CHUNKS = 4


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_partition_has_two_owners_and_every_group_comes_to_rest(chunk: int) -> None:
    for seed in range(chunk, SEEDS, CHUNKS):
        world = World(seed)
        try:
            for _ in range(120):
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
    epochs = 0
    for seed in range(60):
        world = World(seed)
        for _ in range(120):
            world.step()
        seen |= world.seen
        epochs += world.group().epoch if world.group() is not None else 0  # type: ignore[union-attr]
    assert {"NONE", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "UNRELEASED_INSTANCE_ID"} <= seen
    assert epochs > 500
