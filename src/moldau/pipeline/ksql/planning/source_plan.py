"""The rows of a source: read from its topic, with everything a query can name. Start at `source_relation`."""

from __future__ import annotations

from moldau.formats.columns import Column, RowSchema
from moldau.formats.row_serde import RowSerde
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.row_functions import RowTimestamp
from moldau.pipeline.ir.row_nodes import AddRecordColumns
from moldau.pipeline.ksql.analysis.name_resolution import AliasedSource, SourcesInQuery
from moldau.pipeline.ksql.catalogue.sources import Source, TimestampColumn
from moldau.pipeline.ksql.catalogue.timestamps import check_timestamp
from moldau.pipeline.ksql.planning.relation import Graph, Relation, windowed_serde

__all__ = ["as_table", "row_timestamp", "source_relation"]


def source_relation(graph: Graph, one: AliasedSource, sources: SourcesInQuery, *, is_strict: bool = False) -> Relation:
    """The rows of a source; `is_strict` kills the query on a record without a readable time."""
    source = one.source
    key_serde = windowed_serde(RowSerde(source.key_format.for_key(source.schema.key), source.schema.key), source.window)
    read = graph.add(
        ir.StreamSource(
            name=graph.name("KSTREAM-SOURCE-"),
            topics=(source.topic,),
            key_serde=key_serde,
            value_serde=RowSerde(source.value_format, source.schema.value),
            timestamps=_source_timestamp(source, is_strict=is_strict),
        )
    )
    rows = graph.add(
        AddRecordColumns(
            name=graph.name("KSTREAM-TRANSFORMVALUES-"),
            input=read,
            headers=source.header_names,
            key_width=len(source.schema.key),
            has_window=source.window is not None,
        )
    )

    def in_row(column: Column) -> Column:
        return Column(sources.row_name(one.alias, column.name), column.type)

    relation = Relation(
        rows,
        False,
        tuple(in_row(column) for column in source.row_columns),
        tuple(in_row(column) for column in source.schema.key),
        source.key_format,
        source.value_format,
        source.window,
    )
    return as_table(graph, relation) if source.is_table else relation


def as_table(graph: Graph, relation: Relation) -> Relation:
    """A stream of rows read as a table."""
    node = graph.add(
        ir.ToTable(
            name=graph.name("KSTREAM-TOTABLE-"), input=relation.node, table=graph.store("KSTREAM-TOTABLE-", relation)
        )
    )
    return Relation(
        node,
        True,
        relation.columns,
        relation.key,
        relation.key_format,
        relation.value_format,
        relation.window,
    )


def _source_timestamp(source: Source, *, is_strict: bool) -> RowTimestamp | None:
    if source.timestamp is None:
        return None
    return row_timestamp(source.timestamp, source.schema.key, source.schema.value, is_strict=is_strict)


def row_timestamp(
    timestamp: TimestampColumn, key: tuple[Column, ...], value: tuple[Column, ...], *, is_strict: bool = False
) -> RowTimestamp:
    """How the time of a record is read from its columns; raises for a column that cannot give one."""
    column, is_in_key, position = check_timestamp(timestamp, RowSchema(key, value))
    return RowTimestamp(position, column.type, timestamp.pattern, is_in_key, is_strict)
