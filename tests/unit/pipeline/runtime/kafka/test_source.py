"""Spark's connector is told where to begin, partition by partition where offsets are known."""

from __future__ import annotations

import json

import pytest

from moldau.core.ids import TopicPartition
from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.runtime.kafka.source import SourceReading
from moldau.streams.application import clients_of, options_of
from moldau.streams.settings import StreamsSettings

LEAST = {"application.id": "app", "bootstrap.servers": "localhost:9092"}
COUNTS = {"in": 2, "other": 1, "log-a": 1, "log-b": 1}


def reading(starts: dict[TopicPartition, int] | None = None, **config: object) -> SourceReading:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    checked = StreamsSettings.of({**LEAST, **settings})
    return SourceReading(clients_of(checked), options_of(checked), COUNTS, starts or {})


def test_a_topic_is_read_from_its_beginning() -> None:
    options = reading()(("in",), None, None, is_global=False)

    assert options == {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.fetch.max.wait.ms": "10",
        "kafka.max.partition.fetch.bytes": "10485760",
        "kafka.max.poll.records": "10000",
        "kafka.isolation.level": "read_uncommitted",
        "subscribe": "in",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "500000",
        "failOnDataLoss": "true",
        "includeHeaders": "true",
    }


def test_exactly_once_reads_what_was_committed() -> None:
    options = reading(processing_guarantee="exactly_once_v2")(("in",), None, None, is_global=False)

    assert options["kafka.isolation.level"] == "read_committed"


def test_offsets_are_told_for_all_partitions_of_all_topics() -> None:
    starts = {TopicPartition("in", 1): 7}
    options = reading(starts, auto_offset_reset="latest")(("in", "other"), None, None, is_global=False)

    assert json.loads(options["startingOffsets"]) == {"in": {"0": -1, "1": 7}, "other": {"0": -1}}


def test_the_reset_of_a_source_wins_over_the_applications() -> None:
    options = reading()(("in",), None, OffsetReset.LATEST, is_global=False)

    assert options["startingOffsets"] == "latest"


def test_a_global_table_is_read_whole() -> None:
    starts = {TopicPartition("in", 0): 7}
    options = reading(starts, auto_offset_reset="latest")(("in",), None, None, is_global=True)

    assert options["startingOffsets"] == "earliest"
    assert "maxOffsetsPerTrigger" not in options


def test_topics_of_a_pattern_begin_where_they_were_left() -> None:
    options = reading({TopicPartition("log-b", 0): 3})(None, "log-.*", None, is_global=False)

    assert options["subscribePattern"] == "log-.*"
    assert json.loads(options["startingOffsets"]) == {"log-a": {"0": -2}, "log-b": {"0": 3}}


@pytest.mark.parametrize("key", ["max.poll.records", "session.timeout.ms"])
def test_what_the_connector_refuses_is_left_out(key: str) -> None:
    settings = StreamsSettings.of({**LEAST, key: "1", "ssl.truststore.location": "/trust"})
    properties = clients_of(settings).connector_properties("consumer")

    assert f"kafka.{key}" not in properties
    assert properties["kafka.ssl.truststore.location"] == "/trust"
