"""Partitions that a user's function chooses: one, several, none, or left to the hash of the key."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.pipeline.cores.small_topologies import STRING, Run, both, function, stream

from moldau.pipeline.cores.failures import ProcessingError
from moldau.pipeline.ir import nodes as ir
from moldau.streams import (
    Consumed,
    LongSerde,
    Produced,
    Repartitioned,
    StreamsBuilder,
    TableJoined,
    TopologyTestDriver,
)


def sent_to(chosen: Any) -> list[int | None]:
    source = stream("in")
    out = ir.Sink(
        name="out",
        input=source,
        topic="out",
        key_serde=STRING,
        value_serde=STRING,
        partitioner=function(lambda topic, key, value, count: chosen),
    )
    run = Run(source, out, partitions=4)
    run.run.pipe("in", b"k", b"v", 1)
    return [row.partition for row in run.run.drain()]


@pytest.mark.parametrize(
    ("chosen", "partitions"),
    [(3, [3]), ({1, 2}, [1, 2]), ([2, 2, 0], [0, 2]), (range(4), [0, 1, 2, 3]), ((), []), (None, [None])],
)
def test_a_record_is_written_to_every_partition_that_was_chosen(chosen: Any, partitions: list[int | None]) -> None:
    assert sent_to(chosen) == partitions


@pytest.mark.parametrize("chosen", [4, -1, {0, 4}, "1", 1.0])
def test_a_partition_that_the_topic_does_not_have_is_refused(chosen: Any) -> None:
    with pytest.raises(ProcessingError, match=r"the partitioner chose .* which has partitions 0 to 3"):
        sent_to(chosen)


def test_a_record_sent_nowhere_is_counted() -> None:
    source = stream("in")
    nowhere = function(lambda topic, key, value, count: ())
    out = ir.Sink(name="out", input=source, topic="out", key_serde=STRING, value_serde=STRING, partitioner=nowhere)
    run = Run(source, out)
    run.pipe("in", "k", "v", 1)
    assert run.dropped() == {("out", "no partition chosen"): 1}


def test_a_stream_can_be_repartitioned_into_several_partitions_at_once() -> None:
    builder = StreamsBuilder()
    everywhere = Repartitioned.with_(STRING, STRING).with_stream_partitioner(lambda topic, key, value, count: {0, 1})
    counts = builder.stream("in", Consumed.with_(STRING, STRING)).repartition(everywhere).group_by_key().count()
    counts.to_stream().to("out", Produced.with_(STRING, LongSerde()))
    with TopologyTestDriver(builder.build(), partitions=2) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "v")
        out = driver.create_output_topic("out", STRING, LongSerde())

        assert out.read_key_values_to_list() == [("k", 1), ("k", 1)]


def test_a_foreign_key_join_wants_one_partition_for_each_key() -> None:
    builder = StreamsBuilder()
    left, right = (builder.table(topic, Consumed.with_(STRING, STRING)) for topic in ("left", "right"))
    joined = TableJoined.with_(None, lambda topic, key, value, count: {0, 1})
    left.foreign_key_join(right, lambda value: value, both, joined)
    with (
        TopologyTestDriver(builder.build(), {"default.value.serde": STRING}, partitions=2) as driver,
        pytest.raises(ProcessingError, match="a foreign-key join needs one partition for each key"),
    ):
        driver.create_input_topic("left", STRING, STRING).pipe_input("k", "v")
