"""Rows as Avro data of any schema: of the one derived from the columns, or of one that others registered.

Logical types are converted here, not by fastavro, whose dates and times would have to be converted back to numbers.
Start at `avro_reader` and `avro_writer`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.formats.columns import Column
from moldau.formats.errors import RowError
from moldau.formats.registry.avro_schemas import avro_data_schema, branch_field, branches_of, is_map_entries
from moldau.formats.registry.data_schema import DECIMAL
from moldau.formats.registry.inference import each_item, struct_reader, value_reader
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
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.formats.values import decimal_from_bytes, decimal_to_bytes, fit_decimal
from moldau.schemas.avro.codec import AvroCodec
from moldau.schemas.avro.schema import AvroSchema, parse_avro
from moldau.schemas.avro.types import Array, AvroType, Enum, Field, Fixed, Map, Primitive, Record, Union, branch_name

__all__ = ["avro_reader", "avro_writer"]

Convert = Callable[[Any], Any]
"""Converts a value that is not null; where `None` stands for it, values need no conversion."""


def avro_reader(schema: AvroSchema, columns: tuple[Column, ...], *, is_bare: bool) -> Callable[[bytes], Any]:
    """A function from Avro data to rows. Raises `RowError` if no data of the schema can be a row of the columns."""
    data_schema = avro_data_schema(schema.type)
    named = _has_branches(schema.type)
    to_data = _to_data(schema.type, named)
    if is_bare:
        to_value = value_reader(data_schema, columns[0].type)
    elif data_schema.fields or isinstance(schema.type, Record):
        to_value = struct_reader(data_schema, [(column.name, column.type) for column in columns])
    else:
        raise RowError(f"Cannot deserialize type {data_schema.kind.value} as a record of columns")
    decode = AvroCodec(_without_logical_types(schema), name_branches=named).decode

    def read(body: bytes) -> Any:
        value = decode(body)
        if value is not None:
            value = value if to_data is None else to_data(value)
            value = value if to_value is None else to_value(value)
        return (value,) if is_bare else value

    return read


def avro_writer(schema: AvroSchema, columns: tuple[Column, ...], *, is_bare: bool) -> Callable[[Any], bytes]:
    """A function from rows to Avro data. Raises `RowError` if rows of the columns do not fit the schema."""
    _, branches = branches_of(schema.type)
    if is_bare:
        inner = _writer(columns[0].type, schema.type, columns[0].name)
        convert: Convert = lambda row: row[0] if inner is None else inner(row[0])  # noqa: E731
    elif len(branches) == 1 and isinstance(branches[0], Record):
        convert = _record_writer([(column.name, column.type) for column in columns], branches[0])
    else:
        raise RowError("Rows of several columns cannot be written with an Avro schema that is not a record")
    encode = AvroCodec(_without_logical_types(schema)).encode
    return lambda row: encode(convert(row))


def _without_logical_types(schema: AvroSchema) -> AvroSchema:
    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: stripped(item) for key, item in value.items() if key != "logicalType"}
        return [stripped(item) for item in value] if isinstance(value, list) else value

    return parse_avro(json.dumps(stripped(json.loads(schema.render("resolved")))), validate=False)


# Reading: Avro's values to data of the data schema. Schemas are not recursive: `avro_data_schema` has seen to it.


def _has_branches(avro_type: AvroType) -> bool:
    """Whether there is a union of several types, whose values have to say which one they are of."""
    match avro_type:
        case Union(branches):
            return len(branches_of(avro_type)[1]) > 1 or any(map(_has_branches, branches))
        case Array():
            return _has_branches(avro_type.items)
        case Map():
            return _has_branches(avro_type.values)
        case Record():
            return any(_has_branches(field.type) for field in avro_type.fields)
    return False


def _to_data(avro_type: AvroType, named: bool) -> Convert | None:
    """From fastavro's values; `named` says whether it gives named types inside unions with their names."""
    match avro_type:
        case Union():
            return _union_to_data(avro_type, named)
        case Primitive("bytes", properties) if _scale(properties) is not None:
            return _decimal_of(_scale(properties) or 0)
        case Fixed() if _scale(avro_type.properties) is not None:
            return _decimal_of(_scale(avro_type.properties) or 0)
        case Array() if is_map_entries(avro_type):
            return _entries_to_data(avro_type, named)
        case Array():
            return each_item(_to_data(avro_type.items, named))
        case Map():
            inner = _to_data(avro_type.values, named)
            if inner is None:
                return None
            return lambda entries: {key: None if one is None else inner(one) for key, one in entries.items()}
        case Record():
            return _record_to_data(avro_type, named)
    return None


