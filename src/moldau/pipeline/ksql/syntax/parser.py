"""The parser: a text of statements becomes their trees.

`parse` is the way in. The rules are in `statement_parser` and the modules that it uses; `tokens` cuts the text.
"""

from __future__ import annotations

import dataclasses

from moldau.formats.types import SqlType
from moldau.pipeline.ksql.syntax import type_parser
from moldau.pipeline.ksql.syntax.cursor import Cursor
from moldau.pipeline.ksql.syntax.definition_parser import parse_columns
from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.expression_parser import parse_expression as _read_expression
from moldau.pipeline.ksql.syntax.expressions import Expression
from moldau.pipeline.ksql.syntax.statement_parser import parse_statement
from moldau.pipeline.ksql.syntax.statements import ColumnDefinition, SourceKind, Statement
from moldau.pipeline.ksql.syntax.tokens import END, Tokens, tokenize

__all__ = ["MAX_TOKENS", "parse", "parse_column_list", "parse_expression", "parse_type"]

MAX_TOKENS = 100_000
"""Words and signs of one statement."""
SHOWN_CHARACTERS = 1000


def parse(text: str, *, allow_missing_semicolon: bool = False) -> list[Statement]:
    """Parse a text of any number of statements, each with its `;`.

    Places are counted from the start of `text`, as ksqlDB does for a request of several statements. With
    `allow_missing_semicolon` the last statement may do without. Raises `KsqlParseError`.
    """
    tokens = tokenize(text)
    _check_size(tokens)
    cursor = Cursor(tokens)
    statements = []
    while cursor.kind != END:
        statements.append(_one_statement(cursor, allow_missing_semicolon=allow_missing_semicolon))
    return statements


def _check_size(tokens: Tokens) -> None:
    """Refuse a statement that would take seconds to read; a long text or comment is one token only."""
    if len(tokens.kinds) <= MAX_TOKENS:
        return
    first = 0
    for index, kind in enumerate(tokens.kinds):
        if kind not in (";", END):
            continue
        if index - first > MAX_TOKENS:
            raise KsqlParseError(
                f"Error processing statement: Statement is too large to parse: it has {index - first:,} words and "
                f"signs, and {MAX_TOKENS:,} are possible. Split it into several statements.",
                f"{tokens.source[tokens.starts[first] :][:SHOWN_CHARACTERS]}...",
                location=tokens.location(first),
            )
        first = index + 1


def _one_statement(cursor: Cursor, *, allow_missing_semicolon: bool) -> Statement:
    cursor.statement_start, cursor.depth = cursor.index, 0
    cursor.qualifiers.clear()
    location = cursor.location()
    try:
        statement = parse_statement(cursor)
    except RecursionError:  # called from deep inside other code; `Cursor.deepen` refuses first otherwise
        cursor.refuse_depth()
    text = cursor.statement_text()
    if not (allow_missing_semicolon and cursor.kind == END):
        cursor.expect(";")
    return dataclasses.replace(statement, text=text, location=location)


def parse_expression(text: str) -> Expression:
    """Parse an expression that stands alone."""
    cursor = Cursor(tokenize(text))
    expression = _read_expression(cursor)
    cursor.expect(END)
    return expression


def parse_type(text: str) -> SqlType:
    """Parse a type that stands alone."""
    cursor = Cursor(tokenize(text))
    sql_type = type_parser.parse_type(cursor)
    cursor.expect(END)
    return sql_type


def parse_column_list(text: str, kind: SourceKind) -> tuple[ColumnDefinition, ...]:
    """Parse declared columns that stand alone: `K STRING KEY, V INT`."""
    cursor = Cursor(tokenize(f"({text})"))
    columns = parse_columns(cursor, kind)
    cursor.expect(END)
    return columns
