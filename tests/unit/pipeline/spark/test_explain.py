from __future__ import annotations

from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir.types import Primitive, Struct
from moldau.pipeline.spark.explain import explain
from moldau.pipeline.spark.sections import cut_topology
from moldau.streams import (
    Consumed,
    Grouped,
    JsonSerde,
    LongSerde,
    Produced,
    StreamsBuilder,
    StringSerde,
    TimeWindows,
    Topology,
    aggregate,
    value,
)

TEXT = StringSerde()
TEXTS = Consumed.with_(TEXT, TEXT)
TWEET = JsonSerde(Struct((("likes", Primitive.BIGINT),)))


def popular() -> Topology:
    builder = StreamsBuilder()
    builder.stream("tweets", Consumed.with_(TEXT, TWEET)).filter(value["likes"] > 10).to("popular")
    return builder.build()


def plainly_counted() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", TEXTS).group_by_key().count().to_stream().to("out", Produced.with_(TEXT, LongSerde()))
    return builder.build()


def refusal(topology: Topology, **config: str) -> str:
    settings = TaskSettings.of({key.replace("_", "."): value for key, value in config.items()})
    cut = cut_topology(topology, settings)
    assert not cut.sections
    return str(next(iter(cut.refusals.values())))


def test_expressions_run_without_python() -> None:
    text = explain(popular(), {}, {"tweets": 2})
    assert text.startswith("One Spark query without Python")
    assert "native: where" in text


def test_a_lambda_is_named_with_its_line() -> None:
    builder = StreamsBuilder()
    builder.stream("in", TEXTS).map_values(lambda text: text[::-1]).to("out")
    text = explain(builder.build(), {}, {"in": 2})
    assert "MapValues KSTREAM-MAPVALUES-0000000001 (test_explain.py:" in text
    assert "calls a Python function" in text
    assert "mapInArrow" in text


def test_a_count_is_native_where_caching_is_on() -> None:
    assert "one change per key" in explain(plainly_counted(), {}, {"in": 2})


def test_a_count_that_tells_every_change_is_hosted() -> None:
    text = explain(plainly_counted(), {"statestore.cache.max.bytes": "0"}, {"in": 2})
    assert "caching is off" in text
    assert "transformWithState" in text
    assert "2 tasks in 2 groups" in text


def test_windows_need_python() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_with_no_grace(1000)
    builder.stream("in", TEXTS).group_by_key().windowed_by(windows).count()
    assert "stream time" in refusal(builder.build())


def test_sums_as_expressions_are_sparks_and_others_are_not() -> None:
    def reduced(adder: object) -> Topology:
        builder = StreamsBuilder()
        stream = builder.stream("in", Consumed.with_(TEXT, LongSerde()))
        stream.group_by_key(Grouped.with_(TEXT, LongSerde())).reduce(adder).to_stream().to("out")
        return builder.build()

    (section,) = cut_topology(reduced(aggregate + value), TaskSettings()).sections
    assert section.aggregate is not None
    assert "only counts" in refusal(reduced(aggregate * value))
    assert "only counts" in refusal(reduced(lambda old, new: old + new))


def test_dead_letters_need_python() -> None:
    assert "dead letters" in refusal(popular(), errors_dead_letter_queue_topic_name="letters")


def test_operators_that_only_python_has_are_named() -> None:
    builder = StreamsBuilder()
    builder.table("in", TEXTS).to_stream().to("out")
    assert refusal(builder.build()).startswith("TableSource")


def test_each_part_of_a_mixed_topology_says_how_it_runs_and_why() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", TEXTS)
    stream.to("copy", Produced.with_(TEXT, TEXT))
    counted = stream.map_values(str.upper).group_by_key().count().to_stream()
    counted.to("out", Produced.with_(TEXT, LongSerde()))
    stream.for_each(print)

    lines = explain(builder.build(), {}, {"in": 2}).splitlines()

    assert lines[0] == "One Spark query of 2 native sections and 2 stages with Python."
    assert "Native section 1: expressions from topic to topic, without Python" in lines
    assert "Native section 2: an aggregation, with Python before it (mapInArrow, no state)" in lines
    (mapped,) = (line for line in lines if line.startswith("  KSTREAM-MAPVALUES"))
    assert "Python, no state; calls" in mapped
    reasons = lines[lines.index("In Python because of:") + 1 :]
    assert any("KSTREAM-MAPVALUES" in reason and "calls a Python function" in reason for reason in reasons)
    assert any("KSTREAM-FOREACH" in reason for reason in reasons)
