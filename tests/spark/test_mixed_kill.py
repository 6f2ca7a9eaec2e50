"""A pipeline that is partly native is exactly once too, and the judge of that sees what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.mixed_kill import problems_of_cached_counts, problems_of_copies, run
from tests.spark.mixed_kill_worker import topology

from moldau.core.errors import MoldauError
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.spark.driver.jars import fetch_jars
from moldau.pipeline.spark.sections import cut_topology


def test_the_pipeline_that_is_killed_is_mixed() -> None:
    cut = cut_topology(topology(), TaskSettings())

    expressions, counted = cut.sections
    assert (expressions.aggregate, counted.aggregate is None) == (None, False)
    assert None not in (counted.before, counted.after, cut.hosted)


@pytest.mark.slow
def test_killed_in_the_middle_a_mixed_pipeline_is_exactly_right(tmp_path: Path) -> None:
    try:
        fetch_jars()
    except MoldauError as error:
        pytest.skip(f"Spark cannot run here: {error}")

    assert run(kills=2, seed=3, folder=tmp_path) == []


def test_counts_that_rise_to_the_number_of_clicks_are_right() -> None:
    assert problems_of_cached_counts({"k": 5}, {"k": [2, 5]}) == []


@pytest.mark.parametrize("found", [[2, 4], [2, 6], [2, 2, 5], [3, 2, 5], []])
def test_lost_and_doubled_counts_are_seen(found: list[int]) -> None:
    assert len(problems_of_cached_counts({"k": 5}, {"k": found})) == 1


def test_lost_and_doubled_copies_are_seen() -> None:
    right = {("order-0", "ORDER"): 1, ("order-0", "payment"): 1}
    assert problems_of_copies(1, right) == []
    assert problems_of_copies(1, {**right, ("order-0", "ORDER"): 2}) == ["('order-0', 'ORDER') is there 2 times"]
    assert problems_of_copies(1, {("order-0", "ORDER"): 1}) == ["('order-0', 'payment') is there 0 times"]
