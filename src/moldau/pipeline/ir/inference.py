"""Type inference: the types of expressions from the types of the columns they read.

An unknown type is None, and so is the type of every expression above it: an engine that needs types then falls back to
Python. Arithmetic widens whole numbers to BIGINT, since Python's integers do not overflow. Start at `with_types`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from moldau.pipeline.ir.expressions import Call, Cast, Column, Expression, FieldOf, Literal
from moldau.pipeline.ir.types import Array, DataType, Decimal, Map, Primitive, Struct

__all__ = ["type_of_literal", "with_types"]

Types = tuple[DataType | None, ...]

NUMBERS = (Primitive.INTEGER, Primitive.BIGINT, Primitive.DOUBLE)
BOOLEANS = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "AND", "OR", "NOT", "IS NULL", "IS NOT NULL", "IN"}
    | {"CONTAINS", "STARTS WITH", "ENDS WITH"}
)
TEXTS = frozenset({"UPPER", "LOWER", "TRIM", "SUBSTRING", "CONCAT", "REPLACE"})
SAME_AS_ARGUMENTS = frozenset({"COALESCE", "LEAST", "GREATEST"})


def with_types(expression: Expression, columns: Mapping[str, DataType | None]) -> Expression:
    """The expression with a type wherever it follows from the types of the columns."""
    match expression:
        case Column():
            return replace(expression, type=expression.type or columns.get(expression.name))
        case FieldOf():
            struct = with_types(expression.struct, columns)
            return replace(expression, struct=struct, type=_field_type(struct.type, expression.name))
        case Cast():
            return replace(expression, operand=with_types(expression.operand, columns))
        case Call():
            arguments = tuple(with_types(argument, columns) for argument in expression.arguments)
            return replace(expression, arguments=arguments, type=expression.type or _call_type(expression, arguments))
        case _:
            return expression


def type_of_literal(value: object) -> DataType | None:
    """The type of a Python value as a constant."""
    match value:
        case bool():
            return Primitive.BOOLEAN
        case int():
            return Primitive.BIGINT
        case float():
            return Primitive.DOUBLE
        case str():
            return Primitive.STRING
        case bytes():
            return Primitive.BYTES
        case _:
            return None


def _field_type(struct: DataType | None, name: str) -> DataType | None:
    return dict(struct.fields).get(name) if isinstance(struct, Struct) else None


def _call_type(call: Call, arguments: tuple[Expression, ...]) -> DataType | None:
    types = tuple(argument.type for argument in arguments)
    function = call.function
    if function in BOOLEANS:
        return Primitive.BOOLEAN
    if function in TEXTS:
        return Primitive.STRING
    if function in SAME_AS_ARGUMENTS:
        return _common(types)
    match function:
        case "+" | "-" | "*" | "%":
            return _arithmetic(types)
        case "NEGATE" | "ABS" | "ROUND":
            return _arithmetic(types[:1])
        case "/":
            return Primitive.DOUBLE if None not in types else None
        case "//" | "FLOOR" | "CEIL" | "LENGTH":
            return Primitive.BIGINT
        case "IF":
            return _common(types[1:])
        case "SPLIT":
            return Array(Primitive.STRING)
        case "ELEMENT":
            return _element(types[0])
        case "STRUCT":
            return _struct(arguments)
        case "ARRAY":
            items = _common(types)
            return None if items is None else Array(items)
        case _:
            return None


def _arithmetic(types: Types) -> DataType | None:
    if all(each is Primitive.STRING for each in types):
        return Primitive.STRING
    widest = _common(types)
    return Primitive.BIGINT if widest is Primitive.INTEGER else widest


def _common(types: Types) -> DataType | None:
    """The type that can hold values of all of them, if there is one."""
    if not types or None in types:
        return None
    if len(set(types)) == 1:
        return types[0]
    if all(each in NUMBERS for each in types):
        return max((each for each in NUMBERS if each in types), key=NUMBERS.index)
    if all(each in NUMBERS or isinstance(each, Decimal) for each in types) and Primitive.DOUBLE in types:
        return Primitive.DOUBLE
    return None


def _element(container: DataType | None) -> DataType | None:
    match container:
        case Array():
            return container.items
        case Map():
            return container.values
        case _:
            return None


def _struct(arguments: tuple[Expression, ...]) -> DataType | None:
    fields = []
    for name, value in zip(arguments[::2], arguments[1::2], strict=True):
        if not isinstance(name, Literal) or value.type is None:
            return None
        fields.append((str(name.value), value.type))
    return Struct(tuple(fields))
