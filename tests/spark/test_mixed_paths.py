"""Topologies of which Spark computes a part by itself and Python the rest give what Python alone gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.small_pipelines import compiled_in_memory, outputs_of

from moldau.pipeline.cores.records import InputRecord
from moldau.streams import (
    Consumed,
    Grouped,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    aggregate,
    functions,
    value,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT, LONG = StringSerde(), LongSerde()
TEXTS, TO_TEXT, TO_LONG = Consumed.with_(TEXT, TEXT), Produced.with_(TEXT, TEXT), Produced.with_(TEXT, LONG)
COUNTS = Materialized.as_("counts").with_value_serde(LONG)


def python_before(builder: StreamsBuilder) -> None:
    shouted = builder.stream("in", TEXTS).map_values(lambda text: text and text.upper())
    shouted.group_by_key().count(COUNTS).to_stream().to("out", TO_LONG)


def python_key_before(builder: StreamsBuilder) -> None:
    lines = builder.stream("in", TEXTS)
    grouped = lines.flat_map_values(lambda text: [text, f"{text}!"]).group_by(
        lambda _, text: text, Grouped.with_(TEXT, TEXT)
    )
    grouped.count().to_stream().to("out", TO_LONG)


def python_after(builder: StreamsBuilder) -> None:
    counted = builder.stream("in", TEXTS).filter(value != "b").group_by_key().count(COUNTS).to_stream()
    counted.map_values(lambda count: f"{count} times").to("out", TO_TEXT)
    counted.to("plain", TO_LONG)


def python_around(builder: StreamsBuilder) -> None:
    lengths = builder.stream("in", TEXTS).map_values(lambda text: None if text is None else len(text))
    summed = lengths.group_by_key(Grouped.with_(TEXT, LONG)).reduce(aggregate + value, COUNTS).to_stream()
    summed.select_key(lambda key, total: key * 2).to("out", TO_LONG)


def branches_of_one_source(builder: StreamsBuilder) -> None:
    lines = builder.stream("in", TEXTS)
    lines.filter(value != "b").map_values(functions.upper(value)).to("native", TO_TEXT)
    lines.map_values(lambda text: text and text * 2).to("python", TO_TEXT)


def branches_of_two_sources(builder: StreamsBuilder) -> None:
    builder.stream("in", TEXTS).group_by_key().count(COUNTS).to_stream().to("native", TO_LONG)
    builder.stream("other", TEXTS).group_by_key().reduce(lambda one, other: one + other).to_stream().to(
        "python", TO_TEXT
    )


def a_count_beside_a_copy(builder: StreamsBuilder) -> None:
    lines = builder.stream("in", TEXTS)
    lines.to("copy", TO_TEXT)
    lines.group_by_key().count().to_stream().to("out", TO_LONG)
    lines.group_by(value, Grouped.with_(TEXT, TEXT)).count().to_stream().to("words", TO_LONG)


def record(offset: int, topic: str, key: str, text: str | None) -> InputRecord:
    return InputRecord(topic, ord(key) % 2, offset, 1000 + offset * 7 % 5, (), key.encode(), text and text.encode())


BATCHES: list[Sequence[InputRecord]] = [
    [record(n, topic, key, text) for n, (topic, key, text) in enumerate(batch, start=first)]
    for first, batch in (
        (0, [("in", "k", "a"), ("in", "l", "b"), ("other", "k", "c"), ("in", "k", None), ("other", "l", "d")]),
        (10, [("in", "k", "b"), ("in", "m", "a"), ("other", "l", "e"), ("in", "l", "aa")]),
    )
]


@pytest.mark.parametrize(
    ("build", "sections"),
    [
        (python_before, 1),
        (python_key_before, 1),
        (python_after, 1),
        (python_around, 1),
        (branches_of_one_source, 1),
        (branches_of_two_sources, 1),
        (a_count_beside_a_copy, 3),
    ],
)
def test_mixed_and_hosted_give_the_same(
    spark: SparkSession, tmp_path: Path, build: Callable[[StreamsBuilder], None], sections: int
) -> None:
    results: list[Any] = []
    for is_native in (True, False):
        builder = StreamsBuilder()
        build(builder)
        compiled, reader = compiled_in_memory(spark, builder.build(), {}, is_native=is_native)
        assert len(compiled.cut.sections) == (sections if is_native else 0)
        batches = outputs_of(compiled, reader, tmp_path / str(is_native), BATCHES)
        results.append([sorted(batch, key=repr) for batch in batches])
    mixed, hosted = results
    assert mixed == hosted
    assert all(mixed)
