"""Typed expressions over a row: names are positions, every node knows its type, operands are already converted.

`pipeline.ksql.typing` builds them from what the user wrote; `pipeline.cores.sql` compiles them to Python functions and
`pipeline.spark` may lower them. They are plain data, compare by value and pickle. Values are those of
`moldau.formats.types`. A node whose `type` is None is the NULL literal. Start at `SqlExpression`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum

from moldau.formats.types import SqlType, Value
from moldau.pipeline.ir.sql.libraries import FunctionLibrary

__all__ = [
    "AggregateCall",
    "AllOf",
    "AnyOf",
    "Arithmetic",
    "ArithmeticOperator",
    "Call",
    "Case",
    "Cast",
    "ColumnAt",
    "Comparison",
    "ComparisonOperator",
    "FieldAt",
    "In",
    "IsNull",
    "Lambda",
    "LambdaParameter",
    "LambdaType",
    "Like",
    "Literal",
    "MakeArray",
    "MakeMap",
    "MakeStruct",
    "Negate",
    "Not",
    "SqlExpression",
    "Subscript",
    "TableFunctionCall",
    "columns_of",
    "operands_of",
]


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """Something with a value for each row; `type` is None for the NULL literal only."""

    type: SqlType | None


# --- leaves --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal(SqlExpression):
    """A constant. An interval unit is a text constant of type `IntervalUnitType`."""

    value: Value


@dataclass(frozen=True, slots=True)
class ColumnAt(SqlExpression):
    """The value at a position of the row."""

    position: int


@dataclass(frozen=True, slots=True)
class LambdaParameter(SqlExpression):
    """A parameter of an enclosing lambda; names are unique within one expression."""

    name: str


# --- operators -----------------------------------------------------------------------------------------------


class ArithmeticOperator(Enum):
    """The operators on numbers; ADD also joins texts."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULUS = "%"


@dataclass(frozen=True, slots=True)
class Arithmetic(SqlExpression):
    """`left op right`. Both operands have the node's kind of number, or both are texts."""

    operator: ArithmeticOperator
    left: SqlExpression
    right: SqlExpression


@dataclass(frozen=True, slots=True)
class Negate(SqlExpression):
    """`-x`."""

    value: SqlExpression


class ComparisonOperator(Enum):
    """The operators that compare."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS_THAN = "<"
    LESS_THAN_OR_EQUAL = "<="
    GREATER_THAN = ">"
    GREATER_THAN_OR_EQUAL = ">="
    IS_DISTINCT_FROM = "IS DISTINCT FROM"
    IS_NOT_DISTINCT_FROM = "IS NOT DISTINCT FROM"


@dataclass(frozen=True, slots=True)
class Comparison(SqlExpression):
    """`left op right`; operands are of comparable types (numbers of different kinds stay as they are)."""

    operator: ComparisonOperator
    left: SqlExpression
    right: SqlExpression


@dataclass(frozen=True, slots=True)
class AllOf(SqlExpression):
    """Conditions joined by AND, evaluated from left to right until one is false."""

    conditions: tuple[SqlExpression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(SqlExpression):
    """Conditions joined by OR, evaluated from left to right until one is true."""

    conditions: tuple[SqlExpression, ...]


@dataclass(frozen=True, slots=True)
class Not(SqlExpression):
    """`NOT x`."""

    value: SqlExpression


@dataclass(frozen=True, slots=True)
class IsNull(SqlExpression):
    """`x IS NULL`, or `x IS NOT NULL` where negated."""

    value: SqlExpression
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class In(SqlExpression):
    """`x IN (a, b)`; the value and the options are of one type."""

    value: SqlExpression
    options: tuple[SqlExpression, ...]


@dataclass(frozen=True, slots=True)
class Like(SqlExpression):
    """`x LIKE pattern [ESCAPE c]`."""

    value: SqlExpression
    pattern: SqlExpression
    escape: str | None = None


@dataclass(frozen=True, slots=True)
class Case(SqlExpression):
    """The result of the first condition that is true, else the default (NULL if there is none)."""

    whens: tuple[tuple[SqlExpression, SqlExpression], ...]
    default: SqlExpression | None = None


@dataclass(frozen=True, slots=True)
class Cast(SqlExpression):
    """A value as the node's type; a value that cannot be converted is an error."""

    value: SqlExpression


# --- composed values -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscript(SqlExpression):
    """`base[index]` of an array (from 1, negative from the end) or a map."""

    base: SqlExpression
    index: SqlExpression


@dataclass(frozen=True, slots=True)
class FieldAt(SqlExpression):
    """A field of a struct by its position."""

    base: SqlExpression
    position: int


@dataclass(frozen=True, slots=True)
class MakeArray(SqlExpression):
    """`ARRAY[a, b]`."""

    items: tuple[SqlExpression, ...]


@dataclass(frozen=True, slots=True)
class MakeMap(SqlExpression):
    """`MAP(k := v)`."""

    entries: tuple[tuple[SqlExpression, SqlExpression], ...]


@dataclass(frozen=True, slots=True)
class MakeStruct(SqlExpression):
    """`STRUCT(name := value)`; names are in the type."""

    items: tuple[SqlExpression, ...]


# --- functions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LambdaType(SqlType):
    """The type of a lambda as an argument: what it takes and what it returns."""

    parameters: tuple[SqlType, ...]
    result: SqlType

    def __str__(self) -> str:
        return f"LAMBDA ({', '.join(map(str, self.parameters))}) => {self.result}"


@dataclass(frozen=True, slots=True)
class Lambda(SqlExpression):
    """`(x, y) => body`; its type is a `LambdaType`."""

    parameters: tuple[str, ...]
    body: SqlExpression


@dataclass(frozen=True, slots=True)
class Call(SqlExpression):
    """A scalar function by its name and the signature that was chosen (a key of the registry of functions)."""

    function: str
    signature: str
    arguments: tuple[SqlExpression, ...]
    library: FunctionLibrary | None = None
    """Where the function is from; None for a built-in one. The same holds for the other kinds of calls."""


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function: its arguments are evaluated per row, `constants` are its literal trailing arguments.

    `result_type` is what it yields, `state_type` what a store has to keep for it between rows.
    """

    function: str
    signature: str
    arguments: tuple[SqlExpression, ...]
    constants: tuple[Value, ...]
    result_type: SqlType
    state_type: SqlType
    library: FunctionLibrary | None = None


@dataclass(frozen=True, slots=True)
class TableFunctionCall:
    """A table function: one row of arguments gives a list of values of `result_type`."""

    function: str
    signature: str
    arguments: tuple[SqlExpression, ...]
    result_type: SqlType
    library: FunctionLibrary | None = None


# --- walking -------------------------------------------------------------------------------------------------


def operands_of(expression: SqlExpression) -> Iterator[SqlExpression]:
    """The direct operands of a node, from left to right."""
    for field in fields(expression):
        if field.name != "type":
            yield from _expressions_in(getattr(expression, field.name))


def _expressions_in(part: object) -> Iterator[SqlExpression]:
    if isinstance(part, SqlExpression):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from _expressions_in(item)


def columns_of(expression: SqlExpression) -> set[int]:
    """The positions of the row that an expression reads."""
    found: set[int] = set()
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, ColumnAt):
            found.add(node.position)
        pending.extend(operands_of(node))
    return found
