"""How keys and values become bytes and come back.

A serde is an object with two methods; those here need nothing but the standard library and equal Kafka's own
(`StringSerde`, `LongSerde` and so on). `None` is never given to a serde: a null key or value stays null. A serde may
offer more than the two methods:

- `data_type`, the type of its values, lets an engine read expressions over them;
- `encode` and `decode`, functions of one argument that need no topic, are the fast way: they refuse the same values,
  in worse words;
- `is_plain` says that values never change and come back equal, so a store may keep them as they are;
- `configured(settings, part)` gives the serde to use for keys or values under an application's settings;
- `from_text(topic, text)` is a value that a person wrote, for queries by key.

Lists are in `list_serde`, windowed keys in `windowed_serdes`. Start at `Serde`.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NoReturn, Protocol

from moldau.pipeline.ir.errors import SerdeError
from moldau.pipeline.ir.type_variables import V
from moldau.pipeline.ir.types import DataType, Primitive

__all__ = [
    "BooleanSerde",
    "BytesSerde",
    "DefaultSerde",
    "DoubleSerde",
    "FloatSerde",
    "IntegerSerde",
    "JsonSerde",
    "LongSerde",
    "Serde",
    "ShortSerde",
    "StringSerde",
    "UuidSerde",
    "VoidSerde",
    "refuse",
    "shown",
    "type_of",
]


class Serde(Protocol[V]):
    """Bytes to value and back; `topic` lets a serde look its schema up by subject."""

    def serialize(self, topic: str, value: V, /) -> bytes: ...

    def deserialize(self, topic: str, data: bytes, /) -> V: ...


def type_of(serde: Serde) -> DataType | None:
    """The type of a serde's values, where the serde knows it."""
    return getattr(serde, "data_type", None)


@dataclass(frozen=True, slots=True)
class StringSerde:
    """Text in UTF-8."""

    data_type: ClassVar[DataType] = Primitive.STRING
    is_plain: ClassVar[bool] = True
    encode: ClassVar[Callable[[Any], bytes]] = staticmethod(str.encode)
    decode: ClassVar[Callable[[bytes], Any]] = staticmethod(bytes.decode)

    def serialize(self, topic: str, value: str, /) -> bytes:
        try:
            return value.encode()
        except AttributeError:
            refuse(value, "text (str)")

    def deserialize(self, topic: str, data: bytes, /) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise SerdeError(f"{shown(data)} is not text in UTF-8: {error.reason} at byte {error.start}") from None


@dataclass(frozen=True, slots=True)
class BytesSerde:
    """Bytes as they are."""

    data_type: ClassVar[DataType] = Primitive.BYTES
    is_plain: ClassVar[bool] = True

    def serialize(self, topic: str, value: bytes, /) -> bytes:
        if isinstance(value, bytes):
            return value
        return bytes(value) if isinstance(value, bytearray | memoryview) else refuse(value, "bytes")

    def deserialize(self, topic: str, data: bytes, /) -> bytes:
        return data


class _Fixed(Generic[V]):
    """Numbers of one size, big-endian as Java writes them."""

    __slots__ = ()
    layout: ClassVar[struct.Struct]
    kind: ClassVar[str]
    data_type: ClassVar[DataType]
    is_plain: ClassVar[bool] = True

    @property
    def encode(self) -> Callable[[Any], bytes]:
        return self.layout.pack

    @property
    def decode(self) -> Callable[[bytes], Any]:
        unpack = self.layout.unpack
        return lambda data: unpack(data)[0]

    def serialize(self, topic: str, value: V, /) -> bytes:
        try:
            return self.layout.pack(value)
        except (struct.error, OverflowError):
            refuse(value, self.kind)

    def deserialize(self, topic: str, data: bytes, /) -> V:
        if len(data) != self.layout.size:
            raise SerdeError(f"{self.kind} has {self.layout.size} bytes, not {len(data)}: {shown(data)}")
        value: V = self.layout.unpack(data)[0]
        return value


@dataclass(frozen=True, slots=True)
class ShortSerde(_Fixed[int]):
    """Whole numbers of 2 bytes."""

    layout: ClassVar[struct.Struct] = struct.Struct(">h")
    kind: ClassVar[str] = "a short"
    data_type: ClassVar[DataType] = Primitive.INTEGER


