"""`moldau streams prepare`: a one-time setup so that pipelines can start, and start fast.

It downloads the jars of Spark's Kafka connector. Then it runs small pipelines on a temporary broker while Java records
the classes they load, so that later starts need not search and verify them. Start at `prepare`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.demo.broker import created_topics, running_broker
from moldau.cli.demo.counts.pipeline import INPUT, OUTPUT, visits_per_page
from moldau.client.unsent_records import flush_interruptibly
from moldau.core.errors import StartupError
from moldau.pipeline.spark.driver.class_archive import archive_file, record_classes
from moldau.pipeline.spark.driver.jars import fetch_jars, missing

if TYPE_CHECKING:
    from moldau.pipeline.ir.topology import Topology
    from moldau.pipeline.runtime.engine import Engine
    from moldau.streams import KafkaStreams

__all__ = ["is_prepared", "prepare"]

PATIENCE_S = 120.0
RECORDS = 100


def is_prepared() -> bool:
    """Whether `prepare` has nothing to do."""
    return not missing() and archive_file().exists()


def prepare(say: Callable[[str], None]) -> bool:
    """Do the steps that are not done yet, and report each with `say`; False if there was nothing to do."""
    lacks_jars, lacks_archive = bool(missing()), not archive_file().exists()
    if lacks_jars:
        say("fetching Spark's Kafka connector")
        fetch_jars()
    if lacks_archive:
        say("starting a broker of its own")
        _record(say)
    return lacks_jars or lacks_archive


def _record(say: Callable[[str], None]) -> None:
    from moldau.pipeline.runtime.engine import Engine
    from moldau.pipeline.spark.driver.session import DEFAULTS, DRIVER_OPTIONS

    with (
        record_classes() as options,
        tempfile.TemporaryDirectory(prefix="moldau-prepare-") as folder,
        running_broker(Path(folder)) as bootstrap,
    ):
        created_topics(bootstrap, 2, INPUT, OUTPUT)
        _produce(bootstrap)
        say("starting Spark, while Java notes its classes for faster starts (half a minute, once)")
        engine = Engine({DRIVER_OPTIONS: f"{DEFAULTS[DRIVER_OPTIONS]} {options}"})
        try:
            engine.session()
            _run_all(engine, bootstrap, folder, say)
        finally:
            say("keeping what Java noted")
            engine.close()


def _run_all(engine: Engine, bootstrap: str, folder: str, say: Callable[[str], None]) -> None:
    """Run pipelines with exactly-once Python state, native state and native expressions, to load nearly every class."""
    from moldau.streams import KafkaStreams

    exactly_once = {"processing.guarantee": "exactly_once_v2"}
    pipelines: tuple[tuple[Topology, dict[str, str]], ...] = (
        (visits_per_page(1000), exactly_once),
        (_native_count(), {}),
    )
    for number, (topology, extra) in enumerate(pipelines):
        say(f"running pipeline {number + 1} of {len(pipelines)}")
        config = {
            "application.id": f"prepare-{number}",
            "bootstrap.servers": bootstrap,
            "auto.offset.reset": "earliest",
            "state.dir": folder,
            **extra,
        }
        with KafkaStreams(topology, config, engine=engine) as streams:
            streams.start()
            _wait_for_output(streams)


def _native_count() -> Topology:
    from moldau.streams import Consumed, LongSerde, Produced, StreamsBuilder, StringSerde, value

    text = StringSerde()
    builder = StreamsBuilder()
    visits = builder.stream(INPUT, Consumed.with_(text, text)).filter(value != "")
    visits.group_by_key().count().to_stream().to(OUTPUT, Produced.with_(text, LongSerde()))
    return builder.build()


def _produce(bootstrap: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(INPUT, "{}", key=str(number))
    flush_interruptibly(producer)


def _wait_for_output(streams: KafkaStreams) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not streams.metrics().records_out:
        if streams.wait(0.05) or time.monotonic() > deadline:
            raise StartupError("the pipeline that warms up Java gave no result; run `moldau doctor`")
