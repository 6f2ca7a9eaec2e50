"""Graphs of several pipelines become one."""

from __future__ import annotations

from moldau.core.graphs import edge, merged, mermaid, topic_node

SOURCE = {
    "nodes": [{"id": "connector:files", "kind": "connector", "name": "files", "pipeline": "files"}, topic_node("in")],
    "edges": [edge("connector:files", "topic:in")],
}


def query(name: str, reads: str, writes: str) -> dict[str, list[dict[str, str]]]:
    own = {"id": f"node:{name}/sum", "kind": "operator", "name": "sum", "pipeline": name, "group": "part 0"}
    store = {"id": f"store:{name}/sums", "kind": "store", "name": "sums", "pipeline": name}
    flows = [edge(f"topic:{reads}", own["id"]), edge(own["id"], f"topic:{writes}"), edge(own["id"], store["id"], "use")]
    return {"nodes": [topic_node(reads), topic_node(writes), own, store], "edges": flows}


def test_pipelines_connect_at_their_topics() -> None:
    graph = merged([SOURCE, query("one", "in", "between"), query("two", "between", "out")])
    assert sum(node["kind"] == "topic" for node in graph["nodes"]) == 3
    following = {one["from"]: one["to"] for one in graph["edges"] if one["kind"] == "flow"}
    place, way = "connector:files", []
    while place in following:
        place = following[place]
        way.append(place)
    assert way == ["topic:in", "node:one/sum", "topic:between", "node:two/sum", "topic:out"]


def test_what_two_graphs_have_is_in_it_once() -> None:
    assert merged([SOURCE, SOURCE]) == SOURCE
    assert merged([]) == {"nodes": [], "edges": []}


def test_a_diagram_has_a_shape_for_each_kind_and_a_box_for_each_pipeline() -> None:
    drawing = mermaid(merged([SOURCE, query("one", "in", 'a "b"'), query("two", "in", "out")]))
    for line in (
        '  c0{{"files"}}',
        '  t0(["in"])',
        '  t1(["a #quot;b#quot;"])',
        '  subgraph box0["one · part 0"]',
        '  subgraph box1["two · part 0"]',
        '    n1["sum"]',
        '  s0[("sums")]',
        "  c0 --> t0",
        "  n0 -.- s0",
    ):
        assert f"{line}\n" in drawing
