"""A program that starts, works and is told to stop has nothing to complain about, whatever it is doing just then."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.spark.cluster_shop import Shop
from tests.spark.running_program import PROGRAM, Running

from moldau.core.errors import MoldauError
from moldau.pipeline.spark.jars import fetched
from moldau.testing import Broker


@pytest.fixture
def shop() -> Iterator[Shop]:
    try:
        fetched()
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
        with orders_coming_in(shop):
            assert program.stopped() == 0

    assert (program.errors(), program.output()) == ("", "")


@contextmanager
def orders_coming_in(shop: Shop) -> Iterator[None]:
    """Without pause, so that there is always a batch under way."""
    stop, sent = threading.Event(), threading.Event()

    def send() -> None:
        while not stop.is_set():
            shop.send_orders(1_000)
            sent.set()

    thread = threading.Thread(target=send, name="orders")
    thread.start()
    try:
        assert sent.wait(30)
        yield
    finally:
        stop.set()
        thread.join()
