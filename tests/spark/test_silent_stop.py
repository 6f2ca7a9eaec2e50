"""A program that starts, works and is told to stop has nothing to complain about, whatever it is doing just then."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.cluster_shop import Shop
from tests.spark.running_program import PROGRAM, Running

from moldau.core.errors import MoldauError
from moldau.pipeline.spark.driver.jars import fetch_jars
from moldau.testing import Broker


@pytest.fixture
def shop() -> Iterator[Shop]:
    try:
        fetch_jars()
    except MoldauError as error:
        pytest.skip(f"Spark cannot run here: {error}")
    with Broker() as broker:
        yield Shop(broker.bootstrap_servers)


def test_stopped_in_the_middle_of_its_work_a_program_says_nothing(shop: Shop, tmp_path: Path) -> None:
    names = ("per-minute", "priced")
    shop.send_orders(100)
    with Running([sys.executable, str(PROGRAM), shop.bootstrap, str(tmp_path / "state"), *names], tmp_path) as program:
        shop.is_served = program.is_running
        for name in names:
            shop.check(name)
        # So many that there is always a batch under way; without a pause they would soon be ahead of the clock.
        with shop.orders_coming_in(200, pause_s=0.02):
            assert program.stopped() == 0

    assert (program.errors(), program.output()) == ("", "")
