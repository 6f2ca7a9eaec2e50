"""A broker that is killed keeps what it acknowledged. The long version is `scripts/kill9`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration import kill9


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_every_acknowledged_record_survives_kills_under_load(seed: int, tmp_path: Path) -> None:
    report = kill9.run(kills=8, seed=seed, folder=tmp_path)

    assert report.problems == []
    assert report.acknowledged > 0
