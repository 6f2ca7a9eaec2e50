"""Expressions written with Python's operators, which the engine can analyse and run without Python.

`stream.filter(value["likes"] > 10)` means the same as a lambda but can run inside the engine. The operators build
`ir.expressions`; functions are in `expression_functions`. Start at `key`, `value` and `lit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.expressions import Call, Cast, Column, Expression, FieldOf, Literal
from moldau.pipeline.ir.inference import type_of_literal
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.types import DataType

__all__ = ["Term", "aggregate", "call", "col", "expression_of", "key", "left", "lit", "right", "value"]


class Term:
    """An expression that supports Python's operators; as in SQL, an operator with a null operand returns null.

    Write `&`, `|` and `~` for and, or and not, with comparisons in parentheses: `(value["a"] > 1) & (key != "x")`.
    """

    __slots__ = ("expression",)
    __hash__ = None  # type: ignore[assignment]  # == builds an expression, so equal terms cannot be found in a set

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def __getitem__(self, item: str | int | Term) -> Term:
        """A field of a struct by its name, or an element of an array by its index, which starts at 0."""
        if isinstance(item, str):
            return Term(FieldOf(None, self.expression, item))
        return call("ELEMENT", self, item)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Raise `AttributeError` with a hint: a field is not an attribute, as its name may be that of a method."""
            hint = "" if name.startswith("_") or name in self.__slots__ else f"; a field is reached as [{name!r}]"
            raise AttributeError(f"an expression has no {name}{hint}", name=None, obj=self)

    def cast(self, data_type: DataType) -> Term:
        """The value converted to another type; null if text cannot be converted."""
        return Term(Cast(data_type, self.expression))

    def is_null(self) -> Term:
        """Whether the value is null."""
        return call("IS NULL", self)

    def is_not_null(self) -> Term:
        """Whether the value is not null."""
        return call("IS NOT NULL", self)

    def is_in(self, *values: Any) -> Term:
        """Whether the value equals one of these values."""
        return call("IN", self, *values)

    def contains(self, part: Any) -> Term:
        """Whether a text contains this part, or an array this element."""
        return call("CONTAINS", self, part)

    def starts_with(self, part: Any) -> Term:
        """Whether a text begins with this part."""
        return call("STARTS WITH", self, part)

    def ends_with(self, part: Any) -> Term:
        """Whether a text ends with this part."""
        return call("ENDS WITH", self, part)

    def __add__(self, other: Any) -> Term:
        return call("+", self, other)

    def __radd__(self, other: Any) -> Term:
        return call("+", other, self)

    def __sub__(self, other: Any) -> Term:
        return call("-", self, other)

    def __rsub__(self, other: Any) -> Term:
        return call("-", other, self)

    def __mul__(self, other: Any) -> Term:
        return call("*", self, other)

    def __rmul__(self, other: Any) -> Term:
        return call("*", other, self)

    def __truediv__(self, other: Any) -> Term:
        return call("/", self, other)

    def __rtruediv__(self, other: Any) -> Term:
        return call("/", other, self)

    def __floordiv__(self, other: Any) -> Term:
        return call("//", self, other)

    def __rfloordiv__(self, other: Any) -> Term:
        return call("//", other, self)

    def __mod__(self, other: Any) -> Term:
        return call("%", self, other)

    def __rmod__(self, other: Any) -> Term:
        return call("%", other, self)

    def __neg__(self) -> Term:
        return call("NEGATE", self)

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return call("=", self, other)

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return call("<>", self, other)

    def __lt__(self, other: Any) -> Term:
        return call("<", self, other)

    def __le__(self, other: Any) -> Term:
        return call("<=", self, other)

    def __gt__(self, other: Any) -> Term:
        return call(">", self, other)

    def __ge__(self, other: Any) -> Term:
        return call(">=", self, other)

    def __and__(self, other: Any) -> Term:
        return call("AND", self, other)

    def __rand__(self, other: Any) -> Term:
        return call("AND", other, self)

    def __or__(self, other: Any) -> Term:
        return call("OR", self, other)

    def __ror__(self, other: Any) -> Term:
        return call("OR", other, self)

    def __invert__(self) -> Term:
        return call("NOT", self)

    def __bool__(self) -> NoReturn:
        raise TopologyError(
            "an expression has no truth value while the topology is built: write & | ~ for and, or, not, with "
            "comparisons in parentheses, as in (a < b) & (b < c) for a < b < c",
            callers_origin(),
        )

    def __iter__(self) -> NoReturn:
        raise TopologyError("an expression cannot be looped over; flat_map_values takes one apart", callers_origin())

    def __repr__(self) -> str:
        return f"Term({self.expression!r})"


key = Term(Column(None, "key"))
"""The key of a record."""
value = Term(Column(None, "value"))
"""The value of a record."""
aggregate = Term(Column(None, "aggregate"))
"""The current aggregate, in `reduce` or `aggregate`."""
left = Term(Column(None, "left"))
"""The left value of a join."""
right = Term(Column(None, "right"))
"""The right value of a join."""


def col(name: str) -> Term:
    """A field of the record's value: `col("likes")` is `value["likes"]`."""
    return value[name]


def lit(constant: Any) -> Term:
    """A constant as an expression, where a plain Python constant would not be accepted as one."""
    return Term(expression_of(constant))


def call(function: str, *arguments: Any) -> Term:
    """A call of a function of `ir.expressions.FUNCTIONS`; the arguments are terms or constants."""
    return Term(Call(None, function, tuple(expression_of(argument) for argument in arguments)))


def expression_of(given: Any) -> Expression:
    """A term or constant as an expression; a tuple becomes a pair (key, value), a dict a struct, a list an array."""
    match given:
        case Term():
            return given.expression
        case Expression():
            return given
        case tuple():
            if len(given) != 2:
                raise TopologyError(f"a pair is (key, value), not {len(given)} expressions", callers_origin())
            return Call(None, "PAIR", tuple(map(expression_of, given)))
        case dict():
            named = [part for name, each in given.items() for part in (str(name), each)]
            return Call(None, "STRUCT", tuple(map(expression_of, named)))
        case list():
            return Call(None, "ARRAY", tuple(map(expression_of, given)))
        case None | bool() | int() | float() | str() | bytes():
            return Literal(type_of_literal(given), given)
        case _:
            raise TopologyError(f"{given!r} cannot be part of an expression", callers_origin())
