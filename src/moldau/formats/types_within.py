"""What a type contains: the types inside it, and the base names that messages use. Start at `types_within`."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.formats.types import ArrayType, DecimalType, MapType, Primitive, SqlType, StructType

__all__ = ["base_name", "contains", "types_within"]


def types_within(sql_type: SqlType) -> Iterator[SqlType]:
    """The type itself and every type inside it, outermost first; works for any depth."""
    pending = [sql_type]
    while pending:
        current = pending.pop()
        yield current
        match current:
            case ArrayType(element):
                pending.append(element)
            case MapType(key, value):
                pending += [value, key]
            case StructType(fields):
                pending += [field.type for field in reversed(fields)]


def contains(sql_type: SqlType, kind: type[SqlType]) -> bool:
    """Whether the type is, or has inside it, a type of that class."""
    return any(isinstance(inner, kind) for inner in types_within(sql_type))


def base_name(sql_type: SqlType) -> str:
    """The type's name without parameters, as messages say it: `DECIMAL`, `ARRAY`."""
    match sql_type:
        case Primitive(name):
            return name
        case DecimalType():
            return "DECIMAL"
        case ArrayType():
            return "ARRAY"
        case MapType():
            return "MAP"
        case StructType():
            return "STRUCT"
    return str(sql_type)
