"""Serdes that need only the standard library, in the formats of Kafka's own serializers.

Each has a class and, if it needs no arguments, a constant (`STRING`, `LONG`, `JSON`). Lists are in `lists`,
windowed keys in `windowed`, formats with a schema in `schema_serde`. Start at `StringSerde`.
"""

from __future__ import annotations

import codecs
import json
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic

from moldau.core.errors import InvalidConfigError
from moldau.serdes.serde import Headers, SerdeError, T, refuse, short_repr

__all__ = [
    "BOOLEAN",
    "BYTES",
    "DOUBLE",
    "FLOAT",
    "INT",
    "JSON",
    "LONG",
    "SHORT",
    "STRING",
    "UUID",
    "VOID",
    "BooleanSerde",
    "BytesSerde",
    "DoubleSerde",
    "FloatSerde",
    "FunctionSerde",
    "IntegerSerde",
    "JsonSerde",
    "LongSerde",
    "NumberSerde",
    "ShortSerde",
    "StringSerde",
    "UuidSerde",
    "VoidSerde",
]


@dataclass(frozen=True, slots=True, repr=False)
class StringSerde:
    """Text, in UTF-8 unless another `encoding` is given."""

    is_plain: ClassVar[bool] = True
    uses_headers: ClassVar[bool] = False

    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        try:
            name = codecs.lookup(self.encoding).name
        except (LookupError, TypeError):
            raise InvalidConfigError(f"{self.encoding} is not an encoding Python knows") from None
        object.__setattr__(self, "encoding", name)

    def __repr__(self) -> str:
        return "StringSerde()" if self.encoding == "utf-8" else f"StringSerde({self.encoding!r})"

    @property
    def encode(self) -> Callable[[Any], bytes]:
        encoding = self.encoding
        return str.encode if encoding == "utf-8" else lambda text: text.encode(encoding)

    @property
    def decode(self) -> Callable[[bytes], Any]:
        encoding = self.encoding
        return bytes.decode if encoding == "utf-8" else lambda data: data.decode(encoding)

    def serialize(self, topic: str, value: str, headers: Headers | None = None) -> bytes:
        if not isinstance(value, str):
            refuse(value, "text (str)")
        try:
            return value.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise SerdeError(f"{short_repr(value)} cannot be written in {self.encoding}: {error.reason}") from None

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> str:
        try:
            return data.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise SerdeError(
                f"{short_repr(data)} is not text in {self.encoding}: {error.reason} at byte {error.start}"
            ) from None

    def from_text(self, topic: str, text: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class BytesSerde:
    """Bytes, unchanged."""

    is_plain: ClassVar[bool] = True
    uses_headers: ClassVar[bool] = False

    def serialize(self, topic: str, value: bytes, headers: Headers | None = None) -> bytes:
        if isinstance(value, bytes):
            return value
        return bytes(value) if isinstance(value, bytearray | memoryview) else refuse(value, "bytes")

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> bytes:
        return data

    def from_text(self, topic: str, text: str) -> bytes:
        return text.encode()


class NumberSerde(Generic[T]):
    """Base class of serdes for numbers of fixed size, big-endian as in Java. Use one of the classes below."""

    __slots__ = ()
    layout: ClassVar[struct.Struct]
    java_name: ClassVar[str]
    description: ClassVar[str]
    python_type: ClassVar[type]
    is_plain: ClassVar[bool] = True
    uses_headers: ClassVar[bool] = False

    @property
    def encode(self) -> Callable[[Any], bytes]:
        return self.layout.pack

    @property
    def decode(self) -> Callable[[bytes], Any]:
        unpack = self.layout.unpack
        return lambda data: unpack(data)[0]

    def serialize(self, topic: str, value: T, headers: Headers | None = None) -> bytes:
        try:
            data = self.layout.pack(value)
        except (struct.error, OverflowError):
            if isinstance(value, self.python_type):
                raise SerdeError(f"{value} does not fit into {self.description} of {self.layout.size} bytes") from None
            refuse(value, f"{self.description} ({self.python_type.__name__})")
        if isinstance(value, bool):
            refuse(value, f"{self.description} ({self.python_type.__name__})")
        return data

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> T:
        if len(data) != self.layout.size:
            # The first half is Kafka's own message, which users search for.
            raise SerdeError(
                f"Size of data received by {self.java_name}Deserializer is not {self.layout.size}: "
                f"{short_repr(data)} has {len(data)} bytes"
            )
        value: T = self.layout.unpack(data)[0]
        return value

    def from_text(self, topic: str, text: str) -> T:
        try:
            value: T = self.python_type(text)
        except ValueError:
            raise SerdeError(f"{short_repr(text)} is not {self.description}") from None
        return value


@dataclass(frozen=True, slots=True)
class ShortSerde(NumberSerde[int]):
    """Signed integers of 2 bytes."""

    layout: ClassVar[struct.Struct] = struct.Struct(">h")
    java_name: ClassVar[str] = "Short"
    description: ClassVar[str] = "a short"
    python_type: ClassVar[type] = int


@dataclass(frozen=True, slots=True)
class IntegerSerde(NumberSerde[int]):
    """Signed integers of 4 bytes."""

    layout: ClassVar[struct.Struct] = struct.Struct(">i")
    java_name: ClassVar[str] = "Integer"
    description: ClassVar[str] = "an integer"
    python_type: ClassVar[type] = int


@dataclass(frozen=True, slots=True)
class LongSerde(NumberSerde[int]):
    """Signed integers of 8 bytes."""

    layout: ClassVar[struct.Struct] = struct.Struct(">q")
    java_name: ClassVar[str] = "Long"
    description: ClassVar[str] = "a long"
    python_type: ClassVar[type] = int


@dataclass(frozen=True, slots=True)
class FloatSerde(NumberSerde[float]):
    """Floating-point numbers of 4 bytes."""

    layout: ClassVar[struct.Struct] = struct.Struct(">f")
    java_name: ClassVar[str] = "Float"
    description: ClassVar[str] = "a float"
    python_type: ClassVar[type] = float
    # Python's float has 8 bytes and is rounded to 4, so it may not come back equal.
    is_plain: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class DoubleSerde(NumberSerde[float]):
    """Floating-point numbers of 8 bytes."""

    layout: ClassVar[struct.Struct] = struct.Struct(">d")
    java_name: ClassVar[str] = "Double"
    description: ClassVar[str] = "a double"
    python_type: ClassVar[type] = float


@dataclass(frozen=True, slots=True)
class BooleanSerde:
    """Booleans as one byte, 1 or 0."""

    is_plain: ClassVar[bool] = True
    uses_headers: ClassVar[bool] = False

    def serialize(self, topic: str, value: bool, headers: Headers | None = None) -> bytes:
        return (b"\x01" if value else b"\x00") if isinstance(value, bool) else refuse(value, "a truth value (bool)")

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> bool:
        if data not in (b"\x00", b"\x01"):
            raise SerdeError(f"a boolean is one byte, 0 or 1, not {short_repr(data)}")
        return data == b"\x01"

    def from_text(self, topic: str, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise SerdeError(f"{short_repr(text)} is not true or false")
        return text.lower() == "true"


@dataclass(frozen=True, slots=True)
class UuidSerde:
    """UUIDs as text of 36 characters."""

    is_plain: ClassVar[bool] = True
    uses_headers: ClassVar[bool] = False

    def serialize(self, topic: str, value: uuid.UUID, headers: Headers | None = None) -> bytes:
        return str(value).encode() if isinstance(value, uuid.UUID) else refuse(value, "a UUID (uuid.UUID)")

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> uuid.UUID:
        try:
            return uuid.UUID(data.decode())
        except ValueError:
            raise SerdeError(f"{short_repr(data)} is not a UUID") from None

    def from_text(self, topic: str, text: str) -> uuid.UUID:
        try:
            return uuid.UUID(text)
        except ValueError:
            raise SerdeError(f"{short_repr(text)} is not a UUID") from None


@dataclass(frozen=True, slots=True)
class VoidSerde:
    """Nulls only."""

    uses_headers: ClassVar[bool] = False

    def serialize(self, topic: str, value: Any, headers: Headers | None = None) -> bytes:
        refuse(value, "null, the only value of a void serde")

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> Any:
        raise SerdeError(f"only nulls were expected here, not {short_repr(data)}")


def _json_encoder(default: Callable[[Any], Any] | None) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default)


_ENCODE_JSON = _json_encoder(None).encode


@dataclass(frozen=True, slots=True)
class JsonSerde:
    """JSON in UTF-8 without whitespace. NaN and infinities are rejected, since JSON has no such numbers.

    data_type: the type of the documents (`moldau.streams.types`), for pipelines that evaluate expressions over
        them; the serde itself does not check it.
    default: called for objects that `json` cannot write; returns an object that it can write.
    """

    uses_headers: ClassVar[bool] = False

    data_type: Any = None
    default: Callable[[Any], Any] | None = field(default=None, kw_only=True)

    def serialize(self, topic: str, value: Any, headers: Headers | None = None) -> bytes:
        try:
            encode = _ENCODE_JSON if self.default is None else _json_encoder(self.default).encode
            return encode(value).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise SerdeError(
                f"{short_repr(value)} ({type(value).__name__}) cannot be written as JSON: {error}"
            ) from error

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise SerdeError(f"{short_repr(data)} is not JSON: {error}") from None

    def from_text(self, topic: str, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SerdeError(f"{short_repr(text)} is not JSON: {error}") from None


@dataclass(frozen=True, slots=True)
class FunctionSerde(Generic[T]):
    """A serde from two functions, `encode(value)` and `decode(bytes)`; neither is ever called with None."""

    uses_headers: ClassVar[bool] = False

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]

    def serialize(self, topic: str, value: T, headers: Headers | None = None) -> bytes:
        try:
            return self.encode(value)
        except Exception as error:
            raise SerdeError(f"{short_repr(value)} cannot be written: {type(error).__name__}: {error}") from error

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> T:
        try:
            return self.decode(data)
        except Exception as error:
            raise SerdeError(f"{short_repr(data)} cannot be read: {type(error).__name__}: {error}") from error


STRING = StringSerde()
BYTES = BytesSerde()
SHORT = ShortSerde()
INT = IntegerSerde()
"""Signed integers of 4 bytes, as Java's `IntegerSerializer`."""
LONG = LongSerde()
"""Signed integers of 8 bytes, as Java's `LongSerializer`."""
FLOAT = FloatSerde()
DOUBLE = DoubleSerde()
BOOLEAN = BooleanSerde()
UUID = UuidSerde()
VOID = VoidSerde()
JSON = JsonSerde()
