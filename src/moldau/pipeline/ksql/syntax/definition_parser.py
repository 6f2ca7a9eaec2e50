"""The rules of CREATE, ALTER and DROP, and of the columns and properties that they declare. Start at `parse_create`."""

from __future__ import annotations

from typing import NoReturn

from moldau.pipeline.ksql.syntax.cursor import Cursor
from moldau.pipeline.ksql.syntax.literal_parser import parse_literal
from moldau.pipeline.ksql.syntax.query_parser import parse_query
from moldau.pipeline.ksql.syntax.statements import (
    AlterSource,
    AlterSystem,
    ColumnConstraint,
    ColumnDefinition,
    ConnectorKind,
    CreateAsSelect,
    CreateConnector,
    CreateSource,
    CreateType,
    DropConnector,
    DropSource,
    DropType,
    Property,
    SourceKind,
    Statement,
)
from moldau.pipeline.ksql.syntax.tokens import TEXT
from moldau.pipeline.ksql.syntax.type_parser import parse_type

__all__ = ["parse_alter", "parse_columns", "parse_create", "parse_drop", "parse_properties"]


# --- CREATE ------------------------------------------------------------------------------------------------------


def parse_create(cursor: Cursor) -> Statement:
    """Read any of the CREATE statements."""
    cursor.expect("CREATE")
    if cursor.accept("TYPE"):
        if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
        name = cursor.identifier()
        cursor.expect("AS")
        return CreateType(name, parse_type(cursor), if_not_exists)
    if cursor.kind in ConnectorKind.__members__ and cursor.kind_after(1) == "CONNECTOR":
        return _create_connector(cursor)
    or_replace = cursor.accept("OR", "REPLACE")
    is_read_only = cursor.accept("SOURCE")
    kind = SourceKind.__members__.get(cursor.kind)
    if kind is None:
        cursor.fail_near()
    cursor.advance()
    return _create_source(cursor, kind, or_replace=or_replace, is_read_only=is_read_only)


def _create_connector(cursor: Cursor) -> Statement:
    kind = ConnectorKind[cursor.kind]
    cursor.advance()
    cursor.expect("CONNECTOR")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.identifier()
    if cursor.kind != "WITH":
        cursor.fail_expecting("WITH")
    return CreateConnector(kind, name, parse_properties(cursor), if_not_exists)


def _create_source(cursor: Cursor, kind: SourceKind, *, or_replace: bool, is_read_only: bool) -> Statement:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.source_name()
    columns = parse_columns(cursor, kind) if cursor.kind == "(" else ()
    properties = parse_properties(cursor)
    if cursor.kind != "AS" or columns or is_read_only:
        return CreateSource(kind, name, columns, properties, or_replace, if_not_exists, is_read_only)
    cursor.expect("AS")
    if cursor.kind != "SELECT":
        cursor.fail_expecting("SELECT")
    query = parse_query(cursor, is_persistent=True)
    if query.limit is not None:
        cursor.refuse_prepared(f"CREATE {kind.value} AS SELECT statements don't support LIMIT clause.")
    return CreateAsSelect(kind, name, query, properties, or_replace, if_not_exists)


# --- columns and properties --------------------------------------------------------------------------------------


def parse_columns(cursor: Cursor, kind: SourceKind) -> tuple[ColumnDefinition, ...]:
    """Read the declared columns of a stream or table, in their parentheses."""
    cursor.expect("(")
    columns = [_column(cursor, kind)]
    while cursor.accept(","):
        columns.append(_column(cursor, kind))
    cursor.expect_end_of_list(")")
    return tuple(columns)


def _column(cursor: Cursor, kind: SourceKind) -> ColumnDefinition:
    location = cursor.location()
    name = cursor.identifier()
    sql_type = parse_type(cursor)
    constraint, header_key = _constraint(cursor)
    column = ColumnDefinition(name, sql_type, constraint, header_key, location)
    if kind is SourceKind.TABLE and constraint is ColumnConstraint.KEY:
        _refuse_key(cursor, column, "please use 'PRIMARY KEY' for tables.")
    if kind is SourceKind.STREAM and constraint is ColumnConstraint.PRIMARY_KEY:
        _refuse_key(cursor, column, "please use 'KEY' for streams.")
    return column


def _constraint(cursor: Cursor) -> tuple[ColumnConstraint, str | None]:
    if cursor.accept("KEY"):
        return ColumnConstraint.KEY, None
    if cursor.accept("PRIMARY"):
        cursor.expect("KEY")
        return ColumnConstraint.PRIMARY_KEY, None
    if cursor.accept("HEADERS"):
        return ColumnConstraint.HEADERS, None
    if cursor.accept("HEADER"):
        cursor.expect("(")
        header_key = cursor.string()
        cursor.expect(")")
        return ColumnConstraint.HEADER, header_key
    return ColumnConstraint.NONE, None


def _refuse_key(cursor: Cursor, column: ColumnDefinition, remedy: str) -> NoReturn:
    location = column.location
    place = f"Line: {location.line}, Col: {location.column}: " if location else ""
    message = f"{place}Column `{column.name}` is a '{column.constraint.value}' column: {remedy}"
    cursor.refuse(message, at_fault=location)


def parse_properties(cursor: Cursor) -> tuple[Property, ...]:
    """Read `WITH (name = literal, …)` if it is there."""
    if not cursor.accept("WITH"):
        return ()
    cursor.expect("(")
    properties: list[Property] = []
    names: set[str] = set()
    while True:
        location = cursor.location()
        name = cursor.string() if cursor.kind == TEXT else cursor.identifier()
        if name in names:
            cursor.refuse_prepared(f"Multiple entries with same key: {name}", at_fault=location)
        names.add(name)
        cursor.expect("=")
        properties.append(Property(name, parse_literal(cursor), location))
        if not cursor.accept(","):
            break
    cursor.expect_end_of_list(")")
    return tuple(properties)


# --- ALTER, DROP -------------------------------------------------------------------------------------------------


def parse_alter(cursor: Cursor) -> Statement:
    """Read ALTER STREAM, ALTER TABLE or ALTER SYSTEM."""
    cursor.expect("ALTER")
    if cursor.accept("SYSTEM"):
        name = cursor.string()
        cursor.expect("=")
        return AlterSystem(name, cursor.string())
    kind = SourceKind.__members__.get(cursor.kind)
    if kind is None:
        cursor.fail_near()
    cursor.advance()
    name = cursor.source_name()
    added = [_added_column(cursor)]
    while cursor.accept(","):
        added.append(_added_column(cursor))
    return AlterSource(kind, name, tuple(added))


def _added_column(cursor: Cursor) -> ColumnDefinition:
    cursor.expect("ADD")
    cursor.accept("COLUMN")
    location = cursor.location()
    return ColumnDefinition(cursor.identifier(), parse_type(cursor), location=location)


def parse_drop(cursor: Cursor) -> Statement:
    """Read any of the DROP statements."""
    cursor.expect("DROP")
    what = cursor.kind
    if what not in ("STREAM", "TABLE", "TYPE", "CONNECTOR"):
        cursor.fail_near()
    cursor.advance()
    if_exists = cursor.accept("IF", "EXISTS")
    if what == "TYPE":
        return DropType(cursor.identifier(), if_exists)
    if what == "CONNECTOR":
        return DropConnector(cursor.identifier(), if_exists)
    name = cursor.source_name()
    return DropSource(SourceKind[what], name, if_exists, delete_topic=cursor.accept("DELETE", "TOPIC"))
