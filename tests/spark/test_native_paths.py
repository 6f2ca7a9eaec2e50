"""What Spark runs by itself gives what the tasks give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.small_pipelines import compiled_in_memory, outputs_of

from moldau.pipeline.cores.records import InputRecord
from moldau.pipeline.ir.types import Primitive, Struct
from moldau.pipeline.spark.failures import cause_of
from moldau.streams import (
    Branched,
    Consumed,
    Grouped,
    JsonSerde,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    Topology,
    aggregate,
    functions,
    key,
    value,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT, LONG = StringSerde(), LongSerde()
TOTALS = JsonSerde(Struct(tuple((name, Primitive.BIGINT) for name in ("sum", "count", "least", "most"))))
TWEET = JsonSerde(Struct((("likes", Primitive.BIGINT), ("tag", Primitive.STRING))))


def tweets() -> Topology:
    """Branches, a merge, new keys and values: several sinks fed by one topic."""
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed.with_(TEXT, TWEET))
    popular = stream.filter(value["likes"] > 10)
    popular.map_values(value["tag"]).to("tags", Produced.with_(TEXT, TEXT))
    branches = (
        stream.split("by-").branch(value["likes"] > 100, Branched.as_("many")).default_branch(Branched.as_("few"))
    )
    branches["by-few"].select_key(value["tag"]).to("few", Produced.with_(TEXT, TWEET))
    branches["by-many"].merge(popular).map_values_with_key(key + "!").to("many", Produced.with_(TEXT, TEXT))
    return builder.build()


def counts() -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed.with_(TEXT, TWEET)).filter(value["likes"].is_not_null())
    grouped = stream.group_by(value["tag"], Grouped.with_(TEXT, TWEET))
    grouped.count(Materialized.as_("tags").with_value_serde(LONG)).to_stream().to("out", Produced.with_(TEXT, LONG))
    return builder.build()


def means() -> Topology:
    """Sums of what may be null, and extremes with a beginning, as fields of a struct."""
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed.with_(TEXT, TWEET))
    totals = stream.group_by(value["tag"], Grouped.with_(TEXT, TWEET)).aggregate(
        lambda: {"sum": 1, "count": 0, "least": 7, "most": 7},
        functions.struct(
            sum=aggregate["sum"] + value["likes"],
            count=aggregate["count"] + 1,
            least=functions.least(aggregate["least"], value["likes"]),
            most=functions.greatest(value["likes"], aggregate["most"]),
        ),
        Materialized.with_(TEXT, TOTALS),
    )
    totals.to_stream().to("totals", Produced.with_(TEXT, TOTALS))
    return builder.build()


def tweet(offset: int, likes: int | None, tag: str | None, timestamp: int = 0) -> InputRecord:
    data = TWEET.serialize("in", {"likes": likes, "tag": tag})
    return InputRecord("in", offset % 2, offset, timestamp or 1000 + offset, (), b"k%d" % (offset % 3), data)


BATCHES: list[Sequence[InputRecord]] = [
    [tweet(0, 5, "a"), tweet(1, 11, "b"), tweet(2, 200, "a"), tweet(3, None, "c"), tweet(4, 50, None)],
    [
        tweet(8, None, "b"),
        tweet(9, 3, "a"),
        tweet(10, 4, "b"),
        tweet(5, 101, "b", 10),
        InputRecord("in", 0, 6, 2000, (), b"null", None),
        tweet(7, 1, "a"),
    ],
]


@pytest.mark.parametrize("topology", [tweets, counts, means])
def test_native_and_hosted_give_the_same(spark: SparkSession, tmp_path: Path, topology: object) -> None:
    results = []
    for is_native in (True, False):
        compiled, reader = compiled_in_memory(spark, topology(), {}, is_native=is_native)  # type: ignore[operator]
        assert compiled.is_native is is_native
        results.append(
            [sorted(batch, key=repr) for batch in outputs_of(compiled, reader, tmp_path / str(is_native), BATCHES)]
        )
    native, hosted = results
    assert native == hosted
    assert all(native)


def test_bytes_that_cannot_be_read_stop_a_native_pipeline_and_are_named(spark: SparkSession, tmp_path: Path) -> None:
    compiled, reader = compiled_in_memory(spark, tweets(), {}, is_native=True)
    broken = InputRecord("in", 1, 41, 5, (), b"k", b"{no json")
    with pytest.raises(Exception, match="moldau-failure") as raised:
        outputs_of(compiled, reader, tmp_path / "checkpoint", [[broken]])
    found = cause_of(raised.value)
    assert found is not None
    assert str(found).startswith(
        "topic in, partition 1, offset 41: the value cannot be read by KSTREAM-SOURCE-0000000000"
    )
    assert "test_native_paths.py" in str(found)


def test_bytes_that_cannot_be_read_are_skipped_where_the_settings_say_so(spark: SparkSession, tmp_path: Path) -> None:
    config = {"default.deserialization.exception.handler": "log-and-continue"}
    compiled, reader = compiled_in_memory(spark, tweets(), config, is_native=True)
    broken = InputRecord("in", 1, 41, 5, (), b"k", b"{no json")
    (outputs,) = outputs_of(compiled, reader, tmp_path / "checkpoint", [[broken, tweet(0, 5, "a")]])
    assert [output.topic for output in outputs] == ["few"]
