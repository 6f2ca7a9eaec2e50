"""Descriptions that make no sense: refused where they are written, with the user's line and a way out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from moldau.streams import (
    BufferConfig,
    Consumed,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    Serdes,
    SessionWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyError,
    UnlimitedWindows,
    value,
)

WINDOWS = TimeWindows.of_size_with_no_grace(1000)
CLOSE = JoinWindows.of_time_difference_with_no_grace(1000)


def first(left: Any, right: Any) -> Any:
    return left


def by_value(key: Any, value: Any) -> Any:
    return value


async def waiting(value: Any) -> Any:
    return value


class Counting:
    def process(self, record: Any) -> None: ...


def two_tables_one_store(b: StreamsBuilder) -> None:
    b.table("one", materialized=Materialized.as_("rows"))
    b.table("two", materialized=Materialized.as_("rows"))


def table_and_stream_of_one_topic(b: StreamsBuilder) -> None:
    b.stream("in")
    b.table("in")


def overlapping_streams(b: StreamsBuilder) -> None:
    b.stream("a")
    b.stream(["a", "b"])


def topic_of_a_pattern(b: StreamsBuilder) -> None:
    b.stream(re.compile("in-.*"))
    b.table("in-1")


def two_serdes_of_one_topic(b: StreamsBuilder) -> None:
    b.stream("in", Consumed.with_(Serdes.string(), Serdes.string()))
    b.stream("in", Consumed.with_(Serdes.string(), Serdes.long()))


def two_resets_of_one_topic(b: StreamsBuilder) -> None:
    b.stream("in", Consumed(offset_reset="earliest"))
    b.stream("in", Consumed(offset_reset="latest"))


def two_clocks_of_one_topic(b: StreamsBuilder) -> None:
    b.stream("in")
    b.stream("in", Consumed(timestamp_extractor=lambda record, previous: previous))


def two_nodes_one_name(b: StreamsBuilder) -> None:
    b.stream("in").map_values(str, "mine").filter(by_value, "mine")


def branch_after_the_end(b: StreamsBuilder) -> None:
    branching = b.stream("in").split()
    branching.default_branch()
    branching.branch(by_value)


def versioned_too_briefly(b: StreamsBuilder) -> None:
    rows = b.table("rows", materialized=Materialized.as_(Stores.persistent_versioned_key_value_store("v", 10)))
    b.stream("in").join(rows.filter(by_value), first, joined=Joined(grace_ms=20))


def suppressed_versions(b: StreamsBuilder) -> None:
    rows = b.table("rows", materialized=Materialized.as_(Stores.persistent_versioned_key_value_store("v", 10)))
    rows.suppress(Suppressed.until_time_limit(5, BufferConfig.unbounded()))


def two_unnamed_groups_cogrouped(b: StreamsBuilder) -> None:
    one, two = b.stream("one").group_by(by_value), b.stream("two").group_by(by_value)
    one.cogroup(lambda k, v, a: a).cogroup(two, lambda k, v, a: a).aggregate(int)


REFUSED: list[tuple[Callable[[StreamsBuilder], Any], str]] = [
    (two_tables_one_store, r"a store called rows exists already \(test_bad_input.py:\d+\); choose another name"),
    (table_and_stream_of_one_topic, r"topic in is read already \(test_bad_input.py:\d+\).*to_table"),
    (overlapping_streams, "topic a .* and topics a, b overlap"),
    (topic_of_a_pattern, "topics like in-.* is read already"),
    (two_serdes_of_one_topic, r"topic in is read with value_serde StringSerde\(\).*again with LongSerde\(\)"),
    (two_resets_of_one_topic, "topic in is read with offset_reset"),
    (two_clocks_of_one_topic, "topic in is read with one timestamp_extractor .* and again with another or none"),
    (two_nodes_one_name, "the name mine is taken by another operator"),
    (two_unnamed_groups_cogrouped, "is taken by another operator; name one of them with Grouped.as_"),
    (branch_after_the_end, "the branches of .* are complete"),
    (versioned_too_briefly, "a grace period of 20 ms needs as much history, but the table .* keeps 10 ms"),
    (suppressed_versions, "versioned table cannot be suppressed"),
    (lambda b: b.stream([]), "a topic's name, several, or a pattern is needed"),
    (lambda b: b.stream(""), "a topic's name"),
    (lambda b: b.stream(5), "a topic's name.*not 5"),
    (
        lambda b: Stores.key_value_store_builder("seen", Serdes.string(), Serdes.string()),
        r"such as Stores.persistent_key_value_store\(...\), not 'seen'",
    ),
    (lambda b: b.stream("in", Consumed(offset_reset="middle")), "'earliest' or 'latest', not 'middle'"),
    (lambda b: b.stream("in", Consumed.with_(Serdes.string, None)), "is not a serde"),  # type: ignore[arg-type]
    (lambda b: Materialized.with_(Serdes.string, None), "is not a serde"),
    (lambda b: Joined.with_(Serdes.string), "is not a serde"),
    (lambda b: StreamJoined.with_(None, Serdes.string), "is not a serde"),
    (
        lambda b: Stores.key_value_store_builder(Stores.persistent_key_value_store("s"), Serdes.string, None),
        "is not a serde",
    ),
    (lambda b: b.stream("in", Consumed(timestamp_extractor=lambda record: 1)), "timestamp_extractor calls"),
    (lambda b: b.stream("in").filter(by_value, "no good name"), "cannot be a name"),
    (lambda b: b.stream("in", Consumed(name="no good name")), "cannot be a name"),
    (lambda b: b.stream("in").filter(lambda value: True), r"filter calls its function with \(key, value\)"),
    (lambda b: b.stream("in").group_by_key().windowed_by(CLOSE), "windowed_by takes TimeWindows"),
    (lambda b: b.stream("in").group_by_key().windowed_by(1000), "windowed_by takes TimeWindows"),
    (
        lambda b: b.stream("in").group_by_key().cogroup(lambda k, v, a: a).windowed_by(1000),
        "windowed_by takes TimeWindows",
    ),
    (
        lambda b: b.stream("in").group_by_key().windowed_by(WINDOWS).count(Materialized(retention_ms=10)),
        "a retention of 10 ms is too short: these windows need 1000 ms",
    ),
    (
        lambda b: b.stream("in").group_by_key().windowed_by(UnlimitedWindows.of()).emit_strategy(
            EmitStrategy.ON_WINDOW_CLOSE
        ),
        "never closes",
    ),
    (
        lambda b: b.stream("in").group_by_key().windowed_by(WINDOWS).emit_strategy("on close"),
        "emit_strategy takes EmitStrategy.ON_UPDATE or EmitStrategy.ON_WINDOW_CLOSE, not 'on close'",
    ),
    (lambda b: b.stream("in").join(b.stream("other"), first), "two streams needs JoinWindows"),
    (lambda b: b.stream("in").join(b.stream("other"), first, WINDOWS), "two streams needs JoinWindows"),
    (lambda b: b.stream("in").join(b.table("rows"), first, CLOSE), "has no windows"),
    (lambda b: b.stream("in").outer_join(b.table("rows"), first, None), "no outer_join"),
    (lambda b: b.stream("in").join(b.global_table("rows"), first), "needs key_selector"),
    (lambda b: b.stream("in").join(b.table("rows"), first, joined=StreamJoined()), "takes Joined, not StreamJoined"),
    (lambda b: b.stream("in").join("rows", first), "a stream joins a stream, a table or a global table, not str"),
    (lambda b: b.stream("in").join(b.table("rows"), first, joined=Joined(grace_ms=5)), "persistent_versioned"),
    (lambda b: b.table("in").join(b.stream("other"), first), "join of a table needs another table, not KStream"),
    (lambda b: b.stream("in").join(StreamsBuilder().table("rows"), first), "the same StreamsBuilder"),
    (lambda b: b.stream("in").merge(StreamsBuilder().stream("in")), "the same StreamsBuilder"),
    (lambda b: b.stream("in").join(StreamsBuilder().stream("in"), first, CLOSE), "the same StreamsBuilder"),
    (lambda b: b.table("in").join(StreamsBuilder().table("in"), first), "the same StreamsBuilder"),
    (
        lambda b: b.stream("in").group_by_key().cogroup(lambda k, v, a: a).cogroup(b.stream("x"), lambda k, v, a: a),
        "cogroup takes a grouped stream",
    ),
    (lambda b: b.table("in").suppress(BufferConfig.unbounded()), "suppress takes Suppressed"),
    (
        lambda b: b.table("in").suppress(Suppressed.until_window_closes(BufferConfig.unbounded())),
        "until_window_closes needs windows, but no operator before this point has any",
    ),
    (lambda b: Suppressed.until_window_closes(BufferConfig.max_records(5)), "cannot be emitted early"),
    (lambda b: b.stream("in").process(Counting, "nowhere"), "there is no store called nowhere"),
    (lambda b: b.add_state_store("seen"), "takes what Stores builds"),
    (
        lambda b: Stores.window_store_builder(
            Stores.persistent_key_value_store("s"), Serdes.string(), Serdes.string()
        ),
        "store s is used as a window store but is a key-value store",
    ),
    (lambda b: b.stream("in").repartition(Repartitioned(number_of_partitions=0)), "0 partitions are too few"),
    (lambda b: b.stream("in").to("out", Produced(partitioner=lambda key: 0)), "the partitioner calls its function"),
    (
        lambda b: b.global_table(
            "g", materialized=Materialized.as_(Stores.persistent_versioned_key_value_store("v", 10))
        ),
        "a global table cannot be versioned",
    ),
    (
        lambda b: b.stream("in").group_by_key().windowed_by(
            SessionWindows.of_inactivity_gap_with_no_grace(5)
        ).aggregate(int, lambda k, v, a: a, lambda one, other: one),
        r"the session merger calls its function with \(key, one, other\)",
    ),
    (lambda b: Named.as_("a b"), "cannot be a name"),
    (lambda b: b.stream("in", Serdes.string()), r"Consumed is needed here, such as Consumed.with_\(.*not StringSerde"),
    (lambda b: b.table("in", Materialized.as_("rows")), "Consumed is needed here.*not Materialized"),
    (lambda b: b.stream("in").to("out", Serdes.string()), "Produced is needed here.*not StringSerde"),
    (lambda b: b.stream("in").group_by_key().count("sums"), r"such as Materialized.as_\('sums'\), not 'sums'"),
    (lambda b: b.stream("in").group_by(by_value, Serdes.string()), "Grouped is needed here"),
    (lambda b: b.table("in").filter(by_value, "kept"), r"Materialized.as_\('kept'\)"),
    (lambda b: b.stream("in").filter(by_value, Grouped.as_("kept")), "Named is needed here, not Grouped"),
    (lambda b: b.stream("in").map_values(by_value), "takes other arguments; map_values_with_key gives it the key"),
    (lambda b: b.stream("in").map_values(waiting), "map_values needs a plain function, and waiting is async"),
    (lambda b: b.stream("in").process(Counting()), r"give it the class Counting .* not Counting\(...\)"),
    (lambda b: b.stream("in").process(object), "needs a processor with a method process, and object has none"),
    (lambda b: b.stream("in").process(Counting, ["seen"]), r"given by name, one after the other, not as \['seen'\]"),
]  # fmt: skip


@pytest.mark.parametrize(("describe", "message"), REFUSED, ids=[str(nth) for nth in range(len(REFUSED))])
def test_nonsense_is_refused_where_it_is_written(describe: Callable[[StreamsBuilder], Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        describe(StreamsBuilder())


def test_an_empty_topology_is_refused() -> None:
    with pytest.raises(TopologyError, match="empty: read a topic"):
        StreamsBuilder().build()


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(TopologyError) as refused:
        StreamsBuilder().stream("in").group_by_key().windowed_by(5)  # type: ignore[arg-type]
    assert refused.value.origin.file.endswith("test_bad_input.py")
    assert f"test_bad_input.py:{refused.value.origin.line}" in str(refused.value)


@pytest.mark.parametrize(
    ("reach", "hint"),
    [
        (lambda b: b.stream("in").mapValues, "KStream has no mapValues; in Python it is map_values"),
        (lambda b: b.stream("in").foreach, "in Python it is for_each"),
        (lambda b: b.globalTable, "in Python it is global_table"),
        (lambda b: b.stream("in").windowed_by, "KStream has no windowed_by; group the records first"),
        (lambda b: b.stream("in").windowedBy, "group the records first"),
        (lambda b: b.table("in").to, "make it a stream first, with to_stream"),
        (lambda b: b.table("in").count, "group its rows first"),
        (lambda b: b.stream("in").group_by_key().to_stream, "fold the groups first"),
        (lambda b: b.stream("in").group_by_key().windowed_by(WINDOWS).suppress, "a table has it"),
        (lambda b: b.stream("in").flatmap, "KStream has no flatmap; did you mean flat_map\\?"),
        (lambda b: b.stream("in").map_value, "did you mean map_values\\?"),
        (lambda b: Consumed.withKeySerde, "Consumed has no withKeySerde; in Python it is with_key_serde"),  # type: ignore[attr-defined]
        (lambda b: Consumed.with_(None, None).withName, "in Python it is with_name"),  # type: ignore[attr-defined]
        (lambda b: Stores.inMemoryKeyValueStore, "in Python it is in_memory_key_value_store"),  # type: ignore[attr-defined]
        (lambda b: Serdes.String, "in Python it is string"),  # type: ignore[attr-defined]
        (lambda b: Serdes.ByteArray, r"use bytes\(\)"),  # type: ignore[attr-defined]
        (lambda b: TimeWindows.ofSizeWithNoGrace, "in Python it is of_size_with_no_grace"),  # type: ignore[attr-defined]
        (lambda b: Suppressed.untilWindowCloses, "in Python it is until_window_closes"),  # type: ignore[attr-defined]
        (lambda b: value.likes, r"an expression has no likes; a field is reached as \['likes'\]"),  # type: ignore[attr-defined]
        (lambda b: b.stream("in").nonsense, "'KStream' object has no attribute 'nonsense'"),
    ],
)
def test_a_method_that_is_not_there_says_what_is(reach: Callable[[StreamsBuilder], Any], hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        reach(StreamsBuilder())


def test_asking_whether_a_method_is_there_is_no_mistake() -> None:
    assert not hasattr(StreamsBuilder().stream("in"), "windowed_by")
