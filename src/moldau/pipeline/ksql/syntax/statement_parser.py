"""The rules of statements, one function for each first word. Start at `parse_statement`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from moldau.pipeline.ksql.syntax.cursor import Cursor
from moldau.pipeline.ksql.syntax.definition_parser import parse_alter, parse_create, parse_drop, parse_properties
from moldau.pipeline.ksql.syntax.errors import excerpt
from moldau.pipeline.ksql.syntax.expression_parser import parse_value
from moldau.pipeline.ksql.syntax.expressions import Expression
from moldau.pipeline.ksql.syntax.literal_parser import parse_whole_number
from moldau.pipeline.ksql.syntax.query_parser import parse_duration, parse_limit, parse_query
from moldau.pipeline.ksql.syntax.statements import (
    AssertSchema,
    AssertTopic,
    ConnectorKind,
    ControlQuery,
    DefineVariable,
    DescribeConnector,
    DescribeFunction,
    DescribeSource,
    DescribeSources,
    Explain,
    InsertSelect,
    InsertValues,
    Listing,
    PrintTopic,
    QueryAction,
    SetProperty,
    Show,
    SourceKind,
    Statement,
    UndefineVariable,
    UnsetProperty,
)
from moldau.pipeline.ksql.syntax.tokens import END, IDENTIFIER, IDENTIFIER_KINDS, KEYWORDS

__all__ = ["parse_statement"]

_LONGEST_COMPARED: Final = 20
_EXTENDED_LISTINGS: Final = (Listing.TOPICS, Listing.STREAMS, Listing.TABLES, Listing.QUERIES)


def parse_statement(cursor: Cursor) -> Statement:
    """Read a statement up to its `;`, which stays."""
    rule = _RULES.get(cursor.kind)
    if rule is None:
        _fail_unknown_statement(cursor)
    return rule(cursor)


def _fail_unknown_statement(cursor: Cursor) -> NoReturn:
    word = cursor.text()
    similar = min(_RULES, key=lambda command: _edit_distance(command, word[:_LONGEST_COMPARED].upper()))
    cursor.fail_syntax(f"Unknown statement '{excerpt(word)}'\nDid you mean '{similar}'?")


def _edit_distance(one: str, other: str) -> int:
    """How many letters must be added, removed or replaced to make one word of the other."""
    distances = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        diagonal, distances[0] = distances[0], row
        for column, other_letter in enumerate(other, start=1):
            replaced = diagonal + (letter != other_letter)
            diagonal = distances[column]
            distances[column] = min(replaced, diagonal + 1, distances[column - 1] + 1)
    return distances[-1]


# --- INSERT ------------------------------------------------------------------------------------------------------


def _insert(cursor: Cursor) -> Statement:
    cursor.expect("INSERT", "INTO")
    location = cursor.location()
    target = cursor.source_name()
    if cursor.kind in ("(", "VALUES"):
        columns = _column_names(cursor)
        cursor.expect("VALUES", "(")
        return InsertValues(target, columns, _values(cursor), target_location=location)
    properties = parse_properties(cursor)
    if cursor.kind != "SELECT":
        cursor.fail_near()
    return InsertSelect(target, parse_query(cursor, is_persistent=True), properties, target_location=location)


def _column_names(cursor: Cursor) -> tuple[str, ...]:
    if not cursor.accept("("):
        return ()
    names = [cursor.identifier()]
    while cursor.accept(","):
        names.append(cursor.identifier())
    cursor.expect_end_of_list(")")
    return tuple(names)


def _values(cursor: Cursor) -> tuple[Expression, ...]:
    if cursor.accept(")"):
        return ()
    values = [parse_value(cursor)]
    while cursor.accept(","):
        values.append(parse_value(cursor))
    cursor.expect_end_of_list(")")
    for name, location in cursor.qualifiers:
        cursor.refuse_prepared(f"'{name}' is not a valid stream/table name or alias.", at_fault=location)
    return tuple(values)


# --- queries -----------------------------------------------------------------------------------------------------


def _control_query(cursor: Cursor) -> Statement:
    action = QueryAction[cursor.kind]
    cursor.advance()
    return ControlQuery(action, None if cursor.accept("ALL") else cursor.identifier())


def _explain(cursor: Cursor) -> Statement:
    cursor.expect("EXPLAIN")
    if cursor.kind in IDENTIFIER_KINDS and (cursor.kind not in _RULES or cursor.kind_after(1) in (";", END)):
        return Explain(query_id=cursor.identifier())
    if cursor.kind not in _RULES:
        cursor.fail_near()
    if cursor.kind == "EXPLAIN":  # a level of nesting like any other: a million of them are no reason to fall over
        cursor.deepen()
    return Explain(statement=parse_statement(cursor))


# --- SHOW, DESCRIBE, PRINT ---------------------------------------------------------------------------------------


def _show(cursor: Cursor) -> Statement:
    cursor.advance()
    if cursor.accept("CONNECTOR", "PLUGINS"):
        return Show(Listing.CONNECTOR_PLUGINS)
    if cursor.kind in ConnectorKind.__members__:
        kind = ConnectorKind[cursor.kind]
        cursor.advance()
        cursor.expect("CONNECTORS")
        return Show(Listing.CONNECTORS, connector_kind=kind)
    if cursor.accept("ALL"):
        cursor.expect("TOPICS")
        return Show(Listing.TOPICS, is_extended=cursor.accept("EXTENDED"), show_all=True)
    listing = Listing.__members__.get(cursor.kind)
    if listing is None:
        cursor.fail_near()
    cursor.advance()
    return Show(listing, is_extended=listing in _EXTENDED_LISTINGS and cursor.accept("EXTENDED"))


def _describe(cursor: Cursor) -> Statement:
    cursor.expect("DESCRIBE")
    if cursor.kind == "FUNCTION" and cursor.kind_after(1) in IDENTIFIER_KINDS:
        cursor.advance()
        return DescribeFunction(cursor.identifier().upper())
    if cursor.accept("CONNECTOR"):
        return DescribeConnector(cursor.identifier())
    for kind in SourceKind:
        if cursor.accept(f"{kind.value}S"):
            return DescribeSources(kind, is_extended=cursor.accept("EXTENDED"))
    return DescribeSource(cursor.source_name(), is_extended=cursor.accept("EXTENDED"))


def _print(cursor: Cursor) -> Statement:
    cursor.expect("PRINT")
    topic = cursor.exact_name()
    from_beginning = cursor.accept("FROM")
    if from_beginning:
        cursor.expect("BEGINNING")
    has_interval = cursor.accept("INTERVAL") or cursor.accept("SAMPLE")
    interval = parse_whole_number(cursor, "INTERVAL") if has_interval else None
    return PrintTopic(topic, from_beginning, interval, parse_limit(cursor))


# --- the session -------------------------------------------------------------------------------------------------


def _set(cursor: Cursor) -> Statement:
    cursor.expect("SET")
    name = cursor.string()
    cursor.expect("=")
    return SetProperty(name, cursor.string())


def _unset(cursor: Cursor) -> Statement:
    cursor.expect("UNSET")
    return UnsetProperty(cursor.string())


def _define(cursor: Cursor) -> Statement:
    cursor.expect("DEFINE")
    name = _variable_name(cursor)
    cursor.expect("=")
    return DefineVariable(name, cursor.string())


def _undefine(cursor: Cursor) -> Statement:
    cursor.expect("UNDEFINE")
    return UndefineVariable(_variable_name(cursor))


def _variable_name(cursor: Cursor) -> str:
    """Read the name of a variable: any unquoted word, keywords too, in the case in which it is written."""
    if cursor.kind != IDENTIFIER and cursor.kind not in KEYWORDS:
        cursor.fail_expecting(IDENTIFIER)
    name = cursor.text()
    cursor.advance()
    return name


# --- ASSERT ------------------------------------------------------------------------------------------------------


def _assert(cursor: Cursor) -> Statement:
    cursor.expect("ASSERT")
    expects_existence = not cursor.accept("NOT", "EXISTS")
    if cursor.accept("TOPIC"):
        topic = cursor.exact_name()
        properties = parse_properties(cursor)
        timeout = parse_duration(cursor) if cursor.accept("TIMEOUT") else None
        return AssertTopic(topic, properties, timeout, expects_existence)
    if not cursor.accept("SCHEMA"):
        cursor.fail_near()
    subject = cursor.exact_name() if cursor.accept("SUBJECT") else None
    schema_id = parse_whole_number(cursor, "ID") if cursor.accept("ID") else None
    timeout = parse_duration(cursor) if cursor.accept("TIMEOUT") else None
    return AssertSchema(subject, schema_id, timeout, expects_existence)


_RULES: Final[dict[str, Callable[[Cursor], Statement]]] = {
    "SELECT": parse_query,
    "CREATE": parse_create,
    "INSERT": _insert,
    "DESCRIBE": _describe,
    "PRINT": _print,
    "EXPLAIN": _explain,
    "SHOW": _show,
    "LIST": _show,
    "TERMINATE": _control_query,
    "PAUSE": _control_query,
    "RESUME": _control_query,
    "DROP": parse_drop,
    "SET": _set,
    "DEFINE": _define,
    "UNDEFINE": _undefine,
    "UNSET": _unset,
    "ASSERT": _assert,
    "ALTER": parse_alter,
}
