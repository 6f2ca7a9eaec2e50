"""The short version of `scripts/streams-cluster`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.cluster_kill import run

from moldau.core.errors import MoldauError
from moldau.pipeline.spark.driver.jars import fetch_jars


@pytest.mark.slow
def test_a_worker_killed_with_its_executor_leaves_every_output_there_once(tmp_path: Path) -> None:
    try:
        fetch_jars()
    except MoldauError as error:
        pytest.skip(f"Spark cannot run here: {error}")

    report = run(kills=1, seed=3, folder=tmp_path)

    assert report.problems == []
    assert report.counts == report.clicks > 0
