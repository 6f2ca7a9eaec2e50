"""`topology.optimization`: what it may be, and what becomes of repartitionings and of self-joins."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.dsl.builder import StreamsBuilder
from moldau.pipeline.dsl.kstream import KStream
from moldau.pipeline.dsl.options.windows import JoinWindows
from moldau.pipeline.ir.copartitioning import partition_counts
from moldau.pipeline.ir.errors import CopartitioningError, TopologyError
from moldau.pipeline.ir.nodes import Repartition, StreamStreamJoin
from moldau.pipeline.ir.rewrites.optimizing import EACH, optimizations
from moldau.pipeline.ir.topology import Topology
from moldau.serdes.plain import StringSerde
from moldau.streams.settings import StreamsSettings

TEXT = StringSerde()
NEAR = JoinWindows.of_time_difference_with_no_grace(5)


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [
        (None, ()),
        ("none", ()),
        ("all", EACH),
        ("merge.repartition.topics", ("merge.repartition.topics",)),
        ("single.store.self.join, reuse.ktable.source.topics", (EACH[2], EACH[0])),
    ],
)
def test_a_setting_names_optimizations(setting: str | None, wanted: tuple[str, ...]) -> None:
    assert optimizations(setting) == frozenset(wanted)


@pytest.mark.parametrize("setting", ["most", "", "all,none", "all,merge.repartition.topics", True])
def test_a_wrong_setting_is_refused_with_what_it_may_be(setting: object) -> None:
    with pytest.raises(TopologyError, match="set none or all alone, or a comma-separated list of reuse"):
        StreamsBuilder().build({"topology.optimization": setting})
    with pytest.raises(InvalidConfigError, match=r"topology\.optimization is "):
        StreamsSettings.of({"application.id": "a", "bootstrap.servers": "b:1", "topology.optimization": setting})


def topology(build: Any, setting: str | None) -> Topology:
    builder = StreamsBuilder()
    build(builder.stream("in"))
    made = builder.build({} if setting is None else {"topology.optimization": setting})
    return made.with_default_serdes(key=TEXT, value=TEXT)


def repartitions(made: Topology) -> list[tuple[str, str]]:
    return [(node.topic, node.input.name) for node in made.nodes if isinstance(node, Repartition)]


def told(made: Topology, *records: tuple[str, str, int]) -> list[tuple[bytes | None, bytes | None, int]]:
    run = InMemoryRun(made, TaskSettings(cache_max_bytes=0), partitions=2)
    for key, value, timestamp in records:
        run.pipe("in", key.encode(), value.encode(), timestamp)
    return sorted((row.key, row.value, row.timestamp) for row in run.drain() if row.topic.startswith("out"))


def two_counts(stream: KStream) -> None:
    keyed = stream.select_key(lambda key, value: value[0], named="first-letter")
    keyed.group_by_key().count().to_stream().map_values(str).to("out1")
    keyed.filter(lambda key, value: len(value) > 1).group_by_key().count().to_stream().map_values(str).to("out2")


def test_repartitionings_after_one_change_of_keys_become_one() -> None:
    plain, merged = topology(two_counts, None), topology(two_counts, "merge.repartition.topics")
    assert len(repartitions(plain)) == 2
    assert repartitions(merged) == [(repartitions(plain)[0][0], "first-letter")]
    records = [("1", "ab", 1), ("2", "a", 2), ("3", "bc", 3)]
    assert told(merged, *records) == told(plain, *records)


def test_a_repartitioning_stays_behind_a_change_of_values_and_where_it_was_asked_for() -> None:
    def build(stream: KStream) -> None:
        keyed = stream.select_key(lambda key, value: value[0])
        keyed.map_values(str.upper).group_by_key().count().to_stream().map_values(str).to("out1")
        keyed.repartition().to("out2")

    assert repartitions(topology(build, "all")) == repartitions(topology(build, None))


def test_what_is_merged_with_repartitioned_records_must_be_partitioned_alike() -> None:
    builder = StreamsBuilder()
    keyed = builder.stream("in").select_key(lambda key, value: value[0])
    keyed.group_by_key().count()
    keyed.merge(builder.stream("more")).group_by_key().count()
    merged = builder.build({"topology.optimization": "all"})
    (topic, _) = repartitions(merged)[0]
    assert partition_counts(merged.nodes, {"in": 2, "more": 5})[topic] == 5

    keyed.merge(builder.stream("third")).merge(builder.stream("more")).group_by_key().count()
    merged = builder.build({"topology.optimization": "all"})
    with pytest.raises(
        CopartitioningError, match="the inputs of a join or merge must have the same number of partitions"
    ):
        partition_counts(merged.nodes, {"in": 2, "more": 5, "third": 4})


def self_joined(stream: KStream) -> None:
    stream.join(stream, lambda one, other: f"{one}{other}", NEAR).to("out")


def test_a_stream_joined_with_itself_is_kept_once() -> None:
    plain, single = topology(self_joined, None), topology(self_joined, "single.store.self.join")
    assert (len(plain.stores), len(single.stores)) == (2, 1)
    assert [node.is_self_join for node in single.nodes if isinstance(node, StreamStreamJoin)] == [True]
    records = [("k", "a", 10), ("k", "b", 12), ("k", "c", 11), ("k", "d", 40)]
    assert told(single, *records) == told(plain, *records)
    assert (b"k", b"aa", 10) in told(single, *records)


def test_two_streams_are_joined_as_before() -> None:
    def build(stream: KStream) -> None:
        stream.join(stream.filter(lambda key, value: True), lambda one, other: f"{one}{other}", NEAR).to("out")

    assert len(topology(build, "all").stores) == 2
