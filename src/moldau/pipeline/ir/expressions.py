"""Typed expressions over a record that every engine can read.

Nothing here computes: `pipeline.cores.evaluation` evaluates an expression on one record, `pipeline.spark` lowers it to
a column, `inference` finds types. Front ends build them; `key` and `value` of a record are columns of that name, fields
of a struct are reached with `FieldOf`. Null is SQL's: an operator with a null operand gives null, `AND` and `OR` know
three values, a filter keeps only what is true. The functions that a `Call` may name are in `FUNCTIONS`. Start at
`Expression`.
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
    """Something with a value for each record; `type` is None until it is known."""

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
    """A value as another type; text that is no such value gives null."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function or operator by name, with its arguments in order."""

    function: str
    arguments: tuple[Expression, ...]


FUNCTIONS: dict[str, str] = {
    "+": "sum of numbers, or two texts one after the other",
    "-": "difference",
    "*": "product",
    "/": "quotient as DOUBLE; null where the divisor is 0",
    "//": "quotient rounded down to a whole number; null where the divisor is 0",
    "%": "remainder, of the divisor's sign; null where the divisor is 0",
    "NEGATE": "the number with the other sign",
    "=": "equal",
    "<>": "not equal",
    "<": "less",
    "<=": "less or equal",
    ">": "greater",
    ">=": "greater or equal",
    "AND": "both; false beats null",
    "OR": "either; true beats null",
    "NOT": "the opposite",
    "IS NULL": "whether there is no value; never null",
    "IS NOT NULL": "whether there is a value; never null",
    "IN": "whether the first argument equals one of the others",
    "IF": "(condition, then, else): else where the condition is false or null",
    "COALESCE": "the first argument that is not null",
    "LEAST": "the smallest of the arguments that are not null",
    "GREATEST": "the largest of the arguments that are not null",
    "ABS": "a number without its sign",
    "ROUND": "(number, digits): halves go away from zero",
    "FLOOR": "the next whole number below",
    "CEIL": "the next whole number above",
    "UPPER": "text in capital letters",
    "LOWER": "text in small letters",
    "TRIM": "text without blanks at its ends",
    "LENGTH": "how many characters, bytes, or elements",
    "SUBSTRING": "(text, start, length): the first character is 1",
    "CONCAT": "texts one after the other; null where one is",
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
"""The functions by their names in `Call.function`, with what is to be known of each."""


def operands_of(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that one is made of, in order."""
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
