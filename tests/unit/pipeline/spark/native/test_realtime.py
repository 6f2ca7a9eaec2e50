"""Which topologies real-time mode carries, and what it says about the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.spark.explain import explain
from moldau.pipeline.spark.native.realtime import realtime_refusal
from moldau.streams import (
    Consumed,
    Grouped,
    KStream,
    LongSerde,
    Materialized,
    Produced,
    Repartitioned,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    StringSerde,
    TimeWindowedSerde,
    TimeWindows,
    Topology,
    aggregate,
    value,
)

TEXT, NUMBER = StringSerde(), LongSerde()
TEXTS, NUMBERS = Produced.with_(TEXT, TEXT), Produced.with_(TEXT, NUMBER)


def topology(build: Callable[[StreamsBuilder, KStream], None]) -> Topology:
    builder = StreamsBuilder()
    build(builder, builder.stream("in", Consumed.with_(TEXT, TEXT)))
    return builder.build()


def copied(builder: StreamsBuilder, stream: KStream) -> None:
    stream.filter(value != "").to("out", TEXTS)


def counted(builder: StreamsBuilder, stream: KStream) -> None:
    stream.group_by_key().count().to_stream().to("counts", NUMBERS)
    stream.group_by(value, Grouped.with_(TEXT, TEXT)).count().to_stream().filter(value > 1).to("often", NUMBERS)


def in_windows(builder: StreamsBuilder, stream: KStream) -> None:
    for size in (1000, 5000):
        windows = TimeWindows.of_size_with_no_grace(size)
        counts = stream.group_by_key().windowed_by(windows).count()
        counts.to_stream().to(f"windows-{size}", Produced.with_(TimeWindowedSerde(TEXT, size), NUMBER))


def beside(builder: StreamsBuilder, stream: KStream) -> None:
    counted(builder, stream)
    copied(builder, stream)


def mixed(builder: StreamsBuilder, stream: KStream) -> None:
    counted(builder, stream)
    in_windows(builder, stream)


@pytest.mark.parametrize("build", [copied, counted, in_windows, beside, mixed])
def test_expressions_and_native_aggregations_are_carried(build: Callable[[StreamsBuilder, KStream], None]) -> None:
    assert realtime_refusal(topology(build), TaskSettings()) is None
    batches = explain(topology(build), {"application.id": "a"}, {"in": 1})
    assert batches.endswith("moldau.latency=realtime is possible")
    told = explain(topology(build), {"application.id": "a", "moldau.latency": "realtime"}, {"in": 1})
    assert told.startswith("One Spark query in real-time mode")


def test_the_explanation_tells_what_is_other_than_in_batches() -> None:
    told = explain(topology(in_windows), {"application.id": "a", "moldau.latency": "realtime"}, {"in": 1})
    assert "2 aggregations in one groupBy: every change is emitted" in told
    assert "A window takes records for at least a day after its end" in told


def repartitioned(builder: StreamsBuilder, stream: KStream) -> None:
    counted(builder, stream)
    stream.repartition(Repartitioned.with_(TEXT, TEXT)).to("out", TEXTS)


def twice(builder: StreamsBuilder, stream: KStream) -> None:
    counts = stream.group_by_key().count().to_stream()
    counts.group_by_key(Grouped.with_(TEXT, NUMBER)).reduce(aggregate + value).to_stream().to("sums", NUMBERS)


def joined(builder: StreamsBuilder, stream: KStream) -> None:
    stream.join(builder.table("table", Consumed.with_(TEXT, TEXT)), lambda one, other: one).to("out", TEXTS)


def globally(builder: StreamsBuilder, stream: KStream) -> None:
    builder.global_table("everywhere", Consumed.with_(TEXT, TEXT))
    copied(builder, stream)


def in_python(builder: StreamsBuilder, stream: KStream) -> None:
    stream.map_values(str.upper).group_by_key(Grouped.with_(TEXT, TEXT)).count().to_stream().to("out", NUMBERS)


def reduced(builder: StreamsBuilder, stream: KStream) -> None:
    stream.group_by_key().reduce(lambda one, other: one + other).to_stream().to("out", TEXTS)


def in_sessions(builder: StreamsBuilder, stream: KStream) -> None:
    stream.group_by_key().windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(5)).count()


def sliding(builder: StreamsBuilder, stream: KStream) -> None:
    windows = SlidingWindows.of_time_difference_with_no_grace(5)
    stream.group_by_key().windowed_by(windows).count(Materialized.with_(TEXT, NUMBER))


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (repartitioned, "Spark does not know which partition"),
        (twice, "one step with state"),
        (joined, "runs in Python only"),
        (globally, "a global table is kept by Python only"),
        (in_python, "calls a Python function"),
        (reduced, "only counts, and sums, minima and maxima"),
        (in_sessions, "only tumbling and hopping ones"),
        (sliding, "only tumbling and hopping ones"),
    ],
)
def test_others_are_refused_with_the_operator_and_the_reason(
    build: Callable[[StreamsBuilder, KStream], None], reason: str
) -> None:
    refusal = realtime_refusal(topology(build), TaskSettings())
    assert refusal is not None
    assert reason in str(refusal)
    assert f"{refusal.node.name} (test_realtime.py:" in str(refusal)
    config = {"application.id": "a", "moldau.latency": "realtime"}
    assert explain(topology(build), config, {"in": 1, "table": 1}).startswith(
        "moldau.latency=realtime is not possible:"
    )
