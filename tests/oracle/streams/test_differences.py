"""What differs from Kafka Streams on purpose, one by one, and what both refuse; differences.md explains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.oracle.streams.comparison import Result, oracle_result
from tests.oracle.streams.jvm import KafkaStreamsOracle, needs_kafka_streams
from tests.oracle.streams.running import run

pytestmark = pytest.mark.java
Operator = dict[str, Any]


@pytest.fixture(scope="module")
def kafka_streams() -> Iterator[KafkaStreamsOracle]:
    needs_kafka_streams()
    with KafkaStreamsOracle() as oracle:
        yield oracle


def stream(identity: str, topic: str, **details: Any) -> Operator:
    return {"id": identity, "op": "stream", "topic": topic, **details}


def table(identity: str, topic: str, **details: Any) -> Operator:
    return {"id": identity, "op": "table", "topic": topic, **details}


def then(identity: str, op: str, *inputs: str, **details: Any) -> Operator:
    return {"id": identity, "op": op, "in": list(inputs), **details}


def record(topic: str, key: str | None, value: str | None, timestamp: int) -> dict[str, Any]:
    return {"topic": topic, "key": key, "value": value, "timestamp": timestamp}


def both(
    kafka_streams: KafkaStreamsOracle, operators: list[Operator], *inputs: dict[str, Any], **details: Any
) -> tuple[Result, Result]:
    case = {"id": "difference", "ops": operators, "inputs": list(inputs), **details}
    return oracle_result(kafka_streams.ask(case)), run(case)


def values(result: Result) -> list[str]:
    return ["null" if output.value is None else output.value.decode() for output in result.outputs]


def test_a_left_join_with_grace_takes_a_record_without_a_key(kafka_streams: KafkaStreamsOracle) -> None:
    operators = [
        stream("s", "in"),
        table("t", "rows", **{"as": {"store": "rows", "versioned": 100}}),
        then("j", "stream_table_join", "s", "t", kind="left", grace=5, joiner={"fn": "pair"}),
        then("o", "to", "j", topic="out"),
    ]
    theirs, ours = both(kafka_streams, operators, record("in", None, "x", 1))
    assert "NullPointerException" in str(theirs.error)
    assert values(ours) == ["(x,null)"]


def test_a_global_table_needs_no_name_for_its_store(kafka_streams: KafkaStreamsOracle) -> None:
    operators = [
        stream("s", "in"),
        {"id": "g", "op": "global_table", "topic": "rows", "as": {}},
        then("j", "global_join", "s", "g", kind="left", selector={"fn": "key_text"}, joiner={"fn": "pair"}),
        then("o", "to", "j", topic="out"),
    ]
    theirs, ours = both(kafka_streams, operators, record("in", "a", "x", 1))
    assert "Global stores" in str(theirs.error)
    assert values(ours) == ["(x,null)"]


def test_a_foreign_key_join_may_ask_a_transformer_with_a_store(kafka_streams: KafkaStreamsOracle) -> None:
    operators = [
        table("l", "left"),
        table("r", "right"),
        {"id": "k", "op": "add_store", "store": "counts", "kind": "key-value"},
        then("v", "transform_values", "r", stores=["counts"]),
        then("j", "foreign_key_join", "l", "v", kind="inner", joiner={"fn": "pair"}, extractor={"fn": "first"}),
        then("s", "to_stream", "j"),
        then("o", "to", "s", topic="out"),
    ]
    theirs, ours = both(kafka_streams, operators, record("right", "x", "row", 1), record("left", "a", "x", 2))
    assert "no access to StateStore counts" in str(theirs.error)
    assert len(ours.outputs) == 1
    assert ours.error is None


def test_a_held_record_whose_joiner_fails_does_not_block_the_others(kafka_streams: KafkaStreamsOracle) -> None:
    operators = [
        stream("l", "left"),
        stream("r", "right"),
        then(
            "j",
            "stream_join",
            "l",
            "r",
            kind="outer",
            window={"before": 5, "after": 5, "grace": 0},
            joiner={"fn": "failing", "mod": 4, "rest": 1},
        ),
        then("o", "to", "j", topic="out"),
    ]
    inputs = [record("left", "a", "one,two,three", 0)]
    inputs += [record("left", "c", "x", timestamp) for timestamp in (20, 40, 60, 80)]
    handler = "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler"
    config = {"processing.exception.handler": handler}
    theirs, ours = both(kafka_streams, operators, *inputs, config=config)
    assert values(theirs) == []
    assert values(ours) == ["(x,null)", "(x,null)"]


def test_repartitionings_behind_a_merge_can_be_one_with_others(kafka_streams: KafkaStreamsOracle) -> None:
    operators = [
        stream("s", "in"),
        then("k", "select_key", "s", **{"with": {"fn": "first"}}),
        then("f", "filter", "k", **{"with": {"fn": "has_value"}}),
        then("g", "group_by_key", "f"),
        then("c", "count", "g"),
        stream("t", "more"),
        then("m", "merge", "f", "t"),
        then("h", "group_by_key", "m"),
        then("d", "count", "h"),
        then("u", "to_stream", "d"),
        then("o", "to", "u", topic="out"),
    ]
    config = {"topology.optimization": "merge.repartition.topics"}
    theirs, ours = both(kafka_streams, operators, record("in", "a", "x,y", 1), config=config)
    assert "Found a null keyChangingChild node" in str(theirs.error)
    assert [output.key for output in ours.outputs] == [b"x"]
    assert ours.description.count("Sink: ") == 2


def test_a_window_store_with_duplicates_finds_its_first_value(kafka_streams: KafkaStreamsOracle) -> None:
    operators = [
        stream("s", "in"),
        {"id": "w", "op": "add_store", "store": "w", "kind": "window", "size": 5, "retention": 50, "duplicates": True},
        then("p", "process", "s", processor="neighbours", stores=["w"], reach=1, duplicates=False),
        then("o", "to", "p", topic="out"),
    ]
    theirs, ours = both(kafka_streams, operators, record("in", "a", "x", 7), record("in", "a", "y", 8))
    assert values(theirs)[1].endswith(".null")
    assert values(ours)[1].endswith(".x")


def test_a_sliding_window_with_caching_may_have_a_null_aggregate(kafka_streams: KafkaStreamsOracle) -> None:
    operators = [
        stream("s", "in"),
        then("f", "flat_map_values", "s", **{"with": {"fn": "repeat", "mod": 3}}, has_key=True),
        then("g", "group_by_key", "f"),
        then("w", "windowed_by", "g", window={"kind": "sliding", "difference": 5, "grace": 3}),
        then("a", "aggregate", "w", adder={"fn": "nullable", "mod": 6}),
        then("t", "to_stream", "a"),
        then("o", "to", "t", topic="out"),
    ]
    config = {"statestore.cache.max.bytes": "1000000"}
    inputs = [record("in", "a", "x", 86), record("in", "a", "x12", 87)]
    theirs, ours = both(kafka_streams, operators, *inputs, config=config)
    assert '"next.value" is null' in str(theirs.error)
    assert ours.error is None


def test_a_late_answer_of_a_foreign_key_join_may_come_before_the_left_row(kafka_streams: KafkaStreamsOracle) -> None:
    extractor = {"fn": "nullable_bucket", "mod": 4}
    pairs, first = {"fn": "nullable_pair", "mod": 6}, {"fn": "pair"}
    operators = [
        table("t", "in"),
        then("j", "foreign_key_join", "t", "t", kind="left", joiner=first, extractor=extractor),
        then("k", "foreign_key_join", "j", "t", kind="left", joiner=pairs, extractor=extractor),
        then("s", "to_stream", "k"),
        then("o", "to", "s", topic="out"),
    ]
    inputs = [record("in", "a", "ß,y,x4", 1004), record("in", "b2", "h", 1061)]
    theirs, ours = both(kafka_streams, operators, *inputs)
    assert [output.value for output in theirs.outputs if output.key == b"a"][1:] == [None]
    assert [output.value for output in ours.outputs if output.key == b"a"][2:] == [None]


def test_a_step_hides_the_history_of_a_table_from_a_foreign_key_join(kafka_streams: KafkaStreamsOracle) -> None:
    operators = [
        table("t", "left", **{"as": {"store": "left", "versioned": 200}}),
        then("m", "map_values", "t", **{"with": {"fn": "keep_null"}, "as": {}}, has_key=True),
        table("u", "right"),
        then("j", "foreign_key_join", "m", "u", kind="left", joiner={"fn": "pair"}, extractor={"fn": "first"}),
        then("s", "to_stream", "j"),
        then("o", "to", "s", topic="out"),
    ]
    theirs, ours = both(kafka_streams, operators, record("left", "a", "x", 31), record("left", "a", "q", 22))
    assert values(theirs) == ["(xk,null)"]
    assert values(ours) == ["(xk,null)", "(qk,null)"]


def test_a_cogroup_does_not_add_to_a_window_that_only_a_cache_still_knows(kafka_streams: KafkaStreamsOracle) -> None:
    operators = [
        stream("s", "one"),
        stream("t", "two"),
        then("g", "group_by_key", "s"),
        then("h", "group_by_key", "t"),
        then("c", "cogroup", "g", "h", adders=[{"fn": "concat"}, {"fn": "concat"}]),
        then("w", "windowed_by", "c", window={"kind": "time", "size": 60_000, "grace": 0}),
        then("a", "aggregate", "w", initial=""),
        then("m", "to_stream", "a"),
        then("o", "to", "m", topic="out"),
    ]
    inputs = [record("one", "a", "x", 0), record("two", "a", "y", 600_000), record("one", "a", "z", 1)]
    roomy, tight = ({"statestore.cache.max.bytes": size} for size in ("1000000", "100"))
    theirs, ours = both(kafka_streams, operators, *inputs, config=roomy)
    assert values(theirs) == ["|x", "|y", "|x|z"]
    assert values(ours) == ["|x", "|y", "|z"]
    theirs, ours = both(kafka_streams, operators, *inputs, config=tight)
    assert values(theirs) == values(ours) == ["|x", "|y", "|z"]


def test_a_join_does_not_find_a_window_that_only_a_cache_still_knows(kafka_streams: KafkaStreamsOracle) -> None:
    window = {"kind": "time", "size": 10_000, "grace": 0}
    operators = [
        stream("s", "one"),
        stream("t", "two"),
        then("g", "group_by_key", "s"),
        then("h", "group_by_key", "t"),
        then("v", "windowed_by", "g", window=window),
        then("w", "windowed_by", "h", window=window),
        then("a", "reduce", "v", adder={"fn": "concat"}),
        then("b", "reduce", "w", adder={"fn": "concat"}),
        then("j", "table_join", "a", "b", kind="inner", joiner={"fn": "pair"}),
        then("m", "to_stream", "j"),
        then("o", "to", "m", topic="out"),
    ]
    inputs = [record("one", "a", "x", 0), record("one", "b", "y", 600_000), record("two", "a", "z", 1)]
    roomy, tight = ({"statestore.cache.max.bytes": size} for size in ("1000000", "100"))
    theirs, ours = both(kafka_streams, operators, *inputs, config=roomy)
    assert values(theirs) == ["(x,z)"]
    assert values(ours) == []
    theirs, ours = both(kafka_streams, operators, *inputs, config=tight)
    assert values(theirs) == values(ours) == []


def test_a_session_does_not_grow_into_one_that_only_a_cache_still_knows(kafka_streams: KafkaStreamsOracle) -> None:
    operators = [
        stream("s", "in"),
        then("g", "group_by_key", "s"),
        then("w", "windowed_by", "g", window={"kind": "session", "gap": 600_000, "grace": 0}),
        then("a", "aggregate", "w", initial="", adder={"fn": "concat"}, merger={"fn": "merge"}),
        then("m", "to_stream", "a"),
        then("o", "to", "m", topic="out"),
    ]
    times = (("z", 73_740_001), ("z", 74_880_000), ("q", 74_340_001))
    inputs = [record("in", "a", value, time) for value, time in times]
    theirs, ours = both(kafka_streams, operators, *inputs, config={"statestore.cache.max.bytes": "1000000"})
    assert values(theirs)[-1] == "[[+|z]+|z]|q"
    assert values(ours)[-1] == "[+|z]|q"


REFUSED = {
    "a join with grace on a table without history": [
        stream("s", "in"),
        table("t", "rows"),
        then("j", "stream_table_join", "s", "t", kind="left", grace=5, joiner={"fn": "pair"}),
    ],
    "one topic as a stream and as a table": [stream("s", "in"), table("t", "in")],
    "two stores of one name": [
        table("t", "one", **{"as": {"store": "same"}}),
        table("u", "two", **{"as": {"store": "same"}}),
    ],
    "two operators of one name": [stream("s", "one", name="same"), stream("t", "two", name="same")],
    "two repartition topics of one cogroup without names": [
        stream("s", "one"),
        stream("t", "two"),
        then("g", "group_by", "s", **{"with": {"fn": "first"}}),
        then("h", "group_by", "t", **{"with": {"fn": "first"}}),
        then("c", "cogroup", "g", "h", adders=[{"fn": "concat"}, {"fn": "concat"}]),
        then("a", "aggregate", "c", initial=""),
    ],
    "a suppressed table with history": [
        table("t", "rows", **{"as": {"store": "rows", "versioned": 100}}),
        then("w", "suppress", "t", wait=5),
    ],
    "a wait for windows where there are none": [table("t", "rows"), then("w", "suppress", "t")],
}


@pytest.mark.parametrize("operators", REFUSED.values(), ids=REFUSED)
def test_both_refuse(kafka_streams: KafkaStreamsOracle, operators: list[Operator]) -> None:
    theirs, ours = both(kafka_streams, operators)
    assert theirs.error
    assert ours.error
    assert "Error" in ours.error
