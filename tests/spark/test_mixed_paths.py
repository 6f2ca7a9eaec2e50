"""Topologies of which Spark computes a part by itself and Python the rest give what Python alone gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.small_pipelines import Output, compiled_in_memory, outputs_of

from moldau.pipeline.cores.records import InputRecord
from moldau.pipeline.spark.compiler import CheckpointWayError
from moldau.pipeline.spark.job import EarlierRun
from moldau.streams import (
    Consumed,
    Grouped,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    Topology,
    aggregate,
    functions,
    value,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT, LONG = StringSerde(), LongSerde()
TEXTS, TO_TEXT, TO_LONG = Consumed.with_(TEXT, TEXT), Produced.with_(TEXT, TEXT), Produced.with_(TEXT, LONG)


def stored(name: str) -> Materialized:
    return Materialized.as_(name).with_key_serde(TEXT).with_value_serde(LONG)


def python_around_aggregations(builder: StreamsBuilder) -> None:
    stream = builder.stream("in", TEXTS)
    shouted = stream.map_values(lambda text: text and text.upper())
    shouted.group_by_key().count(stored("before")).to_stream().to("before", TO_LONG)
    words = stream.flat_map_values(lambda text: [text, f"{text}!"])
    words.group_by(lambda _, text: text, Grouped.with_(TEXT, TEXT)).count().to_stream().to("by-text", TO_LONG)
    counted = stream.filter(value != "b").group_by_key().count(stored("after")).to_stream()
    counted.map_values(lambda count: f"{count} times").to("after", TO_TEXT)
    counted.to("plain", TO_LONG)
    lengths = stream.map_values(lambda text: None if text is None else len(text))
    summed = lengths.group_by_key(Grouped.with_(TEXT, LONG)).reduce(aggregate + value, stored("around")).to_stream()
    summed.select_key(lambda key, total: key * 2).to("around", TO_LONG)


def branches(builder: StreamsBuilder) -> None:
    stream = builder.stream("other", TEXTS)
    stream.to("copy", TO_TEXT)
    stream.filter(value != "b").map_values(functions.upper(value)).to("native", TO_TEXT)
    stream.map_values(lambda text: text and text * 2).to("python", TO_TEXT)
    stream.group_by_key().count(stored("beside")).to_stream().to("beside", TO_LONG)
    stream.group_by_key().reduce(lambda one, two: one + two).to_stream().to("reduced", TO_TEXT)


def mixed() -> Topology:
    builder = StreamsBuilder()
    python_around_aggregations(builder)
    branches(builder)
    return builder.build()


def record(offset: int, topic: str, key: str, text: str | None) -> InputRecord:
    return InputRecord(topic, ord(key) % 2, offset, 1000 + offset * 7 % 5, (), key.encode(), text and text.encode())


BATCHES: list[Sequence[InputRecord]] = [
    [record(n, topic, key, text) for n, (topic, key, text) in enumerate(batch, start=first)]
    for first, batch in (
        (0, [("in", "k", "a"), ("in", "l", "b"), ("other", "k", "c"), ("in", "k", None), ("other", "l", "b")]),
        (10, [("in", "k", "b"), ("in", "m", "a"), ("other", "l", "e"), ("in", "l", "aa"), ("other", "k", None)]),
    )
]


MANY: Sequence[InputRecord] = [
    record(n, ("in", "other")[n % 3 == 0], "klmn"[n * 7 % 4], ("a", "b", "cc", None, "d")[n * 11 % 5])
    for n in range(20, 1020)
]
"""Enough records of each partition that Python processes them as columns."""


def test_mixed_and_hosted_give_the_same(spark: SparkSession, tmp_path: Path) -> None:
    results: list[Any] = []
    for is_native in (True, False):
        compiled, reader = compiled_in_memory(spark, mixed(), {}, is_native=is_native)
        assert len(compiled.cut.sections) == (6 if is_native else 0)
        assert compiled.cut.hosted is not None
        batches = outputs_of(compiled, reader, tmp_path / str(is_native), [*BATCHES, MANY])
        results.append([sorted(batch, key=repr) for batch in batches])
    native, hosted = results
    assert native == hosted
    assert all(native)


# --- checkpoints -----------------------------------------------------------------------------------------------


def counted(*, in_python: bool = False, text: str = "a") -> Topology:
    """A count behind a filter, and a function on another topic."""
    builder = StreamsBuilder()
    keep = (lambda key, found: found == text) if in_python else value == text
    kept = builder.stream("in", TEXTS).filter(keep)
    kept.group_by_key().count(stored("counts")).to_stream().to("out", TO_LONG)
    builder.stream("other", TEXTS).map_values(lambda found: found and found * 2).to("python", TO_TEXT)
    return builder.build()


def counts(outputs: list[list[Output]]) -> list[tuple[bytes | None, int]]:
    return [(one.key, int.from_bytes(one.value or b"", "big")) for one in outputs[-1] if one.topic == "out"]


def batch(first: int) -> list[InputRecord]:
    return [record(first, "in", "k", "a"), record(first + 1, "other", "l", "b")]


def test_a_checkpoint_of_an_older_version_goes_on_as_it_ran(spark: SparkSession, tmp_path: Path) -> None:
    hosted, reader = compiled_in_memory(spark, counted(), {}, is_native=False)
    assert counts(outputs_of(hosted, reader, tmp_path, [batch(0)])) == [(b"k", 1)]

    again, _ = compiled_in_memory(spark, counted(), {}, is_native=True, reader=reader, earlier=EarlierRun(None))

    assert again.native_outputs == ()
    assert "before Spark could compute parts" in again.explain()
    assert counts(outputs_of(again, reader, tmp_path, [batch(2)])) == [(b"k", 2)]


def test_a_function_that_takes_an_expressions_place_finds_the_native_state(spark: SparkSession, tmp_path: Path) -> None:
    native, reader = compiled_in_memory(spark, counted(), {}, is_native=True)
    assert counts(outputs_of(native, reader, tmp_path, [batch(0)])) == [(b"k", 1)]
    earlier = EarlierRun(frozenset(native.native_outputs))

    again, _ = compiled_in_memory(spark, counted(in_python=True), {}, is_native=True, reader=reader, earlier=earlier)

    (section,) = again.cut.sections
    assert section.before is not None
    assert counts(outputs_of(again, reader, tmp_path, [batch(2)])) == [(b"k", 2)]


def test_native_state_is_not_given_to_python(spark: SparkSession) -> None:
    native, _ = compiled_in_memory(spark, counted(), {}, is_native=True)
    earlier = EarlierRun(frozenset(native.native_outputs))
    every_change = {"statestore.cache.max.bytes": "0"}

    with pytest.raises(CheckpointWayError, match=r"caching is off.*moldau streams reset --application-id test"):
        compiled_in_memory(spark, counted(), every_change, is_native=True, earlier=earlier)


def test_without_state_a_checkpoint_asks_for_nothing(spark: SparkSession) -> None:
    builder = StreamsBuilder()
    builder.stream("in", TEXTS).to("out", TO_TEXT)

    compiled, _ = compiled_in_memory(spark, builder.build(), {}, is_native=True, earlier=EarlierRun(frozenset()))

    assert compiled.is_native
