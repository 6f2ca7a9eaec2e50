"""What a topology knows of itself, and the one thing it does to itself: defaults for serdes."""

from __future__ import annotations

import pickle

import pytest
from tests.unit.pipeline.ir.small_nodes import (
    ANY,
    count,
    global_table,
    join_global,
    map_values,
    process,
    sink,
    stored,
    stream,
    table,
)

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.origin import Origin
from moldau.pipeline.ir.serdes import DefaultSerde
from moldau.pipeline.ir.topology import Topology
from moldau.serdes.plain import LongSerde, StringSerde
from moldau.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde


def test_it_knows_its_ends_and_its_stores() -> None:
    source, everywhere = stream("in"), global_table("everywhere")
    counted = count("counted", process("p", join_global("joined", source, everywhere), "seen"))
    out = sink("out", counted)
    topology = Topology((source, everywhere, counted.input.input, counted.input, counted, out))  # type: ignore[attr-defined]
    assert topology.sources == (source,)
    assert topology.global_tables == (everywhere,)
    assert topology.sinks == (out,)
    assert set(topology.stores) == {"everywhere-store", "seen", "counted-store"}
    assert topology.node("counted") is counted
    with pytest.raises(TopologyError, match="no node is called nobody"):
        topology.node("nobody")


def test_two_nodes_of_one_name_are_refused_with_the_users_line() -> None:
    source = stream("in")
    again = ir.StreamSource(
        name="in", topics=("x",), key_serde=StringSerde(), value_serde=StringSerde(), origin=Origin("app.py", 7)
    )
    with pytest.raises(TopologyError, match=r"two nodes are called in \(app.py:7\)"):
        Topology((source, again))


def test_what_feeds_a_node_comes_before_it() -> None:
    source = stream("in")
    mapped = map_values("mapped", source)
    with pytest.raises(TopologyError, match="the input in of mapped is not before it"):
        Topology((mapped, source))


def test_default_serdes_go_wherever_none_is_named() -> None:
    key, value = DefaultSerde("key"), DefaultSerde("value")
    source = ir.StreamSource(name="in", topics=("in",), key_serde=key, value_serde=value)
    store = ir.Materialization(store="s", key_serde=key, value_serde=LongSerde())
    own = ir.StateStore(kind=ir.StoreKind.KEY_VALUE, table=store)
    processed = ir.Process(name="p", input=source, supplier=ANY, stores=(own,))
    counted = ir.Aggregate(name="counted", input=processed, aggregator=ir.Count(), table=store)
    out = ir.Sink(name="out", input=counted, topic="out", key_serde=TimeWindowedSerde(key, 5), value_serde=LongSerde())
    sessions = ir.Sink(name="o", input=counted, topic="o", key_serde=SessionWindowedSerde(key), value_serde=LongSerde())
    topology = Topology((source, processed, counted, out, sessions))
    given = topology.with_default_serdes(key=StringSerde(), value=LongSerde())
    assert given.sources[0].key_serde == StringSerde()
    assert given.sources[0].value_serde == LongSerde()
    assert given.stores["s"].key_serde == StringSerde()
    assert given.sinks[0].key_serde == TimeWindowedSerde(StringSerde(), 5)
    assert given.sinks[1].key_serde == SessionWindowedSerde(StringSerde())
    assert given.sinks[0].input is given.node("counted")
    assert topology.sources[0].key_serde == key


def test_a_default_that_is_not_set_stays_to_refuse_the_first_record() -> None:
    topology = Topology(
        (ir.StreamSource(name="in", topics=("in",), key_serde=DefaultSerde("key"), value_serde=StringSerde()),)
    )
    assert topology.with_default_serdes(key=None, value=None).sources[0].key_serde == DefaultSerde("key")


def test_nodes_are_equal_only_to_themselves_and_travel() -> None:
    source = stream("in")
    assert source != stream("in")
    assert repr(source) == "StreamSource(in)"
    topology = pickle.loads(pickle.dumps(Topology((table("rows"), stream("in")))))
    assert [node.name for node in topology.nodes] == ["rows", "in"]


def test_a_foreign_key_join_is_lowered_before_the_cut() -> None:
    left, right = table("left"), table("right")
    join = ir.ForeignKeyJoin(
        name="joined",
        left=left,
        right=right,
        joiner=ANY,
        kind=ir.JoinKind.INNER,
        extractor=ANY,
        left_table=stored("left-table"),
        right_table=stored("right-table"),
        subscriptions="subscriptions",
        subscription_topic="to-right",
        response_topic="to-left",
        table=stored("result"),
    )
    topology = Topology((left, right, join, sink("out", join)))
    assert len(topology.subtopologies) == 3
    assert not any(
        isinstance(node, ir.ForeignKeyJoin) for sub_topology in topology.subtopologies for node in sub_topology.nodes
    )
