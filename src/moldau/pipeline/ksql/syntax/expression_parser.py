"""The rules of expressions, by precedence. Start at `parse_expression`; `parse_value` is the part without predicates.

Loosest first: OR, AND, NOT, one predicate, `||`, `+ -`, `* / %`, sign, then `[…]` and `->`. One function climbs all
binary levels, so that nesting costs few frames of Python's stack; `Cursor.deepen` counts the levels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.pipeline.ksql.syntax.cursor import Cursor
from moldau.pipeline.ksql.syntax.expressions import (
    Arithmetic,
    ArithmeticOperator,
    Between,
    Case,
    Cast,
    ColumnReference,
    Comparison,
    ComparisonOperator,
    CreateArray,
    CreateMap,
    CreateStruct,
    Dereference,
    Expression,
    FunctionCall,
    In,
    IntervalUnit,
    IsNull,
    Lambda,
    LambdaVariable,
    Like,
    Location,
    Logical,
    LogicalOperator,
    Not,
    Sign,
    Signed,
    Subscript,
    When,
)
from moldau.pipeline.ksql.syntax.literal_parser import NUMBER_KINDS, decimal_literal, parse_literal
from moldau.pipeline.ksql.syntax.tokens import IDENTIFIER_KINDS, TEXT
from moldau.pipeline.ksql.syntax.type_parser import parse_type

__all__ = ["INTERVAL_UNITS", "parse_expression", "parse_value"]

_OR, _AND, _NOT, _PREDICATE, _CONCAT, _ADD, _MULTIPLY, _SIGN = range(1, 9)

_LEVELS: Final[dict[str, int]] = {
    "OR": _OR,
    "AND": _AND,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "NOT", "BETWEEN", "IN", "LIKE", "IS"), _PREDICATE),
    "||": _CONCAT,
    "+": _ADD,
    "-": _ADD,
    "*": _MULTIPLY,
    "/": _MULTIPLY,
    "%": _MULTIPLY,
}
_COMPARISONS: Final = {operator.value: operator for operator in ComparisonOperator}
_ARITHMETIC: Final = {operator.value: operator for operator in ArithmeticOperator}
_LITERALS: Final = frozenset({"NULL", "TRUE", "FALSE", TEXT}) | NUMBER_KINDS

INTERVAL_UNITS: Final = {
    "MILLISECOND": "MILLISECONDS",
    "SECOND": "SECONDS",
    "MINUTE": "MINUTES",
    "HOUR": "HOURS",
    "DAY": "DAYS",
    **{unit: unit for unit in ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")},
}
"""The words for units of time, each with the plural that the tree holds."""

_LONGEST_LEFT_CHAIN: Final = 50


def parse_expression(cursor: Cursor) -> Expression:
    """Read an expression."""
    return _climb(cursor, _OR)


def parse_value(cursor: Cursor) -> Expression:
    """Read an expression in which predicates, NOT, AND and OR stand only in parentheses."""
    return _climb(cursor, _CONCAT)


def _climb(cursor: Cursor, lowest: int) -> Expression:
    """Read an operand, then all that binds to it at `lowest` or tighter."""
    depth = cursor.depth
    cursor.deepen()
    highest = _SIGN
    if cursor.kind == "NOT" and lowest <= _NOT:
        location = cursor.location()
        cursor.advance()
        left: Expression = Not(_climb(cursor, _NOT), location=location)
        highest = _AND
    else:
        left = _primary(cursor)
    while lowest <= (level := _LEVELS.get(cursor.kind, 0)) <= highest:
        if level <= _AND:
            left = _logical_chain(cursor, left, level)
        elif level == _PREDICATE:
            left = _predicate(cursor, left)
            highest = _NOT  # a predicate is no operand of another one
        else:
            left = _binary(cursor, left, level)
            cursor.deepen()
            highest = level
    cursor.depth = depth
    return left


def _binary(cursor: Cursor, left: Expression, level: int) -> Expression:
    location, operator = cursor.location(), cursor.kind
    cursor.advance()
    right = _climb(cursor, level + 1)
    if operator == "||":
        return FunctionCall("CONCAT", (left, right), location=location)
    return Arithmetic(_ARITHMETIC[operator], left, right, location=location)


# --- AND and OR --------------------------------------------------------------------------------------------------


def _logical_chain(cursor: Cursor, first: Expression, level: int) -> Expression:
    """Read all operands of `a AND b AND c` (or OR)."""
    kind = cursor.kind
    operands, locations = [first], []
    while cursor.kind == kind:
        locations.append(cursor.location())
        cursor.advance()
        operands.append(_climb(cursor, level + 1))
    operator = LogicalOperator[kind]
    if len(operands) > _LONGEST_LEFT_CHAIN:
        return _balanced(operator, operands, locations)
    left = operands[0]
    for location, right in zip(locations, operands[1:], strict=True):
        cursor.deepen()
        left = Logical(operator, left, right, location=location)
    return left


def _balanced(operator: LogicalOperator, operands: list[Expression], locations: list[Location]) -> Expression:
    """The same condition, evaluated in the same order, as a tree whose depth does not grow with a generated list."""
    while len(operands) > 1:
        pairs = [
            Logical(operator, operands[i], operands[i + 1], location=locations[i])
            for i in range(0, len(operands) - 1, 2)
        ]
        odd = [operands[-1]] if len(operands) % 2 else []
        operands, locations = [*pairs, *odd], locations[1::2]
    return operands[0]


# --- predicates --------------------------------------------------------------------------------------------------


def _predicate(cursor: Cursor, value: Expression) -> Expression:
    location, kind = cursor.location(), cursor.kind
    if kind in _COMPARISONS:
        cursor.advance()
        return Comparison(_COMPARISONS[kind], value, parse_value(cursor), location=location)
    if kind == "IS":
        return _is_predicate(cursor, value, location)
    is_negated = cursor.accept("NOT")
    result: Expression
    if cursor.accept("BETWEEN"):
        low = parse_value(cursor)
        cursor.expect("AND")
        result = Between(value, low, parse_value(cursor), location=location)
    elif cursor.accept("IN"):
        cursor.expect("(")
        result = In(value, _list(cursor, ")", parse_expression), location=location)
    elif cursor.accept("LIKE"):
        result = _like(cursor, value, location)
    else:
        cursor.fail_expecting("BETWEEN", "IN", "LIKE")
    return Not(result, location=location) if is_negated else result


def _is_predicate(cursor: Cursor, value: Expression, location: Location) -> Expression:
    cursor.expect("IS")
    is_negated = cursor.accept("NOT")
    if cursor.accept("NULL"):
        return IsNull(value, is_negated, location=location)
    if not cursor.accept("DISTINCT"):
        cursor.fail_expecting("NULL", "DISTINCT")
    cursor.expect("FROM")
    result = Comparison(ComparisonOperator.IS_DISTINCT_FROM, value, parse_value(cursor), location=location)
    return Not(result, location=location) if is_negated else result


def _like(cursor: Cursor, value: Expression, location: Location) -> Expression:
    pattern, escape = parse_value(cursor), None
    if cursor.accept("ESCAPE"):
        at_fault = cursor.location()
        escape = cursor.string()
        if len(escape) != 1:
            place = f"Line: {at_fault.line}, Col: {at_fault.column}"
            cursor.refuse_prepared(f"{place}: Expected single character escape but got: {escape}", at_fault=at_fault)
    return Like(value, pattern, escape, location=location)


def _list(cursor: Cursor, closing: str, item: Callable[[Cursor], Expression]) -> tuple[Expression, ...]:
    """Read items with commas between, at least one, and the closing bracket."""
    cursor.deepen()  # for the frames that a list costs
    items = [item(cursor)]
    while cursor.accept(","):
        items.append(item(cursor))
    cursor.expect_end_of_list(closing)
    cursor.depth -= 1
    return tuple(items)


# --- operands ----------------------------------------------------------------------------------------------------


def _primary(cursor: Cursor) -> Expression:
    """Read an operand with its sign or its subscripts and fields."""
    location, kind = cursor.location(), cursor.kind
    if kind in ("-", "+") and not (kind == "-" and cursor.kind_after(1) in NUMBER_KINDS):
        cursor.advance()
        return Signed(Sign(kind), _climb(cursor, _SIGN), location=location)
    if kind == "-" or kind in _LITERALS:
        base: Expression = parse_literal(cursor)
    elif kind == "(":
        cursor.advance()
        base = _climb(cursor, _OR)
        cursor.expect(")")
    else:
        base = _CONSTRUCTS.get((kind, cursor.kind_after(1)), _CONSTRUCTS.get((kind, ""), _named))(cursor)
    while cursor.kind == "[" or (cursor.kind == "->" and cursor.kind_after(1) != "*"):
        cursor.deepen()
        if cursor.accept("["):
            base = Subscript(base, parse_value(cursor), location=location)
            cursor.expect("]")
        else:
            cursor.expect("->")
            base = Dereference(base, cursor.identifier(), location=location)
    return base


def _case(cursor: Cursor) -> Expression:
    location = cursor.location()
    cursor.expect("CASE")
    operand = None if cursor.kind == "WHEN" else parse_value(cursor)
    if cursor.kind != "WHEN":
        cursor.fail_expecting("WHEN")
    whens = []
    while cursor.kind == "WHEN":
        at = cursor.location()
        cursor.advance()
        condition = parse_expression(cursor)
        cursor.expect("THEN")
        whens.append(When(condition, parse_expression(cursor), location=at))
    default = parse_expression(cursor) if cursor.accept("ELSE") else None
    cursor.expect("END")
    return Case(tuple(whens), default, operand, location=location)


def _cast(cursor: Cursor) -> Expression:
    location = cursor.location()
    cursor.expect("CAST", "(")
    value = parse_expression(cursor)
    cursor.expect("AS")
    target = parse_type(cursor)
    cursor.expect(")")
    return Cast(value, target, location=location)


def _array(cursor: Cursor) -> Expression:
    location = cursor.location()
    cursor.expect("ARRAY", "[")
    items = () if cursor.accept("]") else _list(cursor, "]", parse_expression)
    return CreateArray(items, location=location)


def _map(cursor: Cursor) -> Expression:
    location = cursor.location()
    cursor.expect("MAP", "(")
    entries: list[tuple[Expression, Expression]] = []
    while not (entries == [] and cursor.kind == ")"):
        key = parse_expression(cursor)
        cursor.expect(":=")
        entries.append((key, parse_expression(cursor)))
        if not cursor.accept(","):
            break
    cursor.expect_end_of_list(")")
    return CreateMap(tuple(entries), location=location)


def _struct(cursor: Cursor) -> Expression:
    location = cursor.location()
    cursor.expect("STRUCT", "(")
    fields: list[tuple[str, Expression]] = []
    while not (fields == [] and cursor.kind == ")"):
        name = cursor.identifier()
        cursor.expect(":=")
        fields.append((name, parse_expression(cursor)))
        if not cursor.accept(","):
            break
    cursor.expect_end_of_list(")")
    return CreateStruct(tuple(fields), location=location)


_CONSTRUCTS: Final[dict[tuple[str, str], Callable[[Cursor], Expression]]] = {
    ("CASE", ""): _case,
    ("CAST", ""): _cast,
    ("ARRAY", "["): _array,
    ("MAP", "("): _map,
    ("STRUCT", "("): _struct,
}
"""Operands that start with a word of their own; where a second token is given, the word alone is a name."""


# --- names and functions -----------------------------------------------------------------------------------------


def _named(cursor: Cursor) -> Expression:
    """Read what starts with a name: a function call, a column, or a typed text such as `DECIMAL '1.5'`."""
    location = cursor.location()
    if cursor.accept("DECIMAL"):
        return decimal_literal(cursor, cursor.string(), location)
    if cursor.kind not in IDENTIFIER_KINDS:
        cursor.fail_near()
    name = cursor.identifier()
    if cursor.accept("("):
        has_star = cursor.accept("*", ")")
        arguments = () if has_star else _arguments(cursor)
        return FunctionCall(name.upper(), arguments, has_star=has_star, location=location)
    if cursor.kind == TEXT:
        place = f"Optional[Line: {location.line}, Col: {location.column}]"
        cursor.refuse_prepared(f"Unknown type: {name}, location:{place}", at_fault=location)
    if cursor.accept("."):
        cursor.qualifiers.append((name, location))
        return ColumnReference(cursor.identifier(), name, location=location)
    if name in cursor.lambda_parameters:
        return LambdaVariable(name, location=location)
    return ColumnReference(name, location=location)


def _arguments(cursor: Cursor) -> tuple[Expression, ...]:
    """Read the arguments of a function up to the closing parenthesis; lambdas come last."""
    if cursor.accept(")"):
        return ()
    cursor.deepen()  # for the frames that a call costs
    arguments = [_argument(cursor)]
    while cursor.accept(","):
        if _is_lambda(cursor):
            arguments.append(_lambda(cursor))
        elif isinstance(arguments[-1], Lambda):
            cursor.fail_near()
        else:
            arguments.append(_argument(cursor))
    cursor.expect_end_of_list(")")
    cursor.depth -= 1
    return tuple(arguments)


def _argument(cursor: Cursor) -> Expression:
    unit = INTERVAL_UNITS.get(cursor.kind)
    # DAY, HOUR, MINUTE and SECOND can name columns, so as an argument they do.
    if unit is None or cursor.kind in IDENTIFIER_KINDS:
        return parse_expression(cursor)
    location = cursor.location()
    cursor.advance()
    return IntervalUnit(unit, location=location)


def _is_lambda(cursor: Cursor) -> bool:
    """Whether `x =>` or `(x, y) =>` follows."""
    if cursor.kind != "(":
        return cursor.kind in IDENTIFIER_KINDS and cursor.kind_after(1) == "=>"
    distance = 1
    while cursor.kind_after(distance) in IDENTIFIER_KINDS and cursor.kind_after(distance + 1) == ",":
        distance += 2
    ending = [cursor.kind_after(distance + step) for step in range(3)]
    return ending[0] in IDENTIFIER_KINDS and ending[1:] == [")", "=>"]


def _lambda(cursor: Cursor) -> Expression:
    location = cursor.location()
    if cursor.accept("("):
        names = [cursor.identifier()]
        while cursor.accept(","):
            names.append(cursor.identifier())
        cursor.expect(")")
    else:
        names = [cursor.identifier()]
    cursor.expect("=>")
    outer = cursor.lambda_parameters
    cursor.lambda_parameters = outer | set(names)
    body = parse_expression(cursor)
    cursor.lambda_parameters = outer
    return Lambda(tuple(names), body, location=location)
