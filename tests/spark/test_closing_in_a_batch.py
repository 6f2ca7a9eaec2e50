"""Applications closed in the middle of a batch and started again where they were: in one process, on one Spark."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.cluster_shop import Shop
from tests.spark.java_processes import until
from tests.spark.running_program import PROGRAM

from moldau.pipeline.runtime.engine import Engine
from moldau.streams import KafkaStreams
from moldau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("per-minute", "priced", "addressed")
TIMES = 3
BATCH_S = 20
"""Within this time an application that was started again has done a batch, however busy the others are."""

Make = Callable[[str], KafkaStreams]


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Broker() as broker:
        yield Shop(broker.bootstrap_servers)


@pytest.fixture
def make(spark: SparkSession, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A new application by its name, on the Spark that all of them share."""
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    program = importlib.import_module(PROGRAM.stem)
    config = {
        "bootstrap.servers": shop.bootstrap,
        "state.dir": str(tmp_path),
        "processing.guarantee": "exactly_once_v2",
        "statestore.cache.max.bytes": 0,
    }
    engine = Engine(spark=spark)
    return lambda name: KafkaStreams(program.APPLICATIONS[name](), {**config, "application.id": name}, engine=engine)


def test_closed_in_a_batch_an_application_starts_again_beside_others_and_every_result_is_there_once(
    shop: Shop, make: Make
) -> None:
    with ExitStack() as stack:
        running = {name: stack.enter_context(started(make(name))) for name in NAMES}
        with shop.orders_coming_in(10, pause_s=0.05):
            for _ in range(TIMES):
                for name in NAMES:
                    until(partial(has_done_a_batch_and_is_in_the_next, running[name]), BATCH_S)
                    assert running[name].close()
                    running[name] = stack.enter_context(started(make(name)))
        for name in NAMES:
            shop.check(name)


@contextmanager
def started(streams: KafkaStreams) -> Iterator[KafkaStreams]:
    with streams:
        streams.start()
        yield streams


def has_done_a_batch_and_is_in_the_next(streams: KafkaStreams) -> bool:
    """Batches follow each other without pause, so one is under way wherever records wait."""
    now = streams.metrics()
    return now.batch is not None and now.lag > 0
