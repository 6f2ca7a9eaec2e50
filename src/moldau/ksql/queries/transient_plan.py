"""Push and pull queries planned: the nodes that turn records of a topic into rows for a client. Start at `plan_query`.

Both use the planner of persistent queries. A pull query on a table reads the table's rows as a stream of records, since
what it asks for is a choice among them. Its WHERE is looked at twice: here, for the keys it asks for, so that not every
row is read, and by the plan, which decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from moldau.formats.columns import Column
from moldau.formats.format import row_format
from moldau.formats.row_serde import RowSerde
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ksql.analysis.expression_tree import column_references
from moldau.pipeline.ksql.analysis.query_analysis import QueryAnalysis, analyse
from moldau.pipeline.ksql.catalogue.catalogue import Catalogue
from moldau.pipeline.ksql.catalogue.sources import WINDOW_BOUNDS, Source
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.planning.query_plan import plan_flat_rows
from moldau.pipeline.ksql.planning.relation import Graph, Relation
from moldau.pipeline.ksql.syntax.expressions import ColumnReference, Expression
from moldau.pipeline.ksql.syntax.statements import Query, SelectExpression, SourceKind
from moldau.serdes.serde import Serde

__all__ = ["RESULT_TOPIC", "TransientPlan", "check_pull", "plan_query"]

RESULT_TOPIC = "result"
"""The name under which the rows leave the plan; no such topic exists."""
MORE = " See https://cnfl.io/queries for more info.\nAdd EMIT CHANGES if you intended to issue a push query."
REFUSED_COLUMNS = ("ROWPARTITION", "ROWOFFSET")


@dataclass(frozen=True, slots=True)
class TransientPlan:
    """A query for a client."""

    topology: Topology
    columns: tuple[Column, ...]
    key_serde: Serde
    value_serde: Serde
    key_places: tuple[int | None, ...]
    """For each column, its place among the key's columns, so that a deleted row can be shown; window bounds follow."""
    sources: tuple[Source, ...]
    is_table: bool
    has_state: bool
    is_scalable: bool = False
    """Whether it follows one running query only, so that any number of clients could share its rows."""

    @property
    def key_names(self) -> frozenset[str]:
        """The columns that are key columns of the source under their own names, its windows' bounds among them."""
        source = self.sources[0]
        names = {column.name for column in source.schema.key}
        if source.window is not None:
            names |= {column.name for column in WINDOW_BOUNDS}
        return frozenset(column.name for column in self.columns if column.name in names)

    @property
    def header_marks(self) -> dict[str, str]:
        """How the columns that read headers are marked, by name."""
        source = self.sources[0]
        marks = {
            column.name: "HEADERS" if name is None else f"HEADER('{name}')"
            for column, name in zip(source.schema.headers, source.header_names, strict=False)
        }
        return {column.name: marks[column.name] for column in self.columns if column.name in marks}


def plan_query(query: Query, catalogue: Catalogue, settings: Mapping[str, object]) -> TransientPlan:
    """The plan of a push or pull query; raises `KsqlError`."""
    reads_rows = query.is_pull
    known = _as_streams(catalogue, query) if reads_rows else catalogue
    analysis = analyse(query, known, is_persistent=False)
    graph = Graph()
    relation = plan_flat_rows(analysis, graph, settings)
    value_serde = RowSerde(row_format("JSON"), relation.columns)
    node = relation.node
    if relation.is_table:
        node = graph.add(ir.ToStream(name=graph.name("KTABLE-TOSTREAM-"), input=node))
    graph.add(
        ir.Sink(
            name=graph.name("KSTREAM-SINK-"),
            input=node,
            topic=RESULT_TOPIC,
            key_serde=relation.key_serde,
            value_serde=value_serde,
        )
    )
    sources = tuple(catalogue.sources[one.name] for one in query.sources)
    has_state = bool(query.joins) or analysis.grouping is not None
    return TransientPlan(
        graph.topology(),
        relation.columns,
        relation.key_serde,
        value_serde,
        _key_places(analysis, relation),
        sources,
        relation.is_table,
        has_state,
        _is_scalable(query, sources[0], has_state=has_state),
    )


def _is_scalable(query: Query, source: Source, *, has_state: bool) -> bool:
    is_plain = not has_state and query.window is None and query.partition_by is None and query.having is None
    return is_plain and source.query_id is not None and not _selected_columns(query) & set(REFUSED_COLUMNS)


def _as_streams(catalogue: Catalogue, query: Query) -> Catalogue:
    """The catalogue with the query's tables read as streams: their rows are all there is to a pull query."""
    known = catalogue.copy()
    for one in query.sources:
        source = known.sources.get(one.name)
        if source is not None:
            known.sources[one.name] = replace(source, kind=SourceKind.STREAM)
    return known


def _key_places(analysis: QueryAnalysis, relation: Relation) -> tuple[int | None, ...]:
    places = {column.name: place for place, column in enumerate(relation.key)}
    if relation.window is not None:
        places |= {"WINDOWSTART": len(places), "WINDOWEND": len(places) + 1}
    return tuple(_place_of(column.expression, places, analysis) for column in analysis.select)


def _place_of(expression: Expression, places: Mapping[str, int], analysis: QueryAnalysis) -> int | None:
    in_row = analysis.sources.in_row(expression)
    return places.get(in_row.name) if isinstance(in_row, ColumnReference) else None


def check_pull(query: Query, catalogue: Catalogue, settings: Mapping[str, object]) -> None:
    """Raise `KsqlError` for clauses that pull queries do not have."""
    clauses = {
        "JOIN": bool(query.joins),
        "WINDOW": query.window is not None,
        "GROUP BY": query.group_by is not None,
        "PARTITION BY": query.partition_by is not None,
        "HAVING": query.having is not None,
    }
    for name, is_there in clauses.items():
        if is_there:
            raise KsqlError(f"Pull queries don't support {name} clauses.{MORE}")
    if query.limit is not None and not _is_on(settings, "ksql.query.pull.limit.clause.enabled"):
        raise KsqlError(
            "LIMIT clause in pull queries is currently disabled. You can enable them by setting "
            f"ksql.query.pull.limit.clause.enabled=true.{MORE}"
        )
    refused = [name for name in REFUSED_COLUMNS if name in _selected_columns(query)]
    if refused:
        names = ", ".join(f"`{name}`" for name in refused)
        raise KsqlError(f"Pull queries don't support the following columns in SELECT clauses: {names}.{MORE}")
    source = catalogue.sources.get(query.source.name)
    if source is not None and not source.is_table and not _is_on(settings, "ksql.query.pull.stream.enabled"):
        raise KsqlError(
            "Pull queries on streams are disabled. To create a push query on the stream, add EMIT CHANGES to the end. "
            "To enable pull queries on streams, set ksql.query.pull.stream.enabled=true."
        )
    if source is not None and source.is_table and not source.is_read_only and source.query_id is None:
        raise KsqlError(
            f"The `{source.name}` table isn't queryable. To derive a queryable table, you can do 'CREATE TABLE "
            f"QUERYABLE_{source.name} AS SELECT * FROM {source.name}'.{MORE}"
        )


def _selected_columns(query: Query) -> set[str]:
    expressions = [item.expression for item in query.select if isinstance(item, SelectExpression)]
    return {reference.name for one in expressions for reference in column_references(one)}


def _is_on(settings: Mapping[str, object], name: str) -> bool:
    return str(settings.get(name, "true")).lower() == "true"
