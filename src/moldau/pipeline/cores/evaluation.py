"""Evaluate expressions on one record, in Python.

This is the reference implementation of `ir.expressions.FUNCTIONS`, which native engines are tested against. A null
argument gives null, except for the functions in `_LENIENT`; what `cast_to` cannot convert becomes null. Start at
`compile_expression`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from moldau.pipeline.ir import types
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.expressions import Call, Cast, Column, Expression, FieldOf, Literal
from moldau.pipeline.ir.types import DataType, Primitive

__all__ = ["cast_to", "compile_expression"]


Arguments = Sequence[Any]
Evaluator = Callable[[Arguments], Any]


def compile_expression(expression: Expression, parameters: Sequence[str]) -> Callable[..., Any]:
    """A function of these positional parameters that returns the expression's value."""
    evaluate = _evaluator(expression, {name: position for position, name in enumerate(parameters)})
    return lambda *arguments: evaluate(arguments)


def _evaluator(expression: Expression, positions: Mapping[str, int]) -> Evaluator:
    match expression:
        case Column():
            if expression.name not in positions:
                raise TopologyError(f"{expression.name} is not known here, only {', '.join(positions)}")
            return operator.itemgetter(positions[expression.name])
        case Literal():
            constant = expression.value
            return lambda _: constant
        case FieldOf():
            return _field(_evaluator(expression.struct, positions), expression.name)
        case Cast():
            return _strict(cast_to(expression.type), [_evaluator(expression.operand, positions)])
        case Call():
            return _call(expression, [_evaluator(argument, positions) for argument in expression.arguments])
        case _:
            raise TopologyError(f"{type(expression).__name__} cannot be evaluated")


def _call(call: Call, arguments: list[Evaluator]) -> Evaluator:
    if call.function in _LENIENT:
        return _LENIENT[call.function](arguments)
    if call.function in _STRICT:
        return _strict(_STRICT[call.function], arguments)
    raise TopologyError(f"there is no function called {call.function}")


def _strict(function: Callable[..., Any], arguments: list[Evaluator]) -> Evaluator:
    """Null as soon as one argument is null."""
    if len(arguments) == 1:
        (only,) = arguments
        return lambda record: None if (x := only(record)) is None else function(x)
    if len(arguments) == 2:
        one, other = arguments
        return lambda record: None if (x := one(record)) is None or (y := other(record)) is None else function(x, y)
    return lambda record: None if None in (xs := [each(record) for each in arguments]) else function(*xs)


def _field(struct: Evaluator, name: str) -> Evaluator:
    def evaluate(record: Arguments) -> Any:
        found = struct(record)
        if found is None:
            return None
        return found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)

    return evaluate


# --- functions that look at nulls ----------------------------------------------------------------------------


def _and(arguments: list[Evaluator]) -> Evaluator:
    one, other = arguments

    def evaluate(record: Arguments) -> bool | None:
        x = one(record)
        if x is not None and not x:
            return False
        y = other(record)
        if y is not None and not y:
            return False
        return None if x is None or y is None else True

    return evaluate


def _or(arguments: list[Evaluator]) -> Evaluator:
    one, other = arguments

    def evaluate(record: Arguments) -> bool | None:
        x = one(record)
        if x:
            return True
        y = other(record)
        if y:
            return True
        return None if x is None or y is None else False

    return evaluate


def _in(arguments: list[Evaluator]) -> Evaluator:
    wanted, *choices = arguments

    def evaluate(record: Arguments) -> bool | None:
        x = wanted(record)
        if x is None:
            return None
        values = [choice(record) for choice in choices]
        return True if any(each is not None and each == x for each in values) else None if None in values else False

    return evaluate


def _if(arguments: list[Evaluator]) -> Evaluator:
    condition, then, otherwise = arguments
    return lambda record: then(record) if condition(record) else otherwise(record)


def _coalesce(arguments: list[Evaluator]) -> Evaluator:
    return lambda record: next((x for each in arguments if (x := each(record)) is not None), None)


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[[list[Evaluator]], Evaluator]:
    def build(arguments: list[Evaluator]) -> Evaluator:
        def evaluate(record: Arguments) -> Any:
            known = [x for each in arguments if (x := each(record)) is not None]
            return choose(known) if known else None

        return evaluate

    return build


def _struct(arguments: list[Evaluator]) -> Evaluator:
    names = [name(()) for name in arguments[::2]]
    values = arguments[1::2]
    return lambda record: {name: each(record) for name, each in zip(names, values, strict=True)}


