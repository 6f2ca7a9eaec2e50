"""An application that is told to end while no broker answers does so soon, and goes on later as if nothing had been."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.killable import KillableBroker
from tests.spark.cluster_shop import Shop
from tests.spark.java_processes import until
from tests.spark.running_program import PROGRAM, Running

from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.spark.driver.jars import fetch_jars
from moldau.streams import Consumed, LongSerde, Produced, StreamsBuilder, StringSerde, Topology
from moldau.streams.kafka_streams import KafkaStreams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDS_WITHIN_S = 45
"""Where Spark's query was waited for, it took 66 seconds. On a machine with nothing else to do it takes 15."""

ENDS_IN_A_BATCH_WITHIN_S = 60
"""Brokers are asked once more before a batch is given up: 20 seconds in addition. A request without answer took 77."""

Act = Callable[[KillableBroker], object]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KillableBroker]:
    try:
        fetch_jars()
    except MoldauError as error:
        pytest.skip(f"Spark cannot run here: {error}")
    started = KillableBroker(tmp_path, {})
    started.start()
    yield started
    started.close()


def test_a_program_ends_without_a_broker_and_loses_and_doubles_nothing(broker: KillableBroker, tmp_path: Path) -> None:
    names = ("priced", "addressed")
    shop = Shop(broker.bootstrap_servers)
    shop.send_orders(100)
    command = [sys.executable, str(PROGRAM), shop.bootstrap, str(tmp_path / "state"), *names]
    with Running(command, tmp_path) as program:
        check_all(shop, program, names)
        broker.kill()
        program.says("Connection refused")
        began = time.monotonic()
        assert program.stopped() == 0
        assert time.monotonic() - began < ENDS_WITHIN_S

    broker.start()
    shop.send_orders(100)
    with Running(command, tmp_path) as program:
        check_all(shop, program, names)
        assert program.stopped() == 0


def test_an_application_closed_without_a_broker_goes_on_in_the_same_process(
    broker: KillableBroker, spark: SparkSession, tmp_path: Path
) -> None:
    shop = Shop(broker.bootstrap_servers)
    config = config_of_totals(shop, tmp_path)
    with KafkaStreams(totals(), config, engine=Engine(spark=spark)) as streams:
        streams.start()
        shop.send_orders(100)
        shop.check_totals()
        broker.kill()
        began = time.monotonic()
        assert streams.close()
        assert time.monotonic() - began < ENDS_WITHIN_S

    broker.start()
    shop.send_orders(100)
    with KafkaStreams(totals(), config, engine=Engine(spark=spark)) as streams:
        streams.start()
        shop.check_totals()


LONG = pytest.mark.skipif("MOLDAU_LONG_TESTS" not in os.environ, reason="takes a minute; MOLDAU_LONG_TESTS=1 runs it")


@pytest.mark.parametrize(
    ("leaves", "comes_back"),
    [
        pytest.param(KillableBroker.kill, KillableBroker.start, id="refused", marks=LONG),
        pytest.param(KillableBroker.freeze, KillableBroker.thaw, id="unanswered"),
    ],
)
def test_a_program_ends_without_a_broker_while_it_writes_a_batch_and_loses_and_doubles_nothing(
    broker: KillableBroker, tmp_path: Path, leaves: Act, comes_back: Act
) -> None:
    shop = Shop(broker.bootstrap_servers)
    shop.send_orders(20_000)
    command = [sys.executable, str(PROGRAM), shop.bootstrap, str(tmp_path / "state"), "addressed"]
    # Writing takes seconds where a request holds a record or two, and the next one waits for its answer.
    slowly = ["producer.batch.size=100", "producer.max.in.flight.requests.per.connection=1"]
    with Running([*command, *slowly], tmp_path) as program:
        until(lambda: shop.written("addressed") > 0 or not program.is_running())
        assert shop.written("addressed") < 20_000
        leaves(broker)
        began = time.monotonic()
        assert program.stopped() == 0
        assert time.monotonic() - began < ENDS_IN_A_BATCH_WITHIN_S
        assert "Exception" not in program.errors()

    comes_back(broker)
    shop.send_orders(100)
    with Running(command, tmp_path) as program:
        check_all(shop, program, ("addressed",))
        assert program.stopped() == 0


def test_an_application_closed_without_a_broker_while_it_computes_a_batch_goes_on_in_the_same_process(
    broker: KillableBroker, spark: SparkSession, tmp_path: Path
) -> None:
    shop = Shop(broker.bootstrap_servers)
    shop.send_orders(100)
    config = config_of_totals(shop, tmp_path)
    is_reached, may_pass = tmp_path / "is-reached", tmp_path / "may-pass"

    def wait(customer: str, order: str) -> None:
        is_reached.touch()
        until(may_pass.exists)

    with KafkaStreams(totals(wait), config, engine=Engine(spark=spark)) as streams:
        streams.start()
        until(is_reached.exists)
        broker.kill()
        began = time.monotonic()
        assert streams.close()
        assert time.monotonic() - began < ENDS_IN_A_BATCH_WITHIN_S

    broker.start()
    may_pass.touch()
    shop.send_orders(100)
    with KafkaStreams(totals(wait), config, engine=Engine(spark=spark)) as streams:
        streams.start()
        shop.check_totals()


def config_of_totals(shop: Shop, folder: Path) -> dict[str, str]:
    return {
        "application.id": "totals",
        "bootstrap.servers": shop.bootstrap,
        "state.dir": str(folder / "state"),
        "processing.guarantee": "exactly_once_v2",
    }


def totals(look: Callable[[str, str], None] | None = None) -> Topology:
    """Orders of each customer, with a look at each of them."""
    text, builder = StringSerde(), StreamsBuilder()
    orders = builder.stream("orders", Consumed.with_(text, text))
    counts = (orders if look is None else orders.peek(look)).group_by_key().count()
    counts.to_stream().to("totals", Produced.with_(text, LongSerde()))
    return builder.build()


def check_all(shop: Shop, program: Running, names: tuple[str, ...]) -> None:
    shop.is_served = program.is_running
    for name in names:
        shop.check(name)
