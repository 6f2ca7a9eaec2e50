"""Expressions as they were written: what the parser gives, before names and types are resolved.

Nodes compare by value without their location, so that an expression of SELECT equals the same one of GROUP BY.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field
from enum import Enum

from moldau.formats.types import SqlType


@dataclass(frozen=True, slots=True)
class Location:
    """Where a node starts in its statement: line from 1, column from 1 (as messages print them)."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Base of all expressions."""

    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NamedType(SqlType):
    """A type that the user has given a name with CREATE TYPE, until the catalogue resolves it; may be nested."""

    name: str

    def __str__(self) -> str:
        return self.name


# --- literals ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NullLiteral(Expression):
    """NULL."""


@dataclass(frozen=True, slots=True)
class BooleanLiteral(Expression):
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True)
class IntegerLiteral(Expression):
    """A whole number of 32 bits."""

    value: int


@dataclass(frozen=True, slots=True)
class LongLiteral(Expression):
    """A whole number that needs 64 bits."""

    value: int


@dataclass(frozen=True, slots=True)
class DoubleLiteral(Expression):
    """A number with an exponent."""

    value: float


@dataclass(frozen=True, slots=True)
class DecimalLiteral(Expression):
    """A number with a point and no exponent, with the digits written."""

    value: decimal.Decimal


@dataclass(frozen=True, slots=True)
class StringLiteral(Expression):
    """A text in single quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class IntervalUnit(Expression):
    """A unit of time as an argument: MILLISECONDS to DAYS."""

    unit: str


# --- names ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnReference(Expression):
    """A column by its name, with the source or alias written before it if any; names are folded already."""

    name: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class LambdaVariable(Expression):
    """A parameter of an enclosing lambda."""

    name: str


# --- operators -----------------------------------------------------------------------------------------------


class Sign(Enum):
    """A sign before an expression."""

    PLUS = "+"
    MINUS = "-"


@dataclass(frozen=True, slots=True)
class Signed(Expression):
    """`-x` or `+x`; a sign before a number literal is part of the literal."""

    sign: Sign
    value: Expression


class ArithmeticOperator(Enum):
    """The operators on numbers; `+` also joins texts."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULUS = "%"


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """`left op right` on numbers."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression


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
class Comparison(Expression):
    """`left op right` with a truth value."""

    operator: ComparisonOperator
    left: Expression
    right: Expression


class LogicalOperator(Enum):
    """AND and OR."""

    AND = "AND"
    OR = "OR"


@dataclass(frozen=True, slots=True)
class Logical(Expression):
    """`left AND right`, `left OR right`."""

    operator: LogicalOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """`NOT x`; also the outer part of NOT BETWEEN, NOT IN and NOT LIKE."""

    value: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """`x IS NULL`, or `x IS NOT NULL` where negated."""

    value: Expression
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expression):
    """`x BETWEEN low AND high`, both included."""

    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class In(Expression):
    """`x IN (a, b)`."""

    value: Expression
    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """`x LIKE pattern [ESCAPE c]`."""

    value: Expression
    pattern: Expression
    escape: str | None = None


@dataclass(frozen=True, slots=True)
class When(Expression):
    """`WHEN condition THEN result`; in the simple form of CASE, the condition is the value to compare with."""

    condition: Expression
    result: Expression


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """`CASE WHEN … END`; with an operand it is the simple form, which is parsed and later refused."""

    whens: tuple[When, ...]
    default: Expression | None = None
    operand: Expression | None = None


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """`CAST(x AS type)`."""

    value: Expression
    type: SqlType


# --- composed values -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscript(Expression):
    """`base[index]`."""

    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Dereference(Expression):
    """`base->field`."""

    base: Expression
    field_name: str


@dataclass(frozen=True, slots=True)
class CreateArray(Expression):
    """`ARRAY[a, b]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class CreateMap(Expression):
    """`MAP(k := v)`."""

    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class CreateStruct(Expression):
    """`STRUCT(name := value)`."""

    fields: tuple[tuple[str, Expression], ...]


# --- functions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    """`NAME(a, b)`; `a || b` is CONCAT. `COUNT(*)` has no arguments, and equals `COUNT()`."""

    name: str
    arguments: tuple[Expression, ...] = ()
    has_star: bool = field(default=False, compare=False, kw_only=True)
    """Whether a star stands for the arguments."""


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    """`(x, y) => body`."""

    parameters: tuple[str, ...]
    body: Expression
