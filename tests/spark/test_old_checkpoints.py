"""Checkpoints that older versions of PySpark have made are taken over, with Python's state and Spark's own."""

from __future__ import annotations

import tarfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.spark.old_checkpoints.application import (
    PARTITIONS,
    PLACE,
    RECORDS,
    config,
    prepare,
    rename_folder,
    topology,
)

from moldau.pipeline.runtime.engine import Engine
from moldau.streams.kafka_streams import KafkaStreams
from moldau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVES = sorted(Path(__file__).with_name("old_checkpoints").glob("*.tar.gz"))
WAIT_S = 90
MORE = 9


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name.removesuffix(".tar.gz"))
def test_counts_go_on_where_the_old_version_ended(spark: SparkSession, tmp_path: Path, archive: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    rename_folder(tmp_path, PLACE, str(tmp_path))
    with Broker({"num.partitions": str(PARTITIONS)}) as broker:
        prepare(broker, 0, RECORDS)
        streams = KafkaStreams(topology(), config(broker, tmp_path), engine=Engine(spark=spark))
        streams.start()
        try:
            prepare(broker, RECORDS, RECORDS + MORE)
            each = (RECORDS + MORE) // 3
            expected = {(topic, b"key-%d" % which): each for topic in TOPICS for which in range(3)}
            assert last_counts(broker, expected) == expected
            assert dict(streams.store("native").all()) == {f"key-{which}": each for which in range(3)}
        finally:
            streams.close()


TOPICS = ("native-counts", "python-counts")


def last_counts(broker: Broker, expected: dict[tuple[str, bytes], int]) -> dict[tuple[str, bytes], int]:
    """The last count of each key, read until they are as expected."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, number, 0) for topic in TOPICS for number in range(PARTITIONS)])
    found: dict[tuple[str, bytes], int] = {}
    deadline = time.monotonic() + WAIT_S
    try:
        while found != expected and time.monotonic() < deadline:
            for message in consumer.consume(100, timeout=0.2):
                found[message.topic(), message.key()] = int.from_bytes(message.value(), "big")
    finally:
        consumer.close()
    return found
