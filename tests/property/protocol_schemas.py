"""What the protocol's property tests share: kio's messages made at random, and both sides made comparable.

Written against kio alone, without the code under test. Start at `entities` and `plain`.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import io
import random
import uuid
from functools import cache
from typing import Any

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, is_optional
from kio.static.constants import EntityType

KINDS = {"request": EntityType.request, "response": EntityType.response}
TIMES = {"timedelta_i32", "timedelta_i64", "datetime_i64"}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def api_versions() -> list[tuple[int, int]]:
    """Every API key and version that kio knows."""
    return [(key, version) for key, name in api_key_map.items() for version in sorted(schema_name_map[name])]


@cache
def entity_class(api_key: int, version: int, kind: str) -> Any:
    module, _, name = schema_name_map[api_key_map[api_key]][version][KINDS[kind]].partition(":")  # type: ignore[index]
    return getattr(importlib.import_module(module), name)


def written(entity: Any) -> bytes:
    output = io.BytesIO()
    entity_writer(type(entity))(output, entity)
    return output.getvalue()


def read_by_kio(cls: Any, data: bytes) -> Any:
    entity, size = entity_reader(cls)(data, 0)
    assert size == len(data)
    return entity


# --- made at random ---------------------------------------------------------------------------------


def integers(bits: int, *, is_signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else st.integers(0, (1 << bits) - 1)


NULLABLE_UUIDS = st.none() | st.integers(1, (1 << 128) - 1).map(lambda number: uuid.UUID(int=number))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.just("x" * 200)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int8": integers(8),
    "int16": integers(16),
    "int32": integers(32),
    "int64": integers(64),
    "uint16": integers(16, is_signed=False),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": TEXTS,
    "bytes": st.binary(max_size=5) | st.just(b"\x80" * 300),
    "records": st.binary(max_size=5),
    "uuid": NULLABLE_UUIDS,
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": integers(32).map(lambda ms: datetime.timedelta(milliseconds=ms)),
    "timedelta_i64": st.integers(-(10**14), 10**14).map(lambda ms: datetime.timedelta(milliseconds=ms)),
    "datetime_i64": st.integers(0, 10**10).map(lambda s: EPOCH + datetime.timedelta(seconds=s)),
}


@cache
def entities(cls: Any) -> st.SearchStrategy[Any]:
    """Instances of one of kio's classes."""
    return st.builds(cls, **{field.name: field_values(field) for field in dataclasses.fields(cls)})


def field_values(field: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    kind, kafka_type = classify_field(field), field.metadata.get("kafka_type")
    is_struct = isinstance(kind, EntityField | EntityTupleField)
    values = entities(kind.type_) if is_struct else VALUES[kafka_type or ""]
    if kind.is_array:
        values = st.lists(values, max_size=2).map(tuple)
    # A tagged field is null by being absent, which is only possible where null is its default.
    may_be_null = is_optional(field) and kafka_type != "uuid" and ("tag" not in field.metadata or field.default is None)
    return st.none() | values if may_be_null else values


# --- made quickly -----------------------------------------------------------------------------------

QUICK: dict[str, Any] = {
    "float64": 0.5,
    "bool": True,
    "string": "name",
    "bytes": b"content",
    "records": b"batches",
    "uuid": uuid.UUID(int=1 << 70 | 7),
    "error_code": ErrorCode.none,
    "timedelta_i32": datetime.timedelta(seconds=3),
    "timedelta_i64": datetime.timedelta(seconds=4),
    "datetime_i64": EPOCH,
}


def example(cls: Any, seed: int = 0) -> Any:
    """One instance whose arrays all hold something and whose nullable fields mostly do, the same each time."""
    rng = random.Random(seed)

    def value(field: dataclasses.Field[Any]) -> Any:
        kind = classify_field(field)
        if is_optional(field) and field.metadata.get("kafka_type") != "uuid" and rng.random() < 0.2:
            return None
        if isinstance(kind, EntityField | EntityTupleField):
            return (entity(kind.type_),) * rng.randint(1, 2) if kind.is_array else entity(kind.type_)
        one = QUICK.get(field.metadata["kafka_type"], rng.randint(1, 100))
        return (one,) * rng.randint(1, 3) if kind.is_array else one

    def entity(inner: Any) -> Any:
        return inner(**{field.name: value(field) for field in dataclasses.fields(inner)})

    return entity(cls)


# --- made comparable --------------------------------------------------------------------------------


def plain(entity: Any) -> Any:
    """kio's instance in the words of our messages: milliseconds, numbers for errors, lists."""
    if dataclasses.is_dataclass(entity):
        return {_name(field): plain(getattr(entity, field.name)) for field in dataclasses.fields(entity)} | {
            f"{field.name}_ms": -1
            for field in dataclasses.fields(entity)
            if field.metadata.get("kafka_type") in TIMES and getattr(entity, field.name) is None
        }
    if isinstance(entity, tuple):
        return [plain(item) for item in entity]
    if isinstance(entity, ErrorCode):
        return entity.value
    if isinstance(entity, datetime.timedelta):
        return entity // datetime.timedelta(milliseconds=1)
    if isinstance(entity, datetime.datetime):
        return (entity - EPOCH) // datetime.timedelta(milliseconds=1)
    return entity


def _name(field: dataclasses.Field[Any]) -> str:
    return f"{field.name}_ms" if field.metadata.get("kafka_type") in TIMES else field.name


def message_plain(message: Any) -> Any:
    """One of our messages as nested dictionaries."""
    if hasattr(message, "__dict__") and not isinstance(message, int | uuid.UUID):
        return {name: message_plain(value) for name, value in vars(message).items()}
    if isinstance(message, list):
        return [message_plain(item) for item in message]
    return message
