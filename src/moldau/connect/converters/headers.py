"""Header converters: the simple one, which guesses types from texts, and the others by way of their converters.

Start at `SimpleHeaderConverter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.connect.api.config_def import ConfigDef
from moldau.connect.api.plugin_kinds import Converter, HeaderConverter, SchemaAndValue
from moldau.connect.converters import plain
from moldau.connect.converters.java_text import to_values_string
from moldau.connect.converters.json import JsonConverter
from moldau.connect.converters.literals import parse_literal
from moldau.formats.registry.data_schema import DataSchema

__all__ = ["SimpleHeaderConverter"]


class SimpleHeaderConverter(HeaderConverter):
    """Texts, whose type is found again when they are read."""

    def from_connect_header(self, topic: str, key: str, schema: DataSchema | None, value: Any) -> bytes | None:
        return None if value is None else to_values_string(schema, value).encode()

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return (None, None) if data is None else parse_literal(data.decode("utf-8", "replace"))


class _Converted(HeaderConverter):
    converter_class: ClassVar[type[Converter]]

    def __init__(self) -> None:
        self._converter = self.converter_class()

    def configure(self, settings: Mapping[str, str]) -> None:
        self._converter.configure(settings, is_key=False)

    def from_connect_header(self, topic: str, key: str, schema: DataSchema | None, value: Any) -> bytes | None:
        return self._converter.from_connect(topic, schema, value)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self._converter.to_connect(topic, data)


class JsonConverterHeaders(_Converted):
    """JsonConverter for headers."""

    converter_class = JsonConverter
    config_def: ClassVar[ConfigDef] = JsonConverter.config_def


class StringConverterHeaders(_Converted):
    """StringConverter for headers."""

    converter_class = plain.StringConverter
    config_def: ClassVar[ConfigDef] = plain.StringConverter.config_def


class ByteArrayConverterHeaders(_Converted):
    """ByteArrayConverter for headers."""

    converter_class = plain.ByteArrayConverter


class ShortConverterHeaders(_Converted):
    """ShortConverter for headers."""

    converter_class = plain.ShortConverter


class IntegerConverterHeaders(_Converted):
    """IntegerConverter for headers."""

    converter_class = plain.IntegerConverter


class LongConverterHeaders(_Converted):
    """LongConverter for headers."""

    converter_class = plain.LongConverter


class FloatConverterHeaders(_Converted):
    """FloatConverter for headers."""

    converter_class = plain.FloatConverter


class DoubleConverterHeaders(_Converted):
    """DoubleConverter for headers."""

    converter_class = plain.DoubleConverter


class BooleanConverterHeaders(_Converted):
    """BooleanConverter for headers."""

    converter_class = plain.BooleanConverter
