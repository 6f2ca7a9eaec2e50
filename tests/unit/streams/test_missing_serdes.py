"""A topology that lacks a serde is refused as soon as that is certain, with the operator and the user's line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.pipeline.ir.missing_serdes import MissingSerdeError
from moldau.streams import (
    Consumed,
    Grouped,
    JoinWindows,
    KafkaStreams,
    LongSerde,
    Produced,
    Serdes,
    StreamsBuilder,
    StringSerde,
    TopologyTestDriver,
)

TEXT = StringSerde()
READ = Consumed.with_(TEXT, TEXT)
APPLICATION = {"application.id": "shop", "bootstrap.servers": "localhost:1"}
DEFAULTS = {"default.key.serde": "string", "default.value.serde": "string"}


def source(builder: StreamsBuilder) -> None:
    builder.stream("orders").to("copies", Produced.with_(TEXT, TEXT))


def sink(builder: StreamsBuilder) -> None:
    builder.stream("orders", READ).map(lambda key, value: (len(key), len(value))).to("sizes")


def grouping(builder: StreamsBuilder) -> None:
    counted = builder.stream("orders", READ).group_by(lambda key, value: len(value)).count()
    counted.to_stream().to("counts", Produced.with_(LongSerde(), LongSerde()))


def folding(builder: StreamsBuilder) -> None:
    grouped = builder.stream("orders", READ).group_by_key()
    grouped.aggregate(lambda: 0.0, lambda key, value, total: total + float(value)).to_stream().for_each(
        lambda key, value: None
    )


def joining(builder: StreamsBuilder) -> None:
    left = builder.stream("left", READ)
    right = builder.stream("right", READ).map_values(len)
    left.join(right, lambda one, other: one, JoinWindows.of(1000)).for_each(lambda key, value: None)


CASES: list[tuple[Callable[[StreamsBuilder], None], str]] = [
    (source, r"KSTREAM-SOURCE-\d+ reads orders without a serde for keys: name one in Consumed"),
    (sink, r"KSTREAM-SINK-\d+ writes sizes without a serde for keys: name one in Produced"),
    (grouping, r"\S+ \S+ .*without a serde for keys: name one in (Grouped|Materialized)"),
    (folding, r"KSTREAM-AGGREGATE-\d+ keeps records in store \S+ without a serde for values: name one in Materialized"),
    (joining, r"KSTREAM-\S+ keeps records in store \S+ without a serde for values: name one in StreamJoined"),
]


@pytest.mark.parametrize(("describe", "words"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_it_is_refused_where_the_settings_are_known(describe: Callable[[StreamsBuilder], None], words: str) -> None:
    builder = StreamsBuilder()
    describe(builder)
    topology = builder.build()
    for refused in (
        lambda: TopologyTestDriver(topology),
        lambda: KafkaStreams(topology, APPLICATION),
        lambda: builder.build(APPLICATION),
    ):
        with pytest.raises(MissingSerdeError, match=words) as refusal:
            refused()
        assert f"({Path(__file__).name}:{refusal.value.origin.line})" in str(refusal.value)
        first, last = describe.__code__.co_firstlineno, max(line or 0 for *_, line in describe.__code__.co_lines())
        assert first < refusal.value.origin.line <= last


@pytest.mark.parametrize("describe", [source, sink, grouping, folding, joining])
def test_defaults_of_the_settings_are_enough(describe: Callable[[StreamsBuilder], None]) -> None:
    builder = StreamsBuilder()
    describe(builder)
    TopologyTestDriver(builder.build({**APPLICATION, **DEFAULTS}), DEFAULTS).close()


def test_settings_that_are_not_the_applications_decide_nothing() -> None:
    builder = StreamsBuilder()
    source(builder)
    builder.build({"topology.optimization": "all"})


def test_the_part_that_is_missing_is_named() -> None:
    builder = StreamsBuilder()
    source(builder)
    with pytest.raises(MissingSerdeError, match=re.escape("or set default.value.serde")):
        TopologyTestDriver(builder.build(), {"default.key.serde": "string"})


def test_what_is_never_written_needs_no_serde() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("orders", READ).map(lambda key, value: (object(), object()))
    stream.filter(lambda key, value: True).for_each(lambda key, value: None)
    TopologyTestDriver(builder.build()).close()
    grouped = StreamsBuilder()
    counted = grouped.stream("orders", READ).group_by(lambda k, v: v, Grouped.with_(TEXT, TEXT)).count()
    counted.to_stream().to("counts", Produced.with_(Serdes.string(), Serdes.long()))
    TopologyTestDriver(grouped.build()).close()
