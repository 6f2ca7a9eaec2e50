"""Killed processes of a ksql server lose nothing and double nothing. `scripts/ksql-kill` kills more often."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.ksql_kill import run

from moldau.testing import Broker


@pytest.mark.timeout(900)
def test_server_and_engine_killed_under_load(tmp_path: Path) -> None:
    with Broker() as broker:
        run(broker.bootstrap_servers, tmp_path, kills=2, seed=1)
