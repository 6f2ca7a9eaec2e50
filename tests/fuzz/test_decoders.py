"""Noise for every decoder: a few thousand inputs from a fixed seed here, as long as you like on request.

    MOLDAU_FUZZ_SECONDS=60 MOLDAU_FUZZ_SEED=7 python -m pytest tests/fuzz

feeds each target for a minute. A finding is reported with its bytes; give them to the target's `feed`.
"""

from __future__ import annotations

import os
import random
import time

import pytest
from tests.fuzz.decoders import TARGETS, Target
from tests.fuzz.mutations import mutated

SECONDS = float(os.environ.get("MOLDAU_FUZZ_SECONDS", "0"))
SEED = int(os.environ.get("MOLDAU_FUZZ_SEED", "1"))
INPUTS = 10_000
SLOWEST_SECONDS = 2.0
"""Of processor time for one input of at most a few kilobytes; what takes longer stalls everybody."""


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_valid_input_is_read(target: Target) -> None:
    assert [seed.hex() for seed in target.seeds if _refused(target, seed)] == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_noise_is_read_or_refused(target: Target) -> None:
    rng = random.Random(SEED)
    end = time.monotonic() + SECONDS
    fed = 0
    while fed < INPUTS or time.monotonic() < end:
        data = mutated(rng, target.seeds)
        began = time.process_time()
        try:
            _refused(target, data)
        except Exception as error:
            pytest.fail(f"{target.name}: {error!r} from {data.hex()}")
        took = time.process_time() - began
        assert took < SLOWEST_SECONDS, f"{target.name}: {took:.1f} s for {data.hex()}"
        fed += 1


def _refused(target: Target, data: bytes) -> bool:
    try:
        target.feed(data)
    except target.refusals:
        return True
    return False
