"""ALTER STREAM and ALTER TABLE: columns added to a source. Start at `altered_source`."""

from __future__ import annotations

from dataclasses import replace

from moldau.formats.checks import check_columns
from moldau.formats.columns import Column, RowSchema
from moldau.pipeline.ksql.catalogue.catalogue import Catalogue
from moldau.pipeline.ksql.catalogue.sources import SYSTEM_COLUMNS, Source
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.statements import AlterSource

__all__ = ["altered_source"]


def altered_source(statement: AlterSource, catalogue: Catalogue) -> Source:
    """The source with the added columns."""
    word = statement.kind.value.lower()
    source = catalogue.sources.get(statement.name)
    if source is None:
        raise KsqlError(f"Source {statement.name} does not exist.")
    if source.kind is not statement.kind:
        raise KsqlError(
            f"Incompatible data source type is {source.kind.value}, but statement was ALTER {statement.kind.value}"
        )
    if source.is_read_only:
        raise KsqlError(f"Cannot alter {word} '{source.name}': ALTER operations are not supported on source {word}s.")
    if source.query_id is not None:
        raise KsqlError(
            f"ALTER command is not supported for CREATE ... AS statements: {source.name} is the result of a query."
        )
    added = tuple(Column(one.name, catalogue.resolved(one.type)) for one in statement.added_columns)
    names = {column.name for column in source.schema.columns} | SYSTEM_COLUMNS
    for column in added:
        if column.name in names:
            raise KsqlError(f"Cannot add column `{column.name}` to schema. A column with the same name already exists.")
        names.add(column.name)
    schema = RowSchema(source.schema.key, source.schema.value + added, source.schema.headers)
    check_columns(source.value_format, schema.value)
    order = (*source.column_order, *(column.name for column in added)) if source.column_order else ()
    return replace(source, schema=schema, column_order=order)