_LENIENT: dict[str, Callable[[list[Evaluator]], Evaluator]] = {
    "AND": _and,
    "OR": _or,
    "IN": _in,
    "IF": _if,
    "COALESCE": _coalesce,
    "LEAST": _extreme(min),
    "GREATEST": _extreme(max),
    "IS NULL": lambda arguments: lambda record: arguments[0](record) is None,
    "IS NOT NULL": lambda arguments: lambda record: arguments[0](record) is not None,
    "STRUCT": _struct,
    "ARRAY": lambda arguments: lambda record: [each(record) for each in arguments],
    "PAIR": lambda arguments: lambda record: (arguments[0](record), arguments[1](record)),
}


# --- functions of values -------------------------------------------------------------------------------------


def _unless_zero(divide: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda dividend, divisor: None if divisor == 0 else divide(dividend, divisor)


def _quotient(dividend: Any, divisor: Any) -> float:
    return float(dividend / divisor)


def _whole_quotient(dividend: Any, divisor: Any) -> int:
    # Python's own division of decimals rounds towards zero.
    return math.floor(dividend / divisor) if _has_decimals(dividend, divisor) else int(dividend // divisor)


def _remainder(dividend: Any, divisor: Any) -> Any:
    if _has_decimals(dividend, divisor):
        return dividend - divisor * _whole_quotient(dividend, divisor)
    return dividend % divisor


def _has_decimals(*numbers: Any) -> bool:
    return Decimal in map(type, numbers)


def _round(number: Any, digits: int) -> Any:
    if isinstance(number, int) and digits >= 0:
        return number
    exact = Decimal(str(number)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return type(number)(exact)


def _substring(text: str, start: int, size: int) -> str:
    begin = len(text) + start if start < 0 else max(start, 1) - 1
    return text[max(begin, 0) : max(begin + size, 0)]


def _element(container: Any, item: Any) -> Any:
    if isinstance(container, Mapping):
        return container.get(item)
    return container[item] if 0 <= item < len(container) else None


_STRICT: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _unless_zero(_quotient),
    "//": _unless_zero(_whole_quotient),
    "%": _unless_zero(_remainder),
    "NEGATE": operator.neg,
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "NOT": operator.not_,
    "ABS": abs,
    "ROUND": _round,
    "FLOOR": math.floor,
    "CEIL": math.ceil,
    "UPPER": str.upper,
    "LOWER": str.lower,
    "TRIM": lambda text: text.strip(" "),
    "LENGTH": len,
    "SUBSTRING": _substring,
    "CONCAT": lambda *texts: "".join(texts),
    "REPLACE": str.replace,
    "SPLIT": str.split,
    "CONTAINS": operator.contains,
    "STARTS WITH": str.startswith,
    "ENDS WITH": str.endswith,
    "ELEMENT": _element,
}


def cast_to(data_type: DataType | None) -> Callable[[Any], Any]:
    """A function that converts its argument, which is never null, to this type; None where that fails."""
    if isinstance(data_type, types.Decimal):
        step = Decimal(1).scaleb(-data_type.scale)
        return _or_null(lambda given: Decimal(str(given)).quantize(step, rounding=ROUND_HALF_UP))
    if data_type in _CASTS:
        return _or_null(_CASTS[data_type])
    raise TopologyError(f"a cast to {data_type} is not supported")


def _or_null(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def cast(given: Any) -> Any:
        try:
            return convert(given)
        except (ValueError, OverflowError, InvalidOperation):
            return None

    return cast


def _whole_number(bits: int) -> Callable[[Any], int | None]:
    limit = 1 << (bits - 1)

    def convert(given: Any) -> int | None:
        number = int(given)
        return number if -limit <= number < limit else None

    return convert


def _text(given: Any) -> str:
    if isinstance(given, bool):
        return "true" if given else "false"
    return given.decode() if isinstance(given, bytes) else str(given)


def _truth(given: Any) -> bool | None:
    if isinstance(given, str):
        return {"true": True, "false": False}.get(given.strip().lower())
    return bool(given)


_CASTS: dict[DataType | None, Callable[[Any], Any]] = {
    Primitive.BOOLEAN: _truth,
    Primitive.INTEGER: _whole_number(32),
    Primitive.BIGINT: _whole_number(64),
    Primitive.DOUBLE: float,
    Primitive.STRING: _text,
    Primitive.BYTES: lambda given: given.encode() if isinstance(given, str) else bytes(given),
}
