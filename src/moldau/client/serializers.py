"""Serializers: objects to bytes and back, in the formats of Kafka's own serializers.

Each kind is a `Serde`, both ways in one object, and has a constant ready to use (`STRING`, `JSON`, ...). Another
kind needs only the two methods of the protocol; whatever it wants to know about the record is in the `Context`.
Null is Kafka's: `None` becomes a null key or value and never reaches a serde. Start at `Serde`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from moldau.client.errors import SerializationError
from moldau.client.records import Headers
from moldau.core.errors import InvalidConfigError

__all__ = [
    "BYTES",
    "DOUBLE",
    "INT",
    "JSON",
    "LONG",
    "STRING",
    "BytesSerde",
    "Context",
    "Deserializer",
    "JsonSerde",
    "NumberSerde",
    "Part",
    "Serde",
    "Serializer",
    "StringSerde",
    "deserialized",
    "serde_named",
    "serialized",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)

Part = Literal["key", "value"]


class Context(NamedTuple):
    """What a serde may need to know beside the data: which topic, key or value, which headers."""

    topic: str
    part: Part
    headers: Headers = ()


class Serializer(Protocol[T_contra]):
    """Turns an object into the bytes of a key or a value."""

    def serialize(self, data: T_contra, context: Context) -> bytes:
        """Raise any exception for what cannot be written: the producer reports it as a `SerializationError`."""
        ...


class Deserializer(Protocol[T_co]):
    """Turns the bytes of a key or a value into an object."""

    def deserialize(self, data: bytes, context: Context) -> T_co:
        """Raise any exception for what cannot be read: the consumer reports it as a `SerializationError`."""
        ...


class Serde(Serializer[T], Deserializer[T], Protocol[T]):
    """Both ways in one object."""


class BytesSerde:
    """Bytes as they are."""

    def serialize(self, data: bytes, context: Context) -> bytes:
        return bytes(data) if isinstance(data, bytes | bytearray | memoryview) else _refuse(data, "bytes")

    def deserialize(self, data: bytes, context: Context) -> bytes:
        return data


class StringSerde:
    """Text, in UTF-8 unless another `encoding` is named."""

    def __init__(self, encoding: str = "utf-8") -> None:
        try:
            "".encode(encoding)
        except LookupError:
            raise InvalidConfigError(f"{encoding} is not an encoding Python knows") from None
        self.encoding = encoding

    def serialize(self, data: str, context: Context) -> bytes:
        return data.encode(self.encoding) if isinstance(data, str) else _refuse(data, "str")

    def deserialize(self, data: bytes, context: Context) -> str:
        return data.decode(self.encoding)


class NumberSerde(Generic[T]):
    """A number of fixed size, big-endian, as Java writes it."""

    def __init__(self, kind: type[T], layout: str, name: str) -> None:
        self._kind = kind
        self._struct = struct.Struct(layout)
        self._name = name

    def serialize(self, data: T, context: Context) -> bytes:
        if isinstance(data, bool) or not isinstance(data, (int, self._kind)):
            return _refuse(data, self._kind.__name__)
        try:
            return self._struct.pack(data)
        except struct.error:
            raise ValueError(f"{data} does not fit into a {self._name} of {self._struct.size} bytes") from None

    def deserialize(self, data: bytes, context: Context) -> T:
        if len(data) != self._struct.size:
            raise ValueError(f"a {self._name} has {self._struct.size} bytes, not {len(data)}")
        number: T = self._struct.unpack(data)[0]
        return number


class JsonSerde:
    """JSON in UTF-8, without blanks; what `json` reads and writes.

    `default` is called for objects `json` cannot write, and returns something it can. NaN and infinities
    are refused, since JSON has no such numbers.
    """

    def __init__(self, default: Callable[[Any], Any] | None = None) -> None:
        encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default)
        self._encode = encoder.encode

    def serialize(self, data: Any, context: Context) -> bytes:
        return self._encode(data).encode()

    def deserialize(self, data: bytes, context: Context) -> Any:
        return json.loads(data)


def _refuse(data: object, wanted: str) -> bytes:
    raise TypeError(f"{wanted} is wanted, not {type(data).__name__}")


BYTES = BytesSerde()
STRING = StringSerde()
INT: NumberSerde[int] = NumberSerde(int, ">i", "int")
"""A signed number of 4 bytes, Java's `IntegerSerializer`."""
LONG: NumberSerde[int] = NumberSerde(int, ">q", "long")
"""A signed number of 8 bytes."""
DOUBLE: NumberSerde[float] = NumberSerde(float, ">d", "double")
JSON = JsonSerde()

_BY_JAVA_NAME: Mapping[str, Serde[Any]] = {
    "ByteArray": BYTES,
    "Bytes": BYTES,
    "Integer": INT,
    "Long": LONG,
    "Double": DOUBLE,
    "String": STRING,
    "Json": JSON,
    "KafkaJson": JSON,
}


def serde_named(class_name: str, encoding: str | None = None) -> Serde[Any]:
    """The serde that a Java property such as `key.serializer` names, by the last word of the class name.

    Raises `InvalidConfigError` for a class that has no counterpart here.
    """
    word = class_name.strip().rpartition(".")[2]
    for suffix in ("Serializer", "Deserializer", "Serde"):
        kind = _BY_JAVA_NAME.get(word.removesuffix(suffix))
        if kind is not None and word.endswith(suffix):
            return StringSerde(encoding) if encoding and kind is STRING else kind
    raise InvalidConfigError(f"{class_name} has no counterpart here: give a serde object instead")


def serialized(serializer: Serializer[T], data: T | None, context: Context) -> bytes | None:
    """The bytes of `data`; raises `SerializationError`, which names the topic and the part."""
    if data is None:
        return None
    try:
        return serializer.serialize(data, context)
    except Exception as error:
        raise SerializationError.of_writing(context.topic, context.part, error) from error


def deserialized(
    deserializer: Deserializer[T], data: bytes | None, context: Context, partition: int, offset: int
) -> T | None:
    """The object in `data`; raises `SerializationError`, which names the record and the part."""
    if data is None:
        return None
    try:
        return deserializer.deserialize(data, context)
    except Exception as error:
        raise SerializationError.of_reading(context.topic, context.part, error, partition, offset) from error
