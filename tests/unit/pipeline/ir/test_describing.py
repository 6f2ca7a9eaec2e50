"""What `describe()` adds to Kafka Streams' text, and the two drawings. The text itself is tested with the DSL."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.pipeline.ir.small_nodes import (
    count,
    global_table,
    join_global,
    join_streams,
    repartition,
    select_key,
    sink,
    stream,
)

from moldau.pipeline.ir.describing import kafka_description
from moldau.pipeline.ir.topology import Topology


def counting() -> Topology:
    source = stream("in")
    keyed = select_key("keyed", source)
    moved = repartition("moved", keyed)
    counted = count("counted", moved)
    return Topology((source, keyed, moved, counted, sink("out", counted)))


def test_what_stays_inside_spark_is_said_below() -> None:
    topology = counting()
    text = topology.describe()
    assert text.startswith(kafka_description(topology.nodes))
    assert text.endswith(
        "Inside Spark (no topic on the broker is made for these):\n"
        "  repartitioned by a shuffle: moved-repartition\n"
        "  store, with its changelog in the checkpoint: counted-store\n"
    )


def test_a_topology_without_state_says_no_more_than_kafka_streams() -> None:
    source = stream("in")
    topology = Topology((source, sink("out", source)))
    assert topology.describe() == kafka_description(topology.nodes)


def test_nodes_without_names_of_their_parts_describe_themselves_all_the_same() -> None:
    one, two, everywhere = stream("one"), stream("two"), global_table("everywhere")
    joined = join_streams("joined", one, two)
    enriched = join_global("enriched", joined, everywhere)
    text = Topology((one, two, everywhere, joined, enriched, sink("out", enriched))).describe()
    assert "Processor: joined-1 (stores: [joined-left])" in text
    assert "for global store (will not generate tasks)" in text
    assert "changelog in the checkpoint: everywhere-store" not in text


def test_mermaid_draws_topics_boxes_operators_and_stores() -> None:
    drawing = counting().to_mermaid()
    assert drawing.startswith("flowchart TD\n")
    for line in (
        't0(["in"])',
        'subgraph box0["Sub-topology: 0"]',
        'n2["moved"]',
        's0[("counted-store")]',
        "n2 --> n3",
        "n3 -.- s0",
    ):
        assert f"  {line}\n" in drawing
    assert drawing.count('["moved"]') == 1


def test_dot_draws_the_same() -> None:
    drawing = counting().to_dot()
    assert drawing.startswith("digraph topology {")
    assert drawing.endswith("}\n")
    assert 's0 [label="counted-store", shape=cylinder];' in drawing
    assert "n2 -> n3;" in drawing


def test_a_pattern_with_quotes_is_drawn_safely() -> None:
    source = replace(stream("in"), topics=(), topic_pattern='a"b\\.c')
    topology = Topology((source, sink("out", source)))
    assert 't0(["like a#quot;b\\.c"])' in topology.to_mermaid()
    assert 't0 [label="like a\\"b\\\\.c", shape=ellipse];' in topology.to_dot()


def test_a_global_table_is_drawn_in_a_box_of_its_own() -> None:
    source, everywhere = stream("in"), global_table("everywhere")
    joined = join_global("joined", source, everywhere)
    drawing = Topology((source, everywhere, joined, sink("out", joined))).to_mermaid()
    assert '  subgraph box1["in every task"]\n    n3["everywhere"]\n' in drawing
