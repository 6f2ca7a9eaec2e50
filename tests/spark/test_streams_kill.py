"""The short version of `scripts/streams-kill`, and that its judge sees what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.streams_kill import problems_of_counts, problems_of_receipts, run

from moldau.core.errors import MoldauError
from moldau.pipeline.spark.driver.jars import fetch_jars

PLACE = ("key", 2_000)


@pytest.mark.slow
def test_killed_in_the_middle_every_output_is_there_once(tmp_path: Path) -> None:
    try:
        fetch_jars()
    except MoldauError as error:
        pytest.skip(f"Spark cannot run here: {error}")

    report = run(kills=2, seed=5, folder=tmp_path, per_second=100)

    assert report.problems == []
    assert report.counts == report.clicks > 0


def test_counts_without_a_gap_are_right() -> None:
    assert problems_of_counts({PLACE: 3}, {PLACE: [1, 2, 3]}) == []


@pytest.mark.parametrize("found", [[1, 2], [1, 2, 2, 3], [1, 3, 2], [2, 3]])
def test_lost_doubled_and_reordered_counts_are_seen(found: list[int]) -> None:
    assert len(problems_of_counts({PLACE: 3}, {PLACE: found})) == 1


def test_counts_of_nothing_are_seen() -> None:
    assert problems_of_counts({}, {PLACE: [1]}) == [f"{PLACE}: counted without clicks"]


def test_lost_and_doubled_receipts_are_seen() -> None:
    assert problems_of_receipts(2, {"order-0": 1, "order-1": 1}) == []
    assert problems_of_receipts(2, {"order-0": 2}) == [
        "1 orders without a receipt, such as order-1",
        "1 orders with more than one receipt, such as order-0",
    ]