@dataclass(frozen=True, slots=True)
class IntegerSerde(_Fixed[int]):
    """Whole numbers of 4 bytes."""

    layout: ClassVar[struct.Struct] = struct.Struct(">i")
    kind: ClassVar[str] = "an integer"
    data_type: ClassVar[DataType] = Primitive.INTEGER


@dataclass(frozen=True, slots=True)
class LongSerde(_Fixed[int]):
    """Whole numbers of 8 bytes."""

    layout: ClassVar[struct.Struct] = struct.Struct(">q")
    kind: ClassVar[str] = "a long"
    data_type: ClassVar[DataType] = Primitive.BIGINT


@dataclass(frozen=True, slots=True)
class FloatSerde(_Fixed[float]):
    """Numbers of 4 bytes."""

    layout: ClassVar[struct.Struct] = struct.Struct(">f")
    kind: ClassVar[str] = "a float"
    is_plain: ClassVar[bool] = False
    data_type: ClassVar[DataType] = Primitive.DOUBLE


@dataclass(frozen=True, slots=True)
class DoubleSerde(_Fixed[float]):
    """Numbers of 8 bytes."""

    layout: ClassVar[struct.Struct] = struct.Struct(">d")
    kind: ClassVar[str] = "a double"
    data_type: ClassVar[DataType] = Primitive.DOUBLE


@dataclass(frozen=True, slots=True)
class BooleanSerde:
    """One byte, 1 or 0."""

    data_type: ClassVar[DataType] = Primitive.BOOLEAN
    is_plain: ClassVar[bool] = True

    def serialize(self, topic: str, value: bool, /) -> bytes:
        return (b"\x01" if value else b"\x00") if isinstance(value, bool) else refuse(value, "a bool")

    def deserialize(self, topic: str, data: bytes, /) -> bool:
        if data not in (b"\x00", b"\x01"):
            raise SerdeError(f"a boolean is one byte, 0 or 1, not {shown(data)}")
        return data == b"\x01"


@dataclass(frozen=True, slots=True)
class UuidSerde:
    """A UUID as its 36 characters."""

    data_type: ClassVar[DataType] = Primitive.STRING
    is_plain: ClassVar[bool] = True

    def serialize(self, topic: str, value: uuid.UUID, /) -> bytes:
        return str(value).encode() if isinstance(value, uuid.UUID) else refuse(value, "a UUID")

    def deserialize(self, topic: str, data: bytes, /) -> uuid.UUID:
        try:
            return uuid.UUID(data.decode())
        except ValueError:
            raise SerdeError(f"{shown(data)} is not a UUID") from None


@dataclass(frozen=True, slots=True)
class VoidSerde:
    """Nothing but nulls."""

    def serialize(self, topic: str, value: Any, /) -> bytes:
        refuse(value, "null, the only value of a void serde")

    def deserialize(self, topic: str, data: bytes, /) -> Any:
        raise SerdeError(f"only nulls were expected here, not {shown(data)}")


@dataclass(frozen=True, slots=True)
class JsonSerde:
    """JSON in UTF-8 without blanks; `data_type` tells what the documents look like, where that is known."""

    data_type: DataType | None = None

    def serialize(self, topic: str, value: Any, /) -> bytes:
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, ValueError) as error:
            raise SerdeError(f"{shown(value)} cannot be written as JSON: {error}") from None

    def deserialize(self, topic: str, data: bytes, /) -> Any:
        try:
            return json.loads(data)
        except ValueError as error:
            raise SerdeError(f"{shown(data)} is not JSON: {error}") from None


@dataclass(frozen=True, slots=True)
class DefaultSerde:
    """The serde of `default.key.serde` or `default.value.serde`, put in place by `rewrites.with_default_serdes`."""

    part: str

    def serialize(self, topic: str, value: Any, /) -> bytes:
        raise self.missing()

    def deserialize(self, topic: str, data: bytes, /) -> Any:
        raise self.missing()

    def missing(self) -> SerdeError:
        """The refusal of a pipeline that names no serde, neither here nor in its settings."""
        return SerdeError(
            f"no serde for a {self.part}: name one where records are read, grouped, joined, kept or written "
            f"(Consumed, Grouped, Joined, Materialized, Produced), or set default.{self.part}.serde"
        )


def refuse(value: object, wanted: str) -> NoReturn:
    """Say that a serde cannot write a value."""
    raise SerdeError(f"{shown(value)} ({type(value).__name__}) is not {wanted}; give the operator a fitting serde")


def shown(value: object) -> str:
    """The beginning of a value, for messages."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
