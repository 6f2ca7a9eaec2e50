"""The rules of queries: SELECT with its clauses, in the one order in which they may come. Start at `parse_query`."""

from __future__ import annotations

from itertools import islice
from typing import Final

from moldau.pipeline.ksql.syntax.cursor import Cursor
from moldau.pipeline.ksql.syntax.expression_parser import INTERVAL_UNITS, parse_expression, parse_value
from moldau.pipeline.ksql.syntax.expressions import Expression, IntegerLiteral, Location, LongLiteral
from moldau.pipeline.ksql.syntax.literal_parser import NUMBER_KINDS, parse_number, parse_whole_number
from moldau.pipeline.ksql.syntax.statements import (
    Duration,
    Emit,
    HoppingWindow,
    Join,
    JoinKind,
    Query,
    SelectAll,
    SelectExpression,
    SelectItem,
    SelectStructAll,
    SessionWindow,
    SourceReference,
    TimeUnit,
    TumblingWindow,
    Window,
    Within,
)
from moldau.pipeline.ksql.syntax.tokens import DECIMAL_VALUE, FLOATING_POINT_VALUE, IDENTIFIER_KINDS, INTEGER_VALUE

__all__ = ["parse_duration", "parse_limit", "parse_query"]

_JOIN_KINDS: Final = {"LEFT": JoinKind.LEFT, "RIGHT": JoinKind.RIGHT, "FULL": JoinKind.FULL}


def parse_query(cursor: Cursor, *, is_persistent: bool = False) -> Query:
    """Read a query; inside a statement that makes it persistent, EMIT CHANGES is the default."""
    location = cursor.location()
    cursor.expect("SELECT")
    select = [_select_item(cursor)]
    while cursor.accept(","):
        select.append(_select_item(cursor))
    cursor.expect("FROM")
    source = _source(cursor)
    joins: list[Join] = []
    while (join := _join(cursor)) is not None:
        joins.append(join)
    window = _window(cursor) if cursor.accept("WINDOW") else None
    where = parse_expression(cursor) if cursor.accept("WHERE") else None
    group_by = _key_list(cursor) if cursor.accept("GROUP", "BY") else None
    partition_by = _key_list(cursor) if cursor.accept("PARTITION", "BY") else None
    having = parse_expression(cursor) if cursor.accept("HAVING") else None
    emit = _emit(cursor) or (Emit.CHANGES if is_persistent else None)
    return Query(
        tuple(select),
        source,
        tuple(joins),
        window,
        where,
        group_by,
        partition_by,
        having,
        emit,
        parse_limit(cursor),
        location=location,
    )


def _emit(cursor: Cursor) -> Emit | None:
    if not cursor.accept("EMIT"):
        return None
    if cursor.kind not in Emit.__members__:
        cursor.fail_expecting("CHANGES", "FINAL")
    emit = Emit[cursor.kind]
    cursor.advance()
    return emit


def parse_limit(cursor: Cursor) -> int | None:
    """Read `LIMIT n` if it is there."""
    return parse_whole_number(cursor, "LIMIT") if cursor.accept("LIMIT") else None


# --- SELECT ------------------------------------------------------------------------------------------------------


def _select_item(cursor: Cursor) -> SelectItem:
    location = cursor.location()
    if cursor.accept("*"):
        return SelectAll(location=location)
    if cursor.kind in IDENTIFIER_KINDS and cursor.kind_after(1) == "." and cursor.kind_after(2) == "*":
        name = cursor.identifier()
        cursor.expect(".", "*")
        cursor.qualifiers.append((name, location))
        return SelectAll(name, location=location)
    expression = parse_expression(cursor)
    if cursor.accept("->", "*"):
        return SelectStructAll(expression, location=location)
    has_alias = cursor.accept("AS") or cursor.kind in IDENTIFIER_KINDS
    return SelectExpression(expression, cursor.identifier() if has_alias else None, location=location)


# --- FROM --------------------------------------------------------------------------------------------------------


def _source(cursor: Cursor) -> SourceReference:
    location = cursor.location()
    name = cursor.source_name()
    if cursor.accept("AS") or (cursor.kind in IDENTIFIER_KINDS and not _is_clause(cursor)):
        return SourceReference(name, cursor.source_name(), location=location)
    return SourceReference(name, name, location=location)


def _is_clause(cursor: Cursor) -> bool:
    """Whether a word that could be an alias starts the next clause."""
    next_kind = cursor.kind_after(1)
    return (cursor.kind, next_kind) == ("PARTITION", "BY") or (cursor.kind == "EMIT" and next_kind in Emit.__members__)


