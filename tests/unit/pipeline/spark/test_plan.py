from __future__ import annotations

import pytest

from moldau.pipeline.ir.errors import CopartitioningError
from moldau.pipeline.spark.placement import shuffle_partition
from moldau.pipeline.spark.plan import Plan, Unit
from moldau.streams import Consumed, Grouped, Materialized, Produced, StreamsBuilder, StringSerde, Topology

TEXT = StringSerde()
TEXTS = Consumed.with_(TEXT, TEXT)


def word_count() -> Topology:
    builder = StreamsBuilder()
    lines = builder.stream("lines", TEXTS)
    words = lines.flat_map_values(str.split).group_by(lambda _, word: word, Grouped.with_(TEXT, TEXT))
    words.count(Materialized.as_("counts")).to_stream().to("counted")
    return builder.build()


def self_feeding() -> Topology:
    """The stream joins a table that is made of itself behind a repartitioning by another key, and back."""
    builder = StreamsBuilder()
    stream = builder.stream("in", TEXTS)
    table = stream.group_by(lambda key, value: value, Grouped.with_(TEXT, TEXT)).reduce(lambda old, new: new)
    stream.join(table, lambda one, other: one + other).to("out", Produced.with_(TEXT, TEXT))
    return builder.build()


def test_what_feeds_comes_first_and_stateless_work_needs_no_slots() -> None:
    plan = Plan.of(word_count(), {"lines": 4}, 2)

    before, after = plan.stages
    assert (before.is_stateless, after.is_stateless) == (True, False)
    assert before.units == {}
    assert sorted(unit.partition for units in after.units.values() for unit in units) == [0, 1, 2, 3]


def test_partitions_are_spread_over_sparks_tasks() -> None:
    stage = Plan.of(word_count(), {"lines": 4}, 2).stages[-1]
    shares = [shuffle_partition(slot, 2) for slot in stage.units]
    assert sorted(shares) == [0, 0, 1, 1]


def test_a_repartitioning_knows_the_slot_of_each_partition() -> None:
    plan = Plan.of(word_count(), {"lines": 3}, 2)
    (name,) = plan.reader_of
    number, slots = plan.targets(name)

    reader = plan.stages[-1]
    assert plan.inputs[number].node.name == name
    assert [reader.units[slot][0].partition for slot in slots] == [0, 1, 2]


def test_sub_topologies_that_feed_each_other_share_one_slot() -> None:
    plan = Plan.of(self_feeding(), {"in": 2}, 2)

    (stage,) = plan.stages
    ((slot, units),) = stage.units.items()
    assert stage.cycles == {slot}
    assert set(units) == {
        Unit(sub_topology.index, partition) for sub_topology in stage.sub_topologies for partition in (0, 1)
    }


def test_an_extractor_of_timestamps_remembers_the_last_one() -> None:
    builder = StreamsBuilder()
    builder.stream("in", TEXTS.with_timestamp_extractor(lambda record, previous: previous + 1)).to("out")
    assert not Plan.of(builder.build(), {"in": 1}, 1).is_stateless


def test_inputs_and_outputs_are_numbered_once() -> None:
    builder = StreamsBuilder()
    builder.stream(["a", "b"], TEXTS).merge(builder.stream("c", TEXTS)).to("out")
    plan = Plan.of(builder.build(), {"a": 1, "b": 1, "c": 1}, 1)

    assert [(point.index, point.topic) for point in plan.inputs] == [(0, "a"), (1, "b"), (2, "c")]
    assert [point.index for point in plan.outputs] == list(range(len(plan.outputs)))


def test_changes_of_a_queryable_store_have_an_output() -> None:
    assert "store:counts" in {point.name for point in Plan.of(word_count(), {"lines": 1}, 1).outputs}


def test_topics_that_do_not_fit_together_are_refused_with_the_users_line() -> None:
    builder = StreamsBuilder()
    stream, table = builder.stream("stream", TEXTS), builder.table("table", TEXTS)
    stream.join(table, lambda one, other: one + other).to("out")

    with pytest.raises(CopartitioningError, match=r"stream has 4, table has 3.*test_plan\.py"):
        Plan.of(builder.build(), {"stream": 4, "table": 3}, 2)
