"""Serdes by Kafka's names: `Serdes.string()`, `Serdes.long()`. They are the classes of `moldau.serdes`; use either."""

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
    """The serdes that come with the library."""

    hints: ClassVar[dict[str, str]] = dict.fromkeys(("byte_array", "byte_buffer"), "use bytes()")

    @staticmethod
    def string() -> StringSerde:
        """Text in UTF-8."""
        return StringSerde()

    @staticmethod
    def bytes() -> BytesSerde:
        """Bytes as they are."""
        return BytesSerde()

    @staticmethod
    def short() -> ShortSerde:
        """Whole numbers of 2 bytes."""
        return ShortSerde()

    @staticmethod
    def integer() -> IntegerSerde:
        """Whole numbers of 4 bytes."""
        return IntegerSerde()

    @staticmethod
    def long() -> LongSerde:
        """Whole numbers of 8 bytes."""
        return LongSerde()

    @staticmethod
    def float() -> FloatSerde:
        """Numbers of 4 bytes."""
        return FloatSerde()

    @staticmethod
    def double() -> DoubleSerde:
        """Numbers of 8 bytes, what Python calls a float."""
        return DoubleSerde()

    @staticmethod
    def boolean() -> BooleanSerde:
        """One byte, 1 or 0."""
        return BooleanSerde()

    @staticmethod
    def uuid() -> UuidSerde:
        """UUIDs as their 36 characters."""
        return UuidSerde()

    @staticmethod
    def void() -> VoidSerde:
        """Nothing but nulls."""
        return VoidSerde()

    @staticmethod
    def json(data_type: DataType | None = None) -> JsonSerde:
        """JSON in UTF-8; the type of the documents lets expressions over them run inside the engine.

        `Serdes.json(types.Struct((("text", types.Primitive.STRING), ("likes", types.Primitive.BIGINT))))`
        """
        return JsonSerde(data_type)

    @staticmethod
    def serde_from(
        serializer: Callable[[V], builtins.bytes], deserializer: Callable[[builtins.bytes], V]
    ) -> FunctionSerde[V]:
        """What two functions write and read: (value) -> bytes, and (bytes) -> value.

        `Serdes.serde_from(lambda point: f"{point.x},{point.y}".encode(), Point.parsed)`
        """
        return FunctionSerde(
            callable_of(serializer, "the serializer", "value").call,
            callable_of(deserializer, "the deserializer", "bytes").call,
        )

    @staticmethod
    def list(inner: Serde[V]) -> ListSerde[V]:
        """Lists of what `inner` writes."""
        return ListSerde(inner)

    @staticmethod
    def time_windowed(inner: Serde[K], window_size: Duration) -> TimeWindowedSerde[K]:
        """Keys of a table with time windows; the size finds the end of a window again."""
        return TimeWindowedSerde(inner, milliseconds(window_size, "the size of a window", at_least=1))

    @staticmethod
    def session_windowed(inner: Serde[K]) -> SessionWindowedSerde[K]:
        """Keys of a table with sessions."""
        return SessionWindowedSerde(inner)
