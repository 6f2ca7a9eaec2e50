"""Expressions as Spark columns, for parts of a pipeline that run without Python.

A column has the same result as `pipeline.cores.evaluation` for the same record; if Spark's function differs, it is
corrected here or refused. Integers have 64 bits: an overflow stops the pipeline. Start at `lower`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moldau.core.errors import MoldauError
from moldau.pipeline.ir.expressions import Call, Cast, Expression, FieldOf, Literal
from moldau.pipeline.ir.expressions import Column as ColumnOf
from moldau.pipeline.ir.types import Array, DataType, Decimal, Map, Primitive, Struct

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["NotNativeError", "lower", "spark_type"]


class NotNativeError(MoldauError):
    """Something has no native form; the message says what, and why."""


def lower(expression: Expression, columns: Mapping[str, Column]) -> Column:
    """The expression over these columns; raises `NotNativeError` if Spark has no equivalent."""
    from pyspark.sql import functions as f

    match expression:
        case ColumnOf():
            if expression.name not in columns:
                raise NotNativeError(f"the {expression.name} has a serde that only Python can read")
            return columns[expression.name]
        case Literal():
            _known_type(expression)
            return f.lit(expression.value)
        case FieldOf():
            if not isinstance(expression.struct.type, Struct):
                raise NotNativeError(f"field {expression.name} belongs to a value whose data_type is not declared")
            if expression.name not in dict(expression.struct.type.fields):
                raise NotNativeError(f"there is no field {expression.name}")
            return lower(expression.struct, columns).getField(expression.name)
        case Cast():
            return _cast(lower(expression.operand, columns), expression.operand.type, expression.type)
        case Call():
            return _call(expression, [lower(argument, columns) for argument in expression.arguments])
        case _:
            raise NotNativeError(f"{type(expression).__name__} has no column")


def _known_type(expression: Expression) -> DataType:
    if expression.type is None:
        raise NotNativeError("the type of an expression is not known; name the data_type of its serde")
    return expression.type


def spark_type(data_type: DataType | None) -> str:
    """A type as Spark SQL text."""
    match data_type:
        case Primitive() if data_type in _PRIMITIVES:
            return _PRIMITIVES[data_type]
        case Decimal():
            return f"decimal({data_type.precision},{data_type.scale})"
        case Array():
            return f"array<{spark_type(data_type.items)}>"
        case Map():
            return f"map<{spark_type(data_type.keys)},{spark_type(data_type.values)}>"
        case Struct():
            fields = (f"`{name}`:{spark_type(field)}" for name, field in data_type.fields)
            return f"struct<{','.join(fields)}>"
        case _:
            raise NotNativeError(f"type {data_type} has no native form")


_PRIMITIVES = {
    Primitive.BOOLEAN: "boolean",
    Primitive.INTEGER: "int",
    Primitive.BIGINT: "bigint",
    Primitive.DOUBLE: "double",
    Primitive.STRING: "string",
    Primitive.BYTES: "binary",
}

_WHOLE = (Primitive.INTEGER, Primitive.BIGINT)
_NUMBERS = (*_WHOLE, Primitive.DOUBLE)


def _cast(column: Column, given: DataType | None, wanted: DataType | None) -> Column:
    """The cast column; only casts with the same meaning in Python and Spark are allowed."""
    if given == wanted:
        return column
    allowed = {
        Primitive.BIGINT: (Primitive.INTEGER,),
        Primitive.DOUBLE: _WHOLE,
        Primitive.STRING: _WHOLE,
    }
    if isinstance(wanted, Primitive) and given in allowed.get(wanted, ()):
        return column.cast(spark_type(wanted))
    raise NotNativeError(f"the cast from {_type_name(given)} to {_type_name(wanted)} gives other results in Spark")


def _type_name(data_type: DataType | None) -> str:
    return data_type.value if isinstance(data_type, Primitive) else str(data_type)


def _call(call: Call, arguments: list[Column]) -> Column:
    types = tuple(argument.type for argument in call.arguments)
    if call.function in _ARITHMETIC:
        return _arithmetic(call, arguments, types)
    lower = _FUNCTIONS.get(call.function)
    if lower is None:
        raise NotNativeError(f"{call.function} has no native form")
    if not _fits(call.function, [found for found in types if found is not None]):
        raise NotNativeError(f"{call.function} of {', '.join(map(_type_name, types))} has no native form")
    return lower(arguments)


def _fits(function: str, types: Sequence[DataType]) -> bool:
    needed = _NEEDED.get(function)
    if needed is not None and any(found not in needed for found in types):
        return False
    if function in _OF_ONE_KIND:
        return len(set(types)) < 2 or all(found in _NUMBERS for found in types)
    return function != "ELEMENT" or isinstance(types[0], Array)


def _arithmetic(call: Call, arguments: list[Column], types: Sequence[DataType | None]) -> Column:
    from pyspark.sql import functions as f

    one, other = arguments
    if call.function == "+" and all(each is Primitive.STRING for each in types):
        return f.concat(one, other)
    if any(each not in _NUMBERS for each in types):
        raise NotNativeError(f"{call.function} of {', '.join(map(_type_name, types))} has no native form")
    if all(each in _WHOLE for each in types):
        one, other = one.cast("bigint"), other.cast("bigint")
    divisor = f.when(other != 0, other)
    match call.function:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
        case "/":
            return one.cast("double") / divisor.cast("double")
        case "%" if all(each in _WHOLE for each in types):
            # Python's remainder has the sign of the divisor, Java's that of the dividend.
            return (one % divisor + divisor) % divisor
        case "//" if all(each in _WHOLE for each in types):
            return f.call_function("div", one - (one % divisor + divisor) % divisor, divisor)
        case _:
            raise NotNativeError(f"{call.function} of DOUBLE has no native form")


_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%"})


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[list[Column]], Column]:
    return lambda arguments: compare(arguments[0], arguments[1])


def _functions() -> dict[str, Callable[[list[Column]], Column]]:
    def f() -> Any:
        from pyspark.sql import functions

        return functions

    return {
        "NEGATE": lambda a: -a[0],
        "=": _comparison(lambda x, y: x == y),
        "<>": _comparison(lambda x, y: x != y),
        "<": _comparison(lambda x, y: x < y),
        "<=": _comparison(lambda x, y: x <= y),
        ">": _comparison(lambda x, y: x > y),
        ">=": _comparison(lambda x, y: x >= y),
        "AND": _comparison(lambda x, y: x & y),
        "OR": _comparison(lambda x, y: x | y),
        "NOT": lambda a: ~a[0],
        "IS NULL": lambda a: a[0].isNull(),
        "IS NOT NULL": lambda a: a[0].isNotNull(),
        "IN": lambda a: a[0].isin(*a[1:]),
        "IF": lambda a: f().when(a[0], a[1]).otherwise(a[2]),
        "COALESCE": lambda a: f().coalesce(*a),
        "LEAST": lambda a: f().least(*a) if len(a) > 1 else a[0],
        "GREATEST": lambda a: f().greatest(*a) if len(a) > 1 else a[0],
        "ABS": lambda a: f().abs(a[0]),
        "FLOOR": lambda a: f().floor(a[0]),
        "CEIL": lambda a: f().ceil(a[0]),
        "UPPER": lambda a: f().upper(a[0]),
        "LOWER": lambda a: f().lower(a[0]),
        "SUBSTRING": lambda a: f().substring(a[0], a[1].cast("int"), a[2].cast("int")),
        "ELEMENT": lambda a: f().get(a[0], a[1].cast("int")),
        "TRIM": lambda a: f().trim(a[0]),
        "LENGTH": lambda a: f().length(a[0]).cast("bigint"),
        "CONCAT": lambda a: f().concat(*a),
        "REPLACE": lambda a: f().replace(*a),
        "STARTS WITH": lambda a: f().startswith(a[0], a[1]),
        "ENDS WITH": lambda a: f().endswith(a[0], a[1]),
        "CONTAINS": lambda a: f().contains(a[0], a[1]),
        "ARRAY": lambda a: f().array(*a),
        "STRUCT": lambda a: f().named_struct(*a),
        "SPLIT": lambda a: f().split(a[0], f().concat(f().lit("\\Q"), a[1], f().lit("\\E")), -1),
    }


_FUNCTIONS = _functions()

_TEXT = (Primitive.STRING,)
_COMPARABLE = (*_NUMBERS, Primitive.STRING, Primitive.BOOLEAN, Primitive.BYTES)

_NEEDED: dict[str, tuple[Primitive, ...]] = {
    **dict.fromkeys(("NEGATE", "ABS", "FLOOR", "CEIL"), _NUMBERS),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "IN", "LEAST", "GREATEST"), _COMPARABLE),
    **dict.fromkeys(("AND", "OR", "NOT"), (Primitive.BOOLEAN,)),
    **dict.fromkeys(("UPPER", "LOWER", "TRIM", "LENGTH", "CONCAT", "REPLACE", "SPLIT"), _TEXT),
    **dict.fromkeys(("STARTS WITH", "ENDS WITH", "CONTAINS"), _TEXT),
    "SUBSTRING": (Primitive.STRING, *_WHOLE),
}
"""The argument types for which a function has the same result in Spark; rounding is only done by Python."""

_OF_ONE_KIND = frozenset({"=", "<>", "<", "<=", ">", ">=", "IN", "LEAST", "GREATEST", "COALESCE"})
"""Functions whose arguments Spark would cast to a common type, and Python would not."""
