"""Which queries of SQL are native, and what EXPLAIN says of them, decided without Spark."""

from __future__ import annotations

import pytest

from moldau.formats.registry.topic_schemas import TopicSchemas
from moldau.ksql.statements.latency import check_latency
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.execution.engine import Engine
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.trial.registry import MemoryRegistry
from moldau.pipeline.ksql.trial.topics import MemoryTopics
from moldau.pipeline.spark.explain import explain
from moldau.pipeline.spark.sections import cut_topology

CREATE = "CREATE STREAM s (id STRING KEY, n INT, text STRING{more}) WITH (kafka_topic='s', value_format='{format}');"


def planned(query: str, *, more: str = "", value_format: str = "JSON") -> Topology:
    topics = MemoryTopics()
    topics.create("s", 1, 1, {})
    engine = Engine(topics, TopicSchemas(MemoryRegistry()))
    *_, last = (engine.execute(statement) for statement in parse(CREATE.format(more=more, format=value_format) + query))
    assert last.started is not None
    return last.started.topology


@pytest.mark.parametrize("value_format", ["JSON", "DELIMITED"])
def test_a_filter_with_a_projection_is_native(value_format: str) -> None:
    topology = planned(
        "CREATE STREAM t AS SELECT id, n * 2 AS m, UCASE(text) AS u FROM s WHERE n > 1 OR text LIKE 'a%';",
        value_format=value_format,
    )
    cut = cut_topology(topology, TaskSettings())
    assert cut.hosted is None
    assert not cut.refusals


@pytest.mark.parametrize(
    ("query", "more", "reason"),
    [
        ("CREATE STREAM t AS SELECT id, INITCAP(text) AS x FROM s;", "", "INITCAP is evaluated by Python"),
        ("CREATE STREAM t AS SELECT id, ARRAY[n] AS x FROM s;", "", "ARRAY<INTEGER> has no native form|MakeArray"),
        ("CREATE STREAM t AS SELECT id, n FROM s;", ", l ARRAY<INT>", "column L of type ARRAY<INTEGER>"),
        ("CREATE STREAM t WITH (value_format='PROTOBUF_NOSR') AS SELECT * FROM s;", "", "PROTOBUF_NOSR is read and"),
        ("CREATE STREAM t AS SELECT id, n IN (1, n) AS x FROM s;", "", "IN with anything but constants"),
        ("CREATE STREAM t AS SELECT id, CAST(text AS BOOLEAN) AS x FROM s;", "", "the cast from STRING to BOOLEAN"),
        ("CREATE TABLE t AS SELECT id, COUNT(*) AS x FROM s GROUP BY id;", "", "caching is off"),
    ],
)
def test_what_needs_python_and_why(query: str, more: str, reason: str) -> None:
    topology = planned(query, more=more)
    text = explain(topology, {"statestore.cache.max.bytes": 0}, {"s": 1, "T": 1})
    assert "In Python because of:" in text
    assert any(one in text for one in reason.split("|")), text


def test_explain_tells_where_odd_records_go() -> None:
    topology = planned("CREATE STREAM t AS SELECT id, n + 1 AS m FROM s;")
    text = explain(topology, {}, {"s": 1, "T": 1})
    assert "without Python; a record that Spark would compute differently is left to Python, in the driver" in text
    assert "moldau.latency=realtime is possible" in text


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("CREATE STREAM t AS SELECT id, INITCAP(text) AS x FROM s;", "INITCAP is evaluated by Python"),
        ("CREATE TABLE t AS SELECT id, COLLECT_LIST(n) AS x FROM s GROUP BY id;", "COLLECT_LIST of INTEGER"),
        ("CREATE TABLE t AS SELECT id, COUNT(*) + 1 AS x FROM s GROUP BY id;", "no Python is there to log it"),
        ("CREATE TABLE t AS SELECT id, COUNT(*) AS x FROM s WINDOW SESSION (1 HOURS) GROUP BY id;", "tumbling and"),
    ],
)
def test_real_time_mode_is_refused_with_the_reason(query: str, reason: str) -> None:
    topology = planned(query)
    check_latency(topology, {})
    with pytest.raises(KsqlError, match=f"moldau.latency=realtime is not possible for this query: .*{reason}"):
        check_latency(topology, {"moldau.latency": "realtime"})


@pytest.mark.parametrize(
    "query",
    [
        "CREATE STREAM t AS SELECT id, n + 1 AS m FROM s WHERE n > 0;",
        "CREATE TABLE t AS SELECT id, COUNT(*) AS c, SUM(n) AS a, AVG(n) AS b FROM s GROUP BY id HAVING COUNT(*) > 1;",
        "CREATE TABLE t AS SELECT text, MAX(n) AS x FROM s WINDOW TUMBLING (SIZE 1 MINUTES) GROUP BY text;",
    ],
)
def test_real_time_mode_takes_native_queries(query: str) -> None:
    topology = planned(query)
    check_latency(topology, {"moldau.latency": "realtime"})
    assert "real-time mode without Python" in explain(topology, {"moldau.latency": "realtime"}, {"s": 1, "T": 1})
