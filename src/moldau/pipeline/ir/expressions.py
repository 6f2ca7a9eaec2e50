"""Typed expressions over a record that every engine can read.

Nothing here computes: `pipeline.cores.evaluation` evaluates an expression on one record, `pipeline.spark` lowers it to
a column. Front ends build them; `key` and `value` of a record are columns of that name, fields of a struct are reached
with `FieldOf`. Start at `Expression`.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.pipeline.ir.types import DataType


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
    """A field of a struct, null where the struct is."""

    struct: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """A value as another type."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function or operator by name, with its arguments in order."""

    function: str
    arguments: tuple[Expression, ...]