def _record_to_data(record: Record, named: bool) -> Convert | None:
    inner = [(field.name, _to_data(field.type, named)) for field in record.fields]
    changed = [(name, convert) for name, convert in inner if convert is not None]
    if not changed:
        return None

    def read(value: dict[str, Any]) -> dict[str, Any]:
        for name, convert in changed:
            item = value[name]
            if item is not None:
                value[name] = convert(item)
        return value

    return read


def _entries_to_data(entries: Array, named: bool) -> Convert:
    assert isinstance(entries.items, Record)
    inner = _record_to_data(entries.items, named)

    def read(items: list[dict[str, Any]]) -> dict[Any, Any]:
        found = items if inner is None else [inner(item) for item in items]
        return {item["key"]: item["value"] for item in found}

    return read


def _union_to_data(union: Union, named: bool) -> Convert | None:
    _, branches = branches_of(union)
    inner = [_to_data(branch, named) for branch in branches]
    if len(branches) == 1:
        convert = inner[0]
        if not named or not isinstance(branches[0], Record | Enum | Fixed):
            return convert
        return lambda pair: pair[1] if convert is None else convert(pair[1])
    by_name = {branch_name(branch): index for index, branch in enumerate(branches)}
    fields = [branch_field(branch) for branch in branches]

    def read(value: Any) -> dict[str, Any]:
        if isinstance(value, tuple):
            index, item = by_name[value[0]], value[1]
        else:
            index, item = _plain_branch(branches, value), value
        convert = inner[index]
        found = dict.fromkeys(fields)
        found[fields[index]] = item if convert is None else convert(item)
        return found

    return read


_PYTHON_TYPES: Final[Mapping[str, type]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "string": str,
    "array": list,
    "map": dict,
}


def _plain_branch(branches: list[AvroType], value: Any) -> int:
    """The branch of a value without a name: the first of its Python type that can hold it."""
    for index, branch in enumerate(branches):
        fits = type(value) is _PYTHON_TYPES.get(branch.kind)
        if fits and not (branch.kind == "int" and not -(2**31) <= value < 2**31):
            return index
    raise RowError("the data match no branch of the union in the Avro schema")


def _scale(properties: Mapping[str, Any]) -> int | None:
    if properties.get("logicalType") == "decimal":
        return int(properties.get("scale", 0))
    if properties.get("connect.name") == DECIMAL:
        parameters = properties.get("connect.parameters")
        return int(parameters.get("scale", 0)) if isinstance(parameters, Mapping) else 0
    return None


def _decimal_of(scale: int) -> Convert:
    return lambda data: decimal_from_bytes(data, scale)


# Writing


def _writer(sql_type: SqlType, avro_type: AvroType, path: str) -> Convert | None:
    """A function from values, null included, to what fastavro writes; raises `RowError` if they never fit."""
    has_null, branches = branches_of(avro_type)
    if len(branches) == 1:
        convert = _writer_of_one(sql_type, branches[0], path)
    else:
        convert = _union_writer(sql_type, branches, path)
    if has_null:
        return None if convert is None else lambda value: None if value is None else convert(value)

    def write(value: Any) -> Any:
        if value is None:
            raise RowError(f"{path} is null, and its field in the Avro schema does not allow that")
        return value if convert is None else convert(value)

    return write


_TARGETS: Final[Mapping[SqlType, tuple[str, ...]]] = {
    BOOLEAN: ("boolean",),
    INTEGER: ("int", "long", "float", "double"),
    BIGINT: ("long", "float", "double"),
    DOUBLE: ("double", "float"),
    STRING: ("string", "enum"),
    BYTES: ("bytes", "fixed"),
    DATE: ("int", "long"),
    TIME: ("int", "long"),
    TIMESTAMP: ("long",),
}


