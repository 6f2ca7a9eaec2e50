"""Which signature of a function a call means, as ksqlDB chooses it.

First without implicit casts, then with them. Among those that accept the arguments, fixed parameters win over variadic
ones, then more parameters, then fewer type variables, then a later variadic one; a tie is an error. Start at `resolve`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from moldau.core.errors import ErrorCode, MoldauError
from moldau.formats.types import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.pipeline.cores.sql.functions.signatures import (
    ANY,
    ANY_DECIMAL,
    ANY_STRUCT,
    GenericType,
    Parameter,
    Signature,
    has_generics,
)
from moldau.pipeline.ir.sql.expressions import LambdaType

__all__ = [
    "Argument",
    "FunctionLookupError",
    "HasSignature",
    "LambdaShape",
    "Resolved",
    "bind",
    "can_widen",
    "resolve",
    "substitute",
]


@dataclass(frozen=True, slots=True)
class LambdaShape:
    """A lambda as an argument before its types are known."""

    parameter_count: int

    def __str__(self) -> str:
        return "LAMBDA"


Argument: TypeAlias = SqlType | LambdaShape | None
"""The type of an argument; None for NULL."""

Bindings: TypeAlias = dict[str, SqlType]


class HasSignature(Protocol):
    """An overload of a function."""

    @property
    def signature(self) -> Signature:
        """What it accepts."""


OverloadT = TypeVar("OverloadT", bound=HasSignature)


class FunctionLookupError(MoldauError):
    """No function, or no single function, accepts these arguments."""

    code = ErrorCode.INVALID_REQUEST


@dataclass(frozen=True, slots=True)
class Resolved(Generic[OverloadT]):
    """The overload that was chosen, the parameter of each argument, and what its type variables stand for."""

    overload: OverloadT
    parameters: tuple[Parameter, ...]
    bindings: Mapping[str, SqlType]


_WIDER: dict[SqlType, tuple[SqlType, ...]] = {
    INTEGER: (BIGINT, ANY_DECIMAL, DOUBLE),
    BIGINT: (ANY_DECIMAL, DOUBLE),
    STRING: (DATE, TIME, TIMESTAMP, BYTES),
}


def can_widen(source: SqlType, target: SqlType) -> bool:
    """Whether a value is converted without being asked: to wider numbers, and from text to times and bytes."""
    if isinstance(source, DecimalType):
        return target in (ANY_DECIMAL, DOUBLE) or isinstance(target, DecimalType)
    if isinstance(target, DecimalType):
        target = ANY_DECIMAL
    return source == target or target in _WIDER.get(source, ())


def resolve(
    name: str, overloads: Sequence[OverloadT], arguments: Sequence[Argument], *, allow_casts: bool = True
) -> Resolved[OverloadT]:
    """The overload that a call with these arguments means."""
    for with_casts in (False, True) if allow_casts else (False,):
        candidates = []
        for overload in overloads:
            parameters = overload.signature.expanded(len(arguments))
            if parameters is None:
                continue
            bindings = _accepts(parameters, arguments, with_casts)
            if bindings is not None:
                candidates.append(Resolved(overload, parameters, bindings))
        if candidates:
            return _best(name, overloads, candidates, arguments)
    shown = ", ".join(map(_argument_text, arguments))
    raise FunctionLookupError(
        f"Function '{name}' does not accept parameters ({shown}).\n"
        f"Valid alternatives are:\n{_alternatives(name, overloads)}\n"
        "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )


def _best(
    name: str,
    overloads: Sequence[OverloadT],
    candidates: list[Resolved[OverloadT]],
    arguments: Sequence[Argument],
) -> Resolved[OverloadT]:
    ranked = sorted(candidates, key=lambda candidate: _rank(candidate.overload.signature))
    if len(ranked) > 1 and _rank(ranked[-1].overload.signature) == _rank(ranked[-2].overload.signature):
        shown = ", ".join(map(_argument_text, arguments))
        raise FunctionLookupError(
            f"Function '{name}' cannot be resolved due to ambiguous method parameters ({shown}).\n"
            "Use CAST() to explicitly cast your parameters to one of the supported function calls.\n"
            f"Valid function calls are:\n{_alternatives(name, overloads)}\n"
            "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
        )
    return ranked[-1]


def _rank(signature: Signature) -> tuple[int, int, int, int, int]:
    parameters = signature.parameters
    generics = sum(has_generics(parameter.type) or _is_any_variadic(parameter) for parameter in parameters)
    variadic = next((place for place, parameter in enumerate(parameters) if parameter.is_variadic), -1)
    return (
        0 if signature.is_variadic else 1,
        len(parameters),
        -generics,
        0 if any(map(_is_any_variadic, parameters)) else 1,
        variadic,
    )


def _is_any_variadic(parameter: Parameter) -> bool:
    return parameter.is_variadic and parameter.type == ANY


def _argument_text(argument: Argument) -> str:
    return "null" if argument is None else str(argument)


def _alternatives(name: str, overloads: Sequence[OverloadT]) -> str:
    return "\n".join(f"{name}({', '.join(map(str, overload.signature.parameters))})" for overload in overloads)


def _accepts(parameters: Sequence[Parameter], arguments: Sequence[Argument], allow_casts: bool) -> Bindings | None:
    bindings: Bindings = {}
    for parameter, argument in zip(parameters, arguments, strict=True):
        if argument is None:
            continue
        if has_generics(parameter.type):
            if not bind(parameter.type, argument, bindings):
                return None
        elif not _is_compatible(argument, parameter.type, allow_casts):
            return None
    return bindings


def bind(declared: SqlType, argument: Argument, bindings: Bindings) -> bool:
    """Whether an argument has the shape of a parameter; type variables met for the first time are bound."""
    match declared:
        case GenericType():
            if not isinstance(argument, SqlType) or isinstance(argument, LambdaType):
                return False
            return bindings.setdefault(declared.name, argument) == argument
        case LambdaType():
            if isinstance(argument, LambdaShape):
                return len(declared.parameters) == argument.parameter_count
            if not isinstance(argument, LambdaType) or len(argument.parameters) != len(declared.parameters):
                return False
            pairs = zip((*declared.parameters, declared.result), (*argument.parameters, argument.result), strict=True)
            return all(bind(inner, given, bindings) for inner, given in pairs)
        case ArrayType():
            return isinstance(argument, ArrayType) and bind(declared.element, argument.element, bindings)
        case MapType():
            return (
                isinstance(argument, MapType)
                and bind(declared.key, argument.key, bindings)
                and bind(declared.value, argument.value, bindings)
            )
    return _is_compatible(argument, declared, allow_casts=False)


def _is_compatible(argument: Argument, declared: SqlType, allow_casts: bool) -> bool:
    if declared == ANY:
        return not isinstance(argument, LambdaShape | LambdaType)
    if isinstance(argument, LambdaShape):
        return isinstance(declared, LambdaType) and len(declared.parameters) == argument.parameter_count
    if argument is None:
        return True
    if isinstance(argument, ArrayType) and isinstance(declared, ArrayType):
        return _is_compatible(argument.element, declared.element, allow_casts)
    if isinstance(argument, MapType) and isinstance(declared, MapType):
        return _is_compatible(argument.key, declared.key, allow_casts) and _is_compatible(
            argument.value, declared.value, allow_casts
        )
    if isinstance(argument, StructType):
        return declared in (ANY_STRUCT, argument)
    if isinstance(argument, DecimalType) and declared == ANY_DECIMAL:
        return True
    return argument == declared or (allow_casts and can_widen(argument, declared))


def substitute(declared: SqlType, bindings: Mapping[str, SqlType]) -> SqlType:
    """A type with its variables replaced by what they stand for."""
    match declared:
        case GenericType():
            if declared.name not in bindings:
                raise FunctionLookupError(f"Could not find mapping for generic type: {declared.name}")
            return bindings[declared.name]
        case ArrayType():
            return ArrayType(substitute(declared.element, bindings))
        case MapType():
            return MapType(substitute(declared.key, bindings), substitute(declared.value, bindings))
        case StructType():
            return StructType(
                tuple(type(field)(field.name, substitute(field.type, bindings)) for field in declared.fields)
            )
        case LambdaType():
            return LambdaType(
                tuple(substitute(parameter, bindings) for parameter in declared.parameters),
                substitute(declared.result, bindings),
            )
    return declared
