"""Converters without structure: strings, bytes, and single numbers as Kafka's serializers write them.

Start at `StringConverter`.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.connect.api.config_def import ConfigDef, ConfigType, Importance, Setting
from moldau.connect.api.errors import DataError
from moldau.connect.api.plugin_kinds import Converter, SchemaAndValue
from moldau.connect.api.schemas import (
    BOOLEAN,
    BYTES,
    DATE_NAME,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME_NAME,
    TIMESTAMP_NAME,
    optional,
)
from moldau.connect.converters.java_text import to_java_string
from moldau.formats.registry.data_schema import DataSchema, Kind

__all__ = [
    "BooleanConverter",
    "ByteArrayConverter",
    "DoubleConverter",
    "FloatConverter",
    "IntegerConverter",
    "LongConverter",
    "ShortConverter",
    "StringConverter",
]

OPTIONAL_STRING, OPTIONAL_BYTES = optional(STRING), optional(BYTES)


def _encoding_problem(value: str) -> str | None:
    try:
        codecs.lookup(value)
    except LookupError:
        return "is not a known encoding"
    return None


class StringConverter(Converter):
    """The text of a value, whatever its type, and texts when reading."""

    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting(
            "converter.encoding",
            ConfigType.STRING,
            "The encoding of the texts.",
            "UTF-8",
            _encoding_problem,
            Importance.HIGH,
            synonyms=("converter.encoding.serializer", "converter.encoding.deserializer"),
        )
    )
    _encoding = "utf-8"

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        self._encoding = self.config_def.parse(settings)["converter.encoding"]

    def from_connect(self, topic: str, schema: DataSchema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        text = value if isinstance(value, str) else to_java_string(schema, value)
        return text.encode(self._encoding, "replace")

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return OPTIONAL_STRING, None if data is None else data.decode(self._encoding, "replace")


class ByteArrayConverter(Converter):
    """Bytes as they are."""

    def from_connect(self, topic: str, schema: DataSchema | None, value: Any) -> bytes | None:
        if schema is not None and schema.kind is not Kind.BYTES:
            raise DataError(f"ByteArrayConverter writes values of type bytes, not {schema.kind.value}")
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, (bytearray, memoryview)):
            return bytes(value)
        raise DataError(f"ByteArrayConverter writes bytes, not {type(value).__name__}")

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return OPTIONAL_BYTES, data


class _PrimitiveConverter(Converter):
    """One number or boolean in big-endian order."""

    schema: ClassVar[DataSchema]
    packing: ClassVar[struct.Struct]
    types: ClassVar[tuple[type, ...]] = (int,)

    def from_connect(self, topic: str, schema: DataSchema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        is_wrong_schema = schema is not None and (
            schema.kind is not self.schema.kind or schema.name in (DATE_NAME, TIME_NAME, TIMESTAMP_NAME)
        )
        is_boolean = isinstance(value, bool) and bool not in self.types
        if is_wrong_schema or is_boolean or not isinstance(value, self.types):
            given = type(value).__name__ if schema is None else schema.name or schema.kind.value
            raise DataError(f"{type(self).__name__} writes values of type {self.schema.kind.value}, not {given}")
        try:
            return self.packing.pack(value)
        except struct.error as error:
            raise DataError(f"{type(self).__name__} cannot write {value}: {error}") from None

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return self.schema, None
        if len(data) != self.packing.size:
            raise DataError(
                f"{type(self).__name__} reads {self.packing.size} bytes, and a record of {topic} has {len(data)}"
            )
        return self.schema, self.packing.unpack(data)[0]


class ShortConverter(_PrimitiveConverter):
    """16-bit numbers."""

    schema, packing = optional(INT16), struct.Struct(">h")


class IntegerConverter(_PrimitiveConverter):
    """32-bit numbers."""

    schema, packing = optional(INT32), struct.Struct(">i")


class LongConverter(_PrimitiveConverter):
    """64-bit numbers."""

    schema, packing = optional(INT64), struct.Struct(">q")


class FloatConverter(_PrimitiveConverter):
    """32-bit floats."""

    schema, packing, types = optional(FLOAT32), struct.Struct(">f"), (float, int)


class DoubleConverter(_PrimitiveConverter):
    """64-bit floats."""

    schema, packing, types = optional(FLOAT64), struct.Struct(">d"), (float, int)


class BooleanConverter(_PrimitiveConverter):
    """True or false in one byte."""

    schema, packing, types = optional(BOOLEAN), struct.Struct(">?"), (bool,)

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is not None and data not in (b"\x00", b"\x01"):
            raise DataError(f"BooleanConverter reads one byte, 0 or 1, and a record of {topic} has {data[:8]!r}")
        return super().to_connect(topic, data)
