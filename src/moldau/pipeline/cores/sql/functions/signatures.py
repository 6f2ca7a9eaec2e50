"""What a function accepts: parameter types beyond those of values, and signatures written as text.

`(list ARRAY<T>, item T) -> BOOLEAN` is a signature: single capitals stand for any type (the same one wherever they
occur), DECIMAL for every decimal, ANY for anything, `T...` for any number of arguments, `(T, U) => V` for a lambda.
Start at `parse_signature`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    Field,
    MapType,
    Primitive,
    SqlType,
    StructType,
)
from moldau.pipeline.ir.sql.expressions import LambdaType

__all__ = [
    "ANY",
    "ANY_DECIMAL",
    "ANY_STRUCT",
    "INTERVAL_UNIT",
    "GenericType",
    "Parameter",
    "ReturnRule",
    "Signature",
    "has_generics",
    "parse_signature",
    "parse_type",
    "type_text",
]

ANY = Primitive("ANY")
"""Every type."""

ANY_DECIMAL = Primitive("DECIMAL")
"""A decimal of any precision and scale."""

ANY_STRUCT = Primitive("STRUCT")
"""A struct of any fields."""

INTERVAL_UNIT = Primitive("INTERVALUNIT")
"""A unit of time as an argument, given to the implementation as its name: `MILLISECONDS` to `DAYS`."""


@dataclass(frozen=True, slots=True)
class GenericType(SqlType):
    """A type variable."""

    name: str

    def __str__(self) -> str:
        return self.name


ReturnRule = Callable[[Sequence[SqlType | None]], SqlType]
"""The type of the result from those of the arguments, where a signature cannot say it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter; variadic ones take any number of arguments."""

    name: str
    type: SqlType
    is_variadic: bool = False

    def __str__(self) -> str:
        return f"{type_text(self.type)}{'...' if self.is_variadic else ''} {self.name}".strip()


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters and the result of a function, as written in `text`."""

    text: str
    parameters: tuple[Parameter, ...]
    result: SqlType

    @property
    def is_variadic(self) -> bool:
        """Whether it takes any number of arguments somewhere."""
        return any(parameter.is_variadic for parameter in self.parameters)

    def expanded(self, count: int) -> tuple[Parameter, ...] | None:
        """The parameters of a call with `count` arguments, None if it cannot have so many."""
        if not self.is_variadic:
            return self.parameters if len(self.parameters) == count else None
        repeated = count - (len(self.parameters) - 1)
        if repeated < 0:
            return None
        expanded: list[Parameter] = []
        for parameter in self.parameters:
            expanded.extend([parameter] * repeated if parameter.is_variadic else [parameter])
        return tuple(expanded)


_NAMES: dict[str, SqlType] = {
    kind.name: kind
    for kind in (
        BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DATE, TIME, TIMESTAMP,
        ANY, ANY_DECIMAL, ANY_STRUCT, INTERVAL_UNIT,
    )
}  # fmt: skip

_SHORT_NAMES = {"INTEGER": "INT", "STRING": "VARCHAR"}


def type_text(of: SqlType) -> str:
    """A parameter's type as messages and descriptions of functions show it."""
    match of:
        case Primitive():
            return _SHORT_NAMES.get(of.name, of.name)
        case ArrayType():
            return f"ARRAY<{type_text(of.element)}>"
        case MapType():
            return f"MAP<{type_text(of.key)}, {type_text(of.value)}>"
        case StructType():
            return f"STRUCT<{', '.join(f'{field.name} {type_text(field.type)}' for field in of.fields)}>"
        case LambdaType():
            return f"LAMBDA ({', '.join(map(type_text, of.parameters))}) => {type_text(of.result)}"
    return str(of)


def has_generics(of: SqlType) -> bool:
    """Whether a type variable occurs in it."""
    match of:
        case GenericType():
            return True
        case ArrayType():
            return has_generics(of.element)
        case MapType():
            return has_generics(of.key) or has_generics(of.value)
        case LambdaType():
            return any(map(has_generics, of.parameters)) or has_generics(of.result)
    return False


_TOKEN = re.compile(r"\s*(->|=>|\.\.\.|[A-Za-z_][A-Za-z_0-9]*|[(),<>])")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def peek(self, ahead: int = 0) -> str:
        position = self._next + ahead
        return self._tokens[position] if position < len(self._tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise ValueError(f"{self._text!r} is not a valid signature: expected {expected or 'more'} before {token!r}")
        self._next += 1
        return token

    def read_type(self) -> SqlType:
        if self.peek() == "(":
            return self._read_lambda()
        name = self.take()
        if name == "ARRAY":
            self.take("<")
            element = self.read_type()
            self.take(">")
            return ArrayType(element)
        if name == "MAP":
            self.take("<")
            key = self.read_type()
            self.take(",")
            value = self.read_type()
            self.take(">")
            return MapType(key, value)
        if name == "STRUCT" and self.peek() == "<":
            return self._read_struct()
        if len(name) == 1:
            return GenericType(name)
        return _NAMES[name]

    def _read_struct(self) -> SqlType:
        self.take("<")
        fields = []
        while True:
            name = self.take()
            fields.append(Field(name, self.read_type()))
            if self.take() == ">":
                return StructType(tuple(fields))

    def _read_lambda(self) -> SqlType:
        self.take("(")
        parameters = [self.read_type()]
        while self.peek() == ",":
            self.take()
            parameters.append(self.read_type())
        self.take(")")
        self.take("=>")
        return LambdaType(tuple(parameters), self.read_type())

    def read_parameter(self) -> Parameter:
        name = self.take()
        kind = self.read_type()
        is_variadic = self.peek() == "..."
        if is_variadic:
            self.take()
        return Parameter(name, kind, is_variadic)


def parse_type(text: str) -> SqlType:
    """A type from its text; raises ValueError or KeyError for what is none."""
    reader = _Reader(text)
    found = reader.read_type()
    if reader.peek():
        raise ValueError(f"{text!r} has more text after its type")
    return found


def parse_signature(text: str) -> Signature:
    """A signature from its text."""
    reader = _Reader(text)
    reader.take("(")
    parameters: list[Parameter] = []
    while reader.peek() != ")":
        if parameters:
            reader.take(",")
        parameters.append(reader.read_parameter())
    reader.take(")")
    reader.take("->")
    return Signature(text, tuple(parameters), reader.read_type())
