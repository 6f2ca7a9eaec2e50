"""The sink of a persistent query: its formats, topic and catalogue entry, and the node that writes it.

Start at `planned_sink` for CREATE … AS SELECT, `planned_insert` for INSERT INTO … SELECT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from moldau.formats.checks import check_columns
from moldau.formats.columns import Column, RowSchema
from moldau.formats.format import RowFormat, row_format
from moldau.formats.row_serde import RowSerde
from moldau.pipeline.cores.sql.functions.resolution import can_widen
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.row_functions import NamedExpression
from moldau.pipeline.ir.row_nodes import SetTimestamp
from moldau.pipeline.ir.sql.expressions import ColumnAt
from moldau.pipeline.ksql.analysis.query_analysis import QueryAnalysis
from moldau.pipeline.ksql.catalogue.key_names import with_key_name
from moldau.pipeline.ksql.catalogue.sources import Source, schema_text
from moldau.pipeline.ksql.catalogue.topic_settings import topic_settings
from moldau.pipeline.ksql.catalogue.with_properties import WithProperties
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.planning.query_plan import PlannedRows
from moldau.pipeline.ksql.planning.relation import Graph, Relation, windowed_serde
from moldau.pipeline.ksql.planning.source_plan import row_timestamp
from moldau.pipeline.ksql.planning.steps import projected
from moldau.pipeline.ksql.planning.windows import retention_ms_of
from moldau.pipeline.ksql.syntax.statements import CreateAsSelect, SourceKind
from moldau.pipeline.ksql.typing.coercion import convert

__all__ = ["add_sink", "planned_insert", "planned_sink"]


def planned_sink(
    statement: CreateAsSelect,
    properties: WithProperties,
    analysis: QueryAnalysis,
    rows: PlannedRows,
    settings: Mapping[str, object],
) -> Source:
    """The source that a query's result becomes."""
    is_table = rows.relation.is_table
    if is_table != (statement.kind is SourceKind.TABLE):
        made, other = ("TABLE", "CREATE TABLE AS SELECT") if is_table else ("STREAM", "CREATE STREAM AS SELECT")
        raise KsqlError(
            f"Invalid result type. Your SELECT query produces a {made}. Please use {other} statement instead."
        )
    schema = RowSchema(rows.key, rows.relation.columns)
    first = analysis.sources.sources[0].source
    key_format = _key_format(properties, rows, first.key_format, settings).for_key(schema.key)
    key_format = with_key_name(key_format, statement.name)
    wraps = str(settings.get("ksql.persistence.wrap.single.values", "true")).lower() != "false"
    value_format = _value_format(properties, first.value_format).for_value(
        schema.value, wrap=properties.flag("WRAP_SINGLE_VALUE"), wrap_by_default=wraps
    )
    check_columns(key_format, schema.key)
    check_columns(value_format, schema.value)
    prefix = str(settings.get("ksql.output.topic.name.prefix") or "")
    windows = analysis.window
    topic_settings(properties, is_table=is_table, is_windowed=rows.relation.window is not None)
    return Source(
        name=statement.name,
        kind=statement.kind,
        schema=schema,
        topic=properties.text("KAFKA_TOPIC") or prefix + statement.name,
        key_format=key_format,
        value_format=value_format,
        partitions=properties.number("PARTITIONS") or first.partitions,
        replicas=properties.number("REPLICAS") or first.replicas,
        window=rows.relation.window,
        window_retention_ms=None if windows is None else retention_ms_of(windows, is_final=analysis.is_final),
        timestamp=properties.timestamp(),
        statement=statement.text,
    )


def _key_format(
    properties: WithProperties, rows: PlannedRows, inherited: RowFormat, settings: Mapping[str, object]
) -> RowFormat:
    given = properties.format_name("KEY")
    explicit = properties.text("KEY_FORMAT")
    if not rows.key:
        if explicit is not None and explicit.upper() != "NONE":
            raise KsqlError("Key format specified for stream without key columns.")
        return row_format("NONE", is_key=True)
    if given is not None:
        return properties.format("KEY", given)
    if inherited.format.name == "NONE":
        default = str(settings.get("ksql.persistence.default.format.key") or "KAFKA")
        return properties.format("KEY", default)
    return _inherited(properties, "KEY", inherited)


def _value_format(properties: WithProperties, inherited: RowFormat) -> RowFormat:
    given = properties.format_name("VALUE")
    return _inherited(properties, "VALUE", inherited) if given is None else properties.format("VALUE", given)


def _inherited(properties: WithProperties, part: str, inherited: RowFormat) -> RowFormat:
    """The source's format with its own options, except those about one topic's schema."""
    options = properties.format_options(part)
    inherited.format.check_properties(options)
    made = properties.format(part, inherited.format.name)
    return replace(
        made,
        delimiter=made.delimiter if "delimiter" in options else inherited.delimiter,
        nullable=made.nullable or inherited.nullable,
    )


def planned_insert(graph: Graph, rows: PlannedRows, target: Source) -> PlannedRows:
    """The rows of INSERT INTO as rows of its target; raises where they do not fit."""
    relation = rows.relation
    if target.is_table:
        raise KsqlError(f"INSERT INTO can only be used to insert into a stream. {target.name} is a table.")
    if relation.is_table:
        raise KsqlError("INSERT INTO can only be used with a query that produces a stream.")
    if target.schema.headers:
        raise KsqlError(f"Cannot insert into {target.name} because it has header columns")
    schema = RowSchema(rows.key, relation.columns)
    if not (_fits(schema.key, target.schema.key, is_exact=True) and _fits(schema.value, target.schema.value)):
        raise KsqlError(
            "Incompatible schema between results and sink.\n"
            f"Result schema is {schema_text(schema)}\nSink schema is {schema_text(target.schema)}"
        )
    if schema.value == target.schema.value:
        return rows
    converted = [
        NamedExpression(wanted.name, convert(ColumnAt(own.type, position), wanted.type))
        for position, (own, wanted) in enumerate(zip(schema.value, target.schema.value, strict=True))
    ]
    return PlannedRows(projected(graph, relation, converted), rows.key)


def _fits(own: tuple[Column, ...], wanted: tuple[Column, ...], *, is_exact: bool = False) -> bool:
    if len(own) != len(wanted):
        return False
    return all(
        one.name == other.name and (one.type == other.type or (not is_exact and can_widen(one.type, other.type)))
        for one, other in zip(own, wanted, strict=True)
    )


def add_sink(graph: Graph, rows: PlannedRows, sink: Source, *, is_strict: bool = False) -> None:
    """Write the rows of a query to the topic of its sink."""
    relation: Relation = rows.relation
    node = relation.node
    if relation.is_table:
        node = graph.add(ir.ToStream(name=graph.name("KTABLE-TOSTREAM-"), input=node))
    if sink.timestamp is not None:
        timestamp = row_timestamp(sink.timestamp, sink.schema.key, sink.schema.value, is_strict=is_strict)
        node = graph.add(SetTimestamp(name=graph.name("KSTREAM-TRANSFORMVALUES-"), input=node, timestamp=timestamp))
    graph.add(
        ir.Sink(
            name=graph.name("KSTREAM-SINK-"),
            input=node,
            topic=sink.topic,
            key_serde=windowed_serde(RowSerde(sink.key_format, sink.schema.key), relation.window),
            value_serde=RowSerde(sink.value_format, sink.schema.value),
        )
    )
