"""One type for several expressions: the lists of IN, ARRAY[] and MAP(), as ksqlDB finds it.

The first element that is not NULL decides the kind; literals adapt to it, other expressions are only widened. Start at
`common_type`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    Field,
    MapType,
    SqlType,
    StructType,
)
from moldau.pipeline.cores.sql.arithmetic import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from moldau.pipeline.cores.sql.casts import converter, parse_decimal
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.resolution import can_widen
from moldau.pipeline.ir.sql.expressions import Cast, Literal, SqlExpression
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax import expressions as ast
from moldau.pipeline.ksql.syntax.printer import render

__all__ = [
    "Element",
    "as_decimal",
    "base_name",
    "common_type",
    "convert",
    "is_number",
    "is_widening",
    "widen",
    "wider_decimal",
]

_NUMBERS = (INTEGER, BIGINT, DOUBLE)
_LITERALS = (
    ast.BooleanLiteral,
    ast.IntegerLiteral,
    ast.LongLiteral,
    ast.DoubleLiteral,
    ast.DecimalLiteral,
    ast.StringLiteral,
)


@dataclass(frozen=True, slots=True)
class Element:
    """An element as written, and its type; None for NULL."""

    written: ast.Expression
    type: SqlType | None


TypeOf = Callable[[ast.Expression], SqlType | None]


def is_number(of: SqlType | None) -> bool:
    """Whether values of a type are numbers."""
    return of in _NUMBERS or isinstance(of, DecimalType)


def base_name(of: SqlType) -> str:
    """The name of a type without its parameters."""
    match of:
        case DecimalType():
            return "DECIMAL"
        case ArrayType():
            return "ARRAY"
        case MapType():
            return "MAP"
        case StructType():
            return "STRUCT"
    return str(of)


def as_decimal(of: SqlType) -> DecimalType:
    """The decimal that holds every value of an integer type, or the decimal itself."""
    if isinstance(of, DecimalType):
        return of
    return DecimalType(10, 0) if of == INTEGER else DecimalType(19, 0)


def wider_decimal(one: SqlType, other: SqlType) -> DecimalType:
    """The decimal that holds the values of both types."""
    left, right = as_decimal(one), as_decimal(other)
    scale = max(left.scale, right.scale)
    return DecimalType(max(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def common_type(elements: Sequence[Element], type_of: TypeOf) -> SqlType | None:
    """The type that all elements can have; None if all are NULL."""
    common: SqlType | None = None
    for element in elements:
        common = _joined(element, common, type_of)
    return common


def _joined(element: Element, common: SqlType | None, type_of: TypeOf) -> SqlType | None:
    if common is None:
        return element.type
    if element.type is None:
        return common
    match element.written:
        case ast.CreateArray():
            return _joined_array(element, element.written, common, type_of)
        case ast.CreateMap():
            return _joined_map(element, element.written, common, type_of)
        case ast.CreateStruct():
            return _joined_struct(element, element.written, common, type_of)
        case ast.StringLiteral(value) if is_number(common):
            return _number_of_text(value, common)
        case ast.StringLiteral(value) if common == BOOLEAN:
            if not _is_boolean_text(value):
                raise _invalid_syntax(value, BOOLEAN)
            return BOOLEAN
    return _joined_simple(element, common)


class _CoercionError(KsqlError):
    """Two elements of a list have no type in common."""


def _mismatch(element: Element, common: SqlType) -> _CoercionError:
    return _CoercionError(
        f"operator does not exist: {common} = {element.type} ({render(element.written)})\n"
        "Hint: You might need to add explicit type casts."
    )


def _invalid_syntax(text: str, target: SqlType) -> KsqlError:
    return KsqlError(f'invalid input syntax for type {base_name(target)}: "{text}".')


def _joined_parts(common: SqlType, written: Sequence[ast.Expression], type_of: TypeOf) -> SqlType:
    elements = [Element(ast.NullLiteral(), common), *(Element(each, type_of(each)) for each in written)]
    joined = common_type(elements, type_of)
    assert joined is not None
    return joined


def _joined_array(element: Element, written: ast.CreateArray, common: SqlType, type_of: TypeOf) -> SqlType:
    if not isinstance(common, ArrayType):
        raise _mismatch(element, common)
    try:
        return ArrayType(_joined_parts(common.element, written.items, type_of))
    except _CoercionError:
        raise _mismatch(element, common) from None


def _joined_map(element: Element, written: ast.CreateMap, common: SqlType, type_of: TypeOf) -> SqlType:
    if not isinstance(common, MapType):
        raise _mismatch(element, common)
    try:
        return MapType(
            _joined_parts(common.key, [key for key, _ in written.entries], type_of),
            _joined_parts(common.value, [value for _, value in written.entries], type_of),
        )
    except _CoercionError:
        raise _mismatch(element, common) from None


def _joined_struct(element: Element, written: ast.CreateStruct, common: SqlType, type_of: TypeOf) -> SqlType:
    if not isinstance(common, StructType):
        raise _mismatch(element, common)
    known = {field.name: field.type for field in common.fields}
    given = dict(written.fields)
    fields = []
    try:
        for name in dict.fromkeys((*given, *known)):
            if name not in given:
                fields.append(Field(name, known[name]))
                continue
            own = type_of(given[name])
            joined = _joined(Element(given[name], own), known.get(name), type_of)
            if joined is None:
                raise _mismatch(element, common)
            fields.append(Field(name, joined))
    except _CoercionError:
        raise _mismatch(element, common) from None
    return StructType(tuple(fields))


def _number_of_text(text: str, common: SqlType) -> SqlType:
    try:
        number = parse_decimal(text)
    except ExpressionError:
        raise _invalid_syntax(text, common) from None
    own = _type_of_number(number, text)
    if DOUBLE in (own, common):
        return DOUBLE
    if isinstance(own, DecimalType) or isinstance(common, DecimalType):
        return wider_decimal(own, common)
    return BIGINT if BIGINT in (own, common) else INTEGER


def _type_of_number(number: Decimal, text: str) -> SqlType:
    if not any(mark in text for mark in ".eE"):
        whole = int(number)
        if INT_MIN <= whole <= INT_MAX:
            return INTEGER
        if LONG_MIN <= whole <= LONG_MAX:
            return BIGINT
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    return DecimalType(max(len(digits) + max(exponent, 0), scale), scale)


def _is_boolean_text(text: str) -> bool:
    lowered = text.lower()
    return bool(lowered) and any(word.startswith(lowered) for word in ("true", "yes", "false", "no"))


def _joined_simple(element: Element, common: SqlType) -> SqlType:
    assert element.type is not None
    is_literal = isinstance(element.written, _LITERALS)
    joined = _widened(element.type, common, is_literal) or _widened(common, element.type, is_literal)
    if joined is None:
        raise _mismatch(element, common)
    return joined


def _widened(source: SqlType, target: SqlType, is_literal: bool) -> SqlType | None:
    """The type that values of both can have, if the first can become the second."""
    if source == target:
        return target
    if is_number(source) and is_number(target):
        return _wider_number(source, target)
    if source == STRING and target in (DATE, TIME, TIMESTAMP):
        return target
    if is_literal and target == STRING and not isinstance(source, ArrayType | MapType | StructType):
        return STRING
    match source, target:
        case ArrayType(), ArrayType():
            element = _widened(source.element, target.element, is_literal)
            return None if element is None else ArrayType(element)
        case MapType(), MapType():
            key = _widened(source.key, target.key, is_literal)
            value = _widened(source.value, target.value, is_literal)
            return None if key is None or value is None else MapType(key, value)
        case StructType(), StructType():
            return _widened_struct(source, target, is_literal)
    return None


def _wider_number(one: SqlType, other: SqlType) -> SqlType:
    if DOUBLE in (one, other):
        return DOUBLE
    if isinstance(one, DecimalType) or isinstance(other, DecimalType):
        return wider_decimal(one, other)
    return BIGINT


def _widened_struct(source: StructType, target: StructType, is_literal: bool) -> StructType | None:
    fields = []
    own = {field.name: field.type for field in source.fields}
    for field in target.fields:
        widened = _widened(own.pop(field.name), field.type, is_literal) if field.name in own else field.type
        if widened is None:
            return None
        fields.append(Field(field.name, widened))
    return StructType((*fields, *(Field(name, kind) for name, kind in own.items())))


def convert(expression: SqlExpression, target: SqlType) -> SqlExpression:
    """An expression as another type; a literal is converted at once, NULL only takes the type."""
    if expression.type == target:
        return expression
    if expression.type is None or (isinstance(expression, Literal) and expression.value is None):
        return Literal(target, None)
    if isinstance(expression, Literal):
        change = converter(expression.type, target)
        if change is not None:
            try:
                return Literal(target, change(expression.value))
            except ExpressionError:
                raise _invalid_syntax(str(expression.value), target) from None
    return Cast(target, expression)


def widen(expression: SqlExpression, target: SqlType) -> SqlExpression:
    """Like `convert`, but a literal that has no counterpart fails row by row, as an argument or operand does."""
    try:
        return convert(expression, target)
    except KsqlError:
        return Cast(target, expression)


def is_widening(source: SqlType, target: SqlType) -> bool:
    """Whether values of one type become values of another without being asked, element by element.

    Fields that the other struct does not have are left out.
    """
    match source, target:
        case ArrayType(), ArrayType():
            return is_widening(source.element, target.element)
        case MapType(), MapType():
            return is_widening(source.key, target.key) and is_widening(source.value, target.value)
        case StructType(), StructType():
            known = {field.name: field.type for field in target.fields}
            return all(is_widening(field.type, known[field.name]) for field in source.fields if field.name in known)
    return can_widen(source, target)