def _join(cursor: Cursor) -> Join | None:
    location = cursor.location()
    if cursor.kind in _JOIN_KINDS:
        kind = _JOIN_KINDS[cursor.kind]
        cursor.advance()
        cursor.accept("OUTER")
        cursor.expect("JOIN")
    elif cursor.accept("INNER", "JOIN") or cursor.accept("JOIN"):
        kind = JoinKind.INNER
    else:
        return None
    source = _source(cursor)
    within = _within(cursor) if cursor.accept("WITHIN") else None
    cursor.expect("ON")
    return Join(kind, source, parse_expression(cursor), within, location=location)


def _within(cursor: Cursor) -> Within:
    if cursor.accept("("):
        before = parse_duration(cursor)
        cursor.expect(",")
        after = parse_duration(cursor)
        cursor.expect(")")
    else:
        before = after = parse_duration(cursor)
    return Within(before, after, _grace(cursor) if cursor.kind == "GRACE" else None)


# --- WINDOW ------------------------------------------------------------------------------------------------------


def _window(cursor: Cursor) -> Window:
    if cursor.kind == "IDENTIFIER":  # a name before the kind of the window means nothing
        cursor.advance()
    if cursor.accept("TUMBLING"):
        cursor.expect("(", "SIZE")
        size = parse_duration(cursor)
        return TumblingWindow(size, *_retention_and_grace(cursor))
    if cursor.accept("HOPPING"):
        cursor.expect("(", "SIZE")
        size = parse_duration(cursor)
        cursor.expect(",", "ADVANCE", "BY")
        advance = parse_duration(cursor)
        return HoppingWindow(size, advance, *_retention_and_grace(cursor))
    if not cursor.accept("SESSION"):
        cursor.fail_near()
    cursor.expect("(")
    gap = parse_duration(cursor)
    return SessionWindow(gap, *_retention_and_grace(cursor))


def _retention_and_grace(cursor: Cursor) -> tuple[Duration | None, Duration | None]:
    retention = parse_duration(cursor) if cursor.accept(",", "RETENTION") else None
    grace = None
    if cursor.kind == "," and cursor.kind_after(1) == "GRACE":
        cursor.expect(",")
        grace = _grace(cursor)
    if cursor.kind == ",":
        cursor.advance()
        cursor.fail_near()
    cursor.expect(")")
    return retention, grace


def _grace(cursor: Cursor) -> Duration:
    cursor.expect("GRACE", "PERIOD")
    return parse_duration(cursor)


def parse_duration(cursor: Cursor) -> Duration:
    """Read a number and its unit."""
    location = cursor.location()
    if cursor.kind != "-" and cursor.kind not in NUMBER_KINDS:
        cursor.fail_expecting("-", INTEGER_VALUE, DECIMAL_VALUE, FLOATING_POINT_VALUE)
    amount = _whole_amount(cursor, location)
    unit = INTERVAL_UNITS.get(cursor.kind)
    if unit is None:
        cursor.fail_near()
    cursor.advance()
    return Duration(amount, TimeUnit[unit])


def _whole_amount(cursor: Cursor, location: Location) -> int:
    written = ("-" if cursor.kind == "-" else "") + cursor.tokens.text(cursor.index + (cursor.kind == "-"))
    number = parse_number(cursor)
    if not isinstance(number, IntegerLiteral | LongLiteral):
        cursor.refuse_prepared(f'For input string: "{written}": a duration is a whole number', at_fault=location)
    return number.value


# --- GROUP BY, PARTITION BY --------------------------------------------------------------------------------------


def _key_list(cursor: Cursor) -> tuple[Expression, ...]:
    """Read expressions with commas between, all of them in one pair of parentheses or none."""
    if cursor.accept("(", ")"):
        return ()
    if cursor.kind == "(" and _has_list_in_parentheses(cursor):
        cursor.expect("(")
        items = _values(cursor)
        cursor.expect(")")
        return items
    return _values(cursor)


def _has_list_in_parentheses(cursor: Cursor) -> bool:
    """Whether the parentheses here hold a list: `(a, b)`, other than `(a)` and `(a) + 1`, which start an expression."""
    open_brackets = 0
    for kind in islice(cursor.tokens.kinds, cursor.index, None):
        if kind in ("(", "["):
            open_brackets += 1
        elif kind in (")", "]"):
            open_brackets -= 1
        if open_brackets == 0 or (kind == "," and open_brackets == 1):
            return open_brackets == 1
    return False


def _values(cursor: Cursor) -> tuple[Expression, ...]:
    items = [parse_value(cursor)]
    while cursor.accept(","):
        items.append(parse_value(cursor))
    return tuple(items)
