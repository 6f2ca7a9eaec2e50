"""What clients saw of a broker that was killed with them could have come from a correct one.

The long run is `scripts/history`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration import random_history


@pytest.mark.slow
def test_no_write_is_lost_doubled_or_torn_although_clients_and_broker_are_killed(tmp_path: Path) -> None:
    report = random_history.run(kills=8, seed=1, folder=tmp_path)

    assert report.problems == []
    assert report.kills["broker"]
    assert len(report.outcomes) >= 2
