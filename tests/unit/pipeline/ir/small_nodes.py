"""Nodes for tests, with whatever they need and nobody looks at."""

from __future__ import annotations

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.windows import JoinWindow
from moldau.serdes.plain import LongSerde, StringSerde
from moldau.serdes.serde import Serde

STRING = StringSerde()
ANY = PythonFunction(lambda *values: values)


def stored(name: str, *, is_queryable: bool = True) -> ir.Materialization:
    return ir.Materialization(store=name, key_serde=STRING, value_serde=LongSerde(), is_queryable=is_queryable)


def stream(name: str, *topics: str, key_serde: Serde = STRING) -> ir.StreamSource:
    return ir.StreamSource(name=name, topics=topics or (name,), key_serde=key_serde, value_serde=STRING)


def table(name: str) -> ir.TableSource:
    return ir.TableSource(
        name=name, topics=(name,), key_serde=STRING, value_serde=STRING, table=stored(f"{name}-store")
    )


def global_table(name: str) -> ir.GlobalTableSource:
    store = stored(f"{name}-store")
    return ir.GlobalTableSource(name=name, topics=(name,), key_serde=STRING, value_serde=STRING, table=store)


def select_key(name: str, source: ir.Node) -> ir.SelectKey:
    return ir.SelectKey(name=name, input=source, selector=ANY)


def map_values(name: str, source: ir.Node) -> ir.MapValues:
    return ir.MapValues(name=name, input=source, mapper=ANY)


def repartition(name: str, source: ir.Node, *, partitions: int | None = None) -> ir.Repartition:
    topic = f"{name}-repartition"
    return ir.Repartition(
        name=name, input=source, topic=topic, key_serde=STRING, value_serde=STRING, partitions=partitions
    )


def count(name: str, source: ir.Node) -> ir.Aggregate:
    return ir.Aggregate(name=name, input=source, aggregator=ir.Count(), table=stored(f"{name}-store"))


def sink(name: str, source: ir.Node) -> ir.Sink:
    return ir.Sink(name=name, input=source, topic=name, key_serde=STRING, value_serde=STRING)


def join_table(name: str, left: ir.Node, right: ir.Node, kind: ir.JoinKind = ir.JoinKind.INNER) -> ir.StreamTableJoin:
    return ir.StreamTableJoin(name=name, left=left, right=right, joiner=ANY, kind=kind)


def join_global(name: str, left: ir.Node, right: ir.Node) -> ir.StreamGlobalTableJoin:
    return ir.StreamGlobalTableJoin(name=name, left=left, right=right, joiner=ANY, kind=ir.JoinKind.INNER, selector=ANY)


def join_streams(
    name: str, left: ir.Node, right: ir.Node, kind: ir.JoinKind = ir.JoinKind.INNER
) -> ir.StreamStreamJoin:
    return ir.StreamStreamJoin(
        name=name,
        left=left,
        right=right,
        joiner=ANY,
        kind=kind,
        window=JoinWindow(before_ms=1, after_ms=1, grace_ms=0),
        left_store=stored(f"{name}-left"),
        right_store=stored(f"{name}-right"),
    )


def process(name: str, source: ir.Node, *stores: str, connected: tuple[str, ...] = ()) -> ir.Process:
    owned = tuple(ir.StateStore(kind=ir.StoreKind.KEY_VALUE, table=stored(store)) for store in stores)
    return ir.Process(name=name, input=source, supplier=ANY, stores=owned, connected=connected)
