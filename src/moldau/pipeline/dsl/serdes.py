"""Serdes by Kafka's names, such as `Serdes.string()`; they return the classes of `moldau.serdes`. Use either."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import ClassVar

from moldau.pipeline.dsl.functions import callable_of
from moldau.pipeline.dsl.options.given import Duration, milliseconds
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.ir.type_variables import K, V
from moldau.pipeline.ir.types import DataType
from moldau.serdes.lists import ListSerde
from moldau.serdes.plain import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    FunctionSerde,
    IntegerSerde,
    JsonSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UuidSerde,
    VoidSerde,
)
from moldau.serdes.serde import Serde
from moldau.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde

__all__ = ["Serdes"]


class Serdes(Hinting):
    """The built-in serdes, each by its name in Kafka Streams."""

    hints: ClassVar[dict[str, str]] = dict.fromkeys(("byte_array", "byte_buffer"), "use bytes()")

    @staticmethod
    def string() -> StringSerde:
        """Text in UTF-8."""
        return StringSerde()

    @staticmethod
    def bytes() -> BytesSerde:
        """Bytes, unchanged."""
        return BytesSerde()

    @staticmethod
    def short() -> ShortSerde:
        """2-byte integers."""
        return ShortSerde()

    @staticmethod
    def integer() -> IntegerSerde:
        """4-byte integers."""
        return IntegerSerde()

    @staticmethod
    def long() -> LongSerde:
        """8-byte integers."""
        return LongSerde()

    @staticmethod
    def float() -> FloatSerde:
        """4-byte floating-point numbers."""
        return FloatSerde()

    @staticmethod
    def double() -> DoubleSerde:
        """8-byte floating-point numbers, the same as Python's float."""
        return DoubleSerde()

    @staticmethod
    def boolean() -> BooleanSerde:
        """Booleans as one byte, 1 or 0."""
        return BooleanSerde()

    @staticmethod
    def uuid() -> UuidSerde:
        """UUIDs as text of 36 characters."""
        return UuidSerde()

    @staticmethod
    def void() -> VoidSerde:
        """Null only: any other value is an error."""
        return VoidSerde()

    @staticmethod
    def json(data_type: DataType | None = None) -> JsonSerde:
        """JSON in UTF-8; with `data_type`, the type of the documents, expressions on them can run inside the engine.

        `Serdes.json(types.Struct((("text", types.Primitive.STRING), ("likes", types.Primitive.BIGINT))))`
        """
        return JsonSerde(data_type)

    @staticmethod
    def serde_from(
        serializer: Callable[[V], builtins.bytes], deserializer: Callable[[builtins.bytes], V]
    ) -> FunctionSerde[V]:
        """A serde made of two functions: (value) -> bytes, and (bytes) -> value.

        `Serdes.serde_from(lambda point: f"{point.x},{point.y}".encode(), Point.parsed)`
        """
        return FunctionSerde(
            callable_of(serializer, "the serializer", "value").call,
            callable_of(deserializer, "the deserializer", "bytes").call,
        )

    @staticmethod
    def list(inner: Serde[V]) -> ListSerde[V]:
        """Lists whose elements are written by `inner`."""
        return ListSerde(inner)

    @staticmethod
    def time_windowed(inner: Serde[K], window_size: Duration) -> TimeWindowedSerde[K]:
        """Keys of a table with time windows; only a window's start is written, so the size is needed to get its end."""
        return TimeWindowedSerde(inner, milliseconds(window_size, "the size of a window", at_least=1))

    @staticmethod
    def session_windowed(inner: Serde[K]) -> SessionWindowedSerde[K]:
        """Keys of a table with session windows."""
        return SessionWindowedSerde(inner)
