"""Avro schemas, changes people make to them, and values, all drawn at random.

Start at `schemas`; `changed` makes the next version of a schema, `values` something to write with it.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from moldau.schemas.avro.types import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union, branch_name

__all__ = ["changed", "schemas", "values"]

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
FIELD_NAMES = ["a", "b", "c", "d"]
SYMBOLS = ["RED", "GREEN", "BLUE", "GREY"]


@st.composite
def schemas(draw: st.DrawFn) -> Any:
    """A whole schema as JSON: mostly records, sometimes anything else."""
    names = iter(f"N{number}" for number in range(1_000))
    return _type(draw, names, depth=3, outer=[], kinds=["record"] * 3 + ["union", "array", "map", "enum", "primitive"])


def _type(draw: st.DrawFn, names: Any, depth: int, outer: list[str], kinds: list[str] | None = None) -> Any:
    every = ["primitive"] * 4 + ["enum", "fixed", "array", "map", "record", "union", "union", "recursion"]
    kind = draw(st.sampled_from(kinds or every)) if depth > 0 else "primitive"
    match kind:
        case "record":
            name = next(names)
            inside = [*outer, name]
            chosen = draw(st.lists(st.sampled_from(FIELD_NAMES), unique=True, max_size=3))
            fields = [{"name": field, "type": _type(draw, names, depth - 1, inside)} for field in chosen]
            return {"type": "record", "name": name, "fields": fields}
        case "enum":
            symbols = draw(st.lists(st.sampled_from(SYMBOLS), unique=True, min_size=1))
            default = {"default": symbols[0]} if draw(st.booleans()) else {}
            return {"type": "enum", "name": next(names), "symbols": symbols, **default}
        case "fixed":
            return {"type": "fixed", "name": next(names), "size": draw(st.integers(1, 3))}
        case "array":
            return {"type": "array", "items": _type(draw, names, depth - 1, outer)}
        case "map":
            return {"type": "map", "values": _type(draw, names, depth - 1, outer)}
        case "union":
            return _union(draw, names, depth, outer)
        case "recursion" if outer:
            return ["null", draw(st.sampled_from(outer))]
    return draw(st.sampled_from(PRIMITIVES))


def _union(draw: st.DrawFn, names: Any, depth: int, outer: list[str]) -> Any:
    branches: list[Any] = list(draw(st.lists(st.sampled_from(PRIMITIVES), unique=True, min_size=1, max_size=3)))
    if depth > 1 and draw(st.booleans()):
        branches.append(_type(draw, names, depth - 1, outer, ["record", "enum", "fixed"]))
    return draw(st.permutations(branches))


@st.composite
def changed(draw: st.DrawFn, schema: Any) -> Any:
    """The schema with up to three changes somewhere in it; they may well be bad ones."""
    new = copy.deepcopy(schema)
    for _ in range(draw(st.integers(0, 3))):
        places = _places(new)
        container, key = draw(st.sampled_from([([new], 0), *places]))
        container[key] = _one_change(draw, container[key])
        if container is not new and isinstance(container, list) and len(container) == 1 and container[0] is not new:
            new = container[0]
    return new


def _places(schema: Any) -> list[tuple[Any, Any]]:
    """Where a type is written inside another."""
    found: list[tuple[Any, Any]] = []
    if isinstance(schema, list):
        found += [(schema, index) for index in range(len(schema))]
        for branch in schema:
            found += _places(branch)
    elif isinstance(schema, dict):
        for key in ("items", "values"):
            if key in schema:
                found += [(schema, key), *_places(schema[key])]
        for field in schema.get("fields", ()):
            found += [(field, "type"), *_places(field["type"])]
    return found


def _one_change(draw: st.DrawFn, schema: Any) -> Any:
    if isinstance(schema, str):
        wider = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"]}
        swapped = {"string": ["bytes"], "bytes": ["string"]}
        options = [*wider.get(schema, []), *swapped.get(schema, []), draw(st.sampled_from(PRIMITIVES))]
        plain: Any = draw(st.sampled_from(options)) if schema in PRIMITIVES else schema
        return plain if plain == "null" or draw(st.booleans()) else ["null", plain]
    if isinstance(schema, list):
        return _changed_union(draw, schema)
    match schema["type"]:
        case "record":
            return _changed_record(draw, schema)
        case "enum":
            symbols = draw(st.lists(st.sampled_from(SYMBOLS), unique=True, min_size=1))
            default = {"default": symbols[0]} if draw(st.booleans()) else {}
            return {"type": "enum", "name": schema["name"], "symbols": symbols, **default}
        case "fixed":
            return {**schema, "size": draw(st.integers(1, 3))}
    return schema


def _changed_union(draw: st.DrawFn, union: list[Any]) -> Any:
    if draw(st.booleans()):
        missing = [name for name in PRIMITIVES if name not in union]
        return draw(st.permutations([*union, *draw(st.lists(st.sampled_from(missing), unique=True, max_size=2))]))
    return draw(st.permutations(union))


def _changed_record(draw: st.DrawFn, record: dict[str, Any]) -> dict[str, Any]:
    fields = list(record["fields"])
    match draw(st.sampled_from(["add", "remove", "rename", "order", "namespace", "record name"])):
        case "add":
            free = [name for name in FIELD_NAMES if all(field["name"] != name for field in fields)]
            if free:
                default = {"default": 7} if draw(st.booleans()) else {}
                fields.insert(draw(st.integers(0, len(fields))), {"name": free[0], "type": "int", **default})
        case "remove" if fields:
            del fields[draw(st.integers(0, len(fields) - 1))]
        case "rename" if fields:
            index = draw(st.integers(0, len(fields) - 1))
            fields[index] = {**fields[index], "name": "z", "aliases": [fields[index]["name"]]}
        case "order":
            fields = draw(st.permutations(fields))
        case "namespace":
            return {**record, "namespace": "moved", "fields": fields}
        case "record name":
            return {**record, "name": f"{record['name']}x", "aliases": [record["name"]], "fields": fields}
    names = [field["name"] for field in fields]
    return {**record, "fields": fields} if len(set(names)) == len(names) else record


@st.composite
def values(draw: st.DrawFn, avro_type: AvroType, depth: int = 6) -> Any:
    """A value in Avro's JSON encoding."""
    match avro_type:
        case Primitive(kind):
            return draw(_PRIMITIVE_VALUES[kind])
        case Record():
            return {field.name: draw(values(field.type, depth - 1)) for field in avro_type.fields}
        case Enum():
            return draw(st.sampled_from(avro_type.symbols))
        case Fixed():
            return draw(st.binary(min_size=avro_type.size, max_size=avro_type.size)).decode("latin-1")
        case Array():
            return [
                draw(values(avro_type.items, depth - 1)) for _ in range(draw(st.integers(0, 2 if depth > 0 else 0)))
            ]
        case Map():
            keys = draw(st.lists(st.text(max_size=3), unique=True, max_size=2 if depth > 0 else 0))
            return {key: draw(values(avro_type.values, depth - 1)) for key in keys}
        case Union():
            shallow = [branch for branch in avro_type.branches if isinstance(branch, Primitive | Enum | Fixed)]
            branch = draw(st.sampled_from(shallow if depth <= 0 and shallow else list(avro_type.branches)))
            return None if branch.kind == "null" else {branch_name(branch): draw(values(branch, depth - 1))}


_PRIMITIVE_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    # Bytes may become a string, which they can if they are one: nothing else is written here.
    "bytes": st.text(max_size=4).map(lambda text: text.encode().decode("latin-1")),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
}
