"""Typed expressions over a record, which every engine can inspect.

Nothing is evaluated here: `pipeline.cores.evaluation` evaluates an expression on one record, `pipeline.spark` lowers it
to a column, `inference` finds types. Front ends build them; `key` and `value` of a record are columns of that name,
`FieldOf` reads a field of a struct. Nulls behave as in SQL: an operator with a null operand gives null, `AND` and `OR`
have three-valued logic, a filter keeps only what is true. `FUNCTIONS` lists the functions that a `Call` may name. Start
at `Expression`.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.pipeline.ir.types import DataType

__all__ = [
    "FUNCTIONS",
    "Call",
    "Cast",
    "Column",
    "Expression",
    "FieldOf",
    "Literal",
    "columns_of",
    "operands_of",
]


@dataclass(frozen=True, slots=True)
class Expression:
    """Something with a value for each record; `type` is None while unknown."""

    type: DataType | None


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A column of the record: `key`, `value`, `timestamp`, `topic`, `partition`, `offset`, or one of a schema."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant; None is SQL's NULL."""

    value: object


@dataclass(frozen=True, slots=True)
class FieldOf(Expression):
    """A field of a struct, null where the struct is null or has no such field."""

    struct: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """A value as another type; null where it cannot be converted."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function or operator by name, with its arguments in order."""

    function: str
    arguments: tuple[Expression, ...]


FUNCTIONS: dict[str, str] = {
    "+": "sum of numbers, or concatenation of two texts",
    "-": "difference",
    "*": "product",
    "/": "quotient as DOUBLE; null where the divisor is 0",
    "//": "quotient rounded down to a whole number; null where the divisor is 0",
    "%": "remainder with the sign of the divisor; null where the divisor is 0",
    "NEGATE": "the number with the other sign",
    "=": "equal",
    "<>": "not equal",
    "<": "less",
    "<=": "less or equal",
    ">": "greater",
    ">=": "greater or equal",
    "AND": "both; false AND null is false",
    "OR": "either; true OR null is true",
    "NOT": "the opposite",
    "IS NULL": "whether there is no value; never null",
    "IS NOT NULL": "whether there is a value; never null",
    "IN": "whether the first argument equals one of the others",
    "IF": "(condition, then, else): else where the condition is false or null",
    "COALESCE": "the first argument that is not null",
    "LEAST": "the smallest of the arguments that are not null",
    "GREATEST": "the largest of the arguments that are not null",
    "ABS": "a number without its sign",
    "ROUND": "(number, digits): halves are rounded away from zero",
    "FLOOR": "the largest whole number that is not greater",
    "CEIL": "the smallest whole number that is not less",
    "UPPER": "text in upper case",
    "LOWER": "text in lower case",
    "TRIM": "text without blanks at its ends",
    "LENGTH": "how many characters, bytes, or elements",
    "SUBSTRING": "(text, start, length): the first character is 1",
    "CONCAT": "texts concatenated; null where one is null",
    "REPLACE": "(text, old, new): every occurrence",
    "SPLIT": "(text, separator): the pieces as an array; the separator is plain text",
    "CONTAINS": "(text, part), or (array, element)",
    "STARTS WITH": "(text, part)",
    "ENDS WITH": "(text, part)",
    "ELEMENT": "(array, index from 0) or (map, key): null where there is none",
    "STRUCT": "name, value, name, value ...: a struct of these fields",
    "ARRAY": "the arguments as an array",
    "PAIR": "key and value, the result of a map",
}
"""The functions by their names in `Call.function`, with a description of each."""


def operands_of(expression: Expression) -> tuple[Expression, ...]:
    """The direct operands of an expression, in order."""
    match expression:
        case FieldOf():
            return (expression.struct,)
        case Cast():
            return (expression.operand,)
        case Call():
            return expression.arguments
        case _:
            return ()


def columns_of(expression: Expression) -> set[str]:
    """The names of the columns that an expression reads."""
    if isinstance(expression, Column):
        return {expression.name}
    return {name for operand in operands_of(expression) for name in columns_of(operand)}