def _writer_of_one(sql_type: SqlType, avro_type: AvroType, path: str) -> Convert | None:
    match sql_type, avro_type:
        case DecimalType(), Primitive("bytes", properties) if _scale(properties) is not None:
            return _decimal_writer(sql_type.precision, _scale(properties) or 0)
        case ArrayType(element), Array() if not is_map_entries(avro_type):
            write_item = _writer(element, avro_type.items, f"{path}[]")
            return None if write_item is None else lambda items: [write_item(item) for item in items]
        case MapType(_, value), Array() if is_map_entries(avro_type):
            return _entries_writer(value, avro_type, path)
        case MapType(_, value), Map():
            inner = _writer(value, avro_type.values, f"{path}[]")
            return None if inner is None else lambda entries: {key: inner(one) for key, one in entries.items()}
        case StructType(fields), Record():
            return _record_writer([(field.name, field.type) for field in fields], avro_type, path)
    if avro_type.kind not in _TARGETS.get(sql_type, ()):
        raise RowError(f"{path} is {sql_type}, which cannot be written as Avro's {avro_type.kind}")
    return None


def _decimal_writer(precision: int, scale: int) -> Convert:
    target = DecimalType(max(precision, scale), scale)

    return lambda value: decimal_to_bytes(fit_decimal(value, target))


def _entries_writer(value_type: SqlType, entries: Array, path: str) -> Convert:
    assert isinstance(entries.items, Record)
    inner = _writer(value_type, entries.items.fields[1].type, f"{path}[]")

    def write(value: dict[Any, Any]) -> list[dict[str, Any]]:
        return [{"key": key, "value": one if inner is None else inner(one)} for key, one in value.items()]

    return write


def _union_writer(sql_type: SqlType, branches: list[AvroType], path: str) -> Convert:
    """Of a struct with a field per branch, or of a value that fits one of the branches."""
    if isinstance(sql_type, StructType):
        by_field = {branch_field(branch).upper(): branch for branch in branches}
        chosen = [by_field.get(field.name.upper()) for field in sql_type.fields]
        if all(branch is not None for branch in chosen):
            pairs = list(zip(sql_type.fields, [one for one in chosen if one is not None], strict=True))
            inner = [_writer_of_one(field.type, branch, f"{path}->{field.name}") for field, branch in pairs]
            return _branch_writer([branch_name(branch) for _, branch in pairs], inner, path)
    for branch in branches:
        try:
            convert = _writer_of_one(sql_type, branch, path)
        except RowError:
            continue
        name = branch_name(branch)
        return lambda value: (name, value if convert is None else convert(value))
    raise RowError(f"{path} is {sql_type}, which fits no branch of the union in the Avro schema")


def _branch_writer(names: list[str], inner: list[Convert | None], path: str) -> Convert:
    def write(value: tuple[Any, ...]) -> Any:
        for name, convert, item in zip(names, inner, value, strict=True):
            if item is not None:
                return (name, item if convert is None else convert(item))
        raise RowError(f"no branch of the union {path} has a value")

    return write


def _record_writer(fields: list[tuple[str, SqlType]], record: Record, path: str = "") -> Convert:
    """A function from tuples to dicts. A null becomes the default of a field that has one and allows no null."""
    places = {name: index for index, (name, _) in enumerate(fields)}
    upper = {name.upper(): index for index, (name, _) in enumerate(fields)}
    plan: list[tuple[str, int, Convert | None, bool]] = []
    for field in record.fields:
        index = places.get(field.name, upper.get(field.name.upper()))
        has_null, _ = branches_of(field.type)
        if index is not None:
            inner = _writer(fields[index][1], field.type, f"{path}->{field.name}" if path else field.name)
            plan.append((field.name, index, inner, field.has_default and not has_null))
        elif not field.has_default and not has_null:
            _refuse_missing(field)

    if [index for _, index, convert, takes_default in plan if convert is None and not takes_default] == [
        *places.values()
    ]:
        names = [name for name, *_ in plan]
        return lambda row: dict(zip(names, row, strict=True))

    def write(row: tuple[Any, ...]) -> dict[str, Any]:
        written = {}
        for name, index, convert, takes_default in plan:
            value = row[index]
            if value is None and takes_default:
                continue
            written[name] = value if convert is None else convert(value)
        return written

    return write


def _refuse_missing(field: Field) -> None:
    raise RowError(
        f"Missing default value for required field: [{field.name}]. This field appears in the schema in Schema Registry"
    )
