"""Serialization of keys and values in producers and consumers: choice of the serde, and errors with topic and part.

Serdes are in `moldau.serdes`; here they are configured and connected to a registry. Start at `PartWriter` and
`PartReader`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from moldau.client.errors import SchemaRegistryError, SerializationError
from moldau.core.errors import InvalidConfigError, ServiceError
from moldau.serdes.names import serde_named, string_serde
from moldau.serdes.schema_source import SchemaSource
from moldau.serdes.serde import (
    Deserializer,
    Headers,
    Part,
    Serde,
    Serializer,
    bound_deserializer,
    bound_serializer,
    check_calls,
    ready_serde,
)

__all__ = ["PartReader", "PartWriter", "connect_schemas", "prepared_serde", "without_serde_settings"]

T = TypeVar("T")


def connect_schemas(url: str, user_info: str | None) -> SchemaSource:
    """The schemas of the registry at a URL (several with commas between), shared by the whole process."""
    # Imported late: the three formats load libraries that most programs do not need.
    from moldau.client.schema_registry import registered_schemas

    return registered_schemas(url, user_info)


def prepared_serde(serde: Serde[T], settings: Mapping[str, Any], part: Part = "value") -> Serde[T]:
    """The serde configured with settings such as `schema.registry.url`, and connected to its schemas.

    Producers, consumers and topologies do this with the serdes they are given.
    """
    return ready_serde(serde, settings, part, connect_schemas)


class PartWriter(Generic[T]):
    """Serializes the keys, or the values, of a producer."""

    def __init__(self, given: Serializer[T] | None, properties: Mapping[str, str], part: Part) -> None:
        """Uses the given serializer, else the one named in the properties, else text."""
        self._part = part
        self._serialize = bound_serializer(_choose(given, properties, part, "serializer"))

    def write(self, topic: str, value: T | None, headers: Headers) -> bytes | None:
        """The bytes of a value; raises `SerializationError`, or `SchemaRegistryError` where the registry failed.

        Both name the topic and the part.
        """
        if value is None:
            return None
        try:
            return self._serialize(topic, value, headers)
        except ServiceError as error:
            raise SchemaRegistryError(f"Topic {topic}: the {self._part} cannot be serialized: {error}") from error
        except Exception as error:
            raise SerializationError.of_writing(topic, self._part, error) from error


class PartReader(Generic[T]):
    """Deserializes the keys, or the values, of a consumer."""

    def __init__(self, given: Deserializer[T] | None, properties: Mapping[str, str], part: Part) -> None:
        """Uses the given deserializer, else the one named in the properties, else text."""
        self._part = part
        self._deserialize = bound_deserializer(_choose(given, properties, part, "deserializer"))

    def read(self, data: bytes | None, topic: str, headers: Headers, partition: int, offset: int) -> T | None:
        """Deserialize a key or value; raises as `PartWriter.write`, naming the record."""
        if data is None:
            return None
        try:
            value: T = self._deserialize(topic, data, headers)
        except ServiceError as error:
            raise SchemaRegistryError(
                f"Record {offset} of {topic}-{partition}: the {self._part} cannot be deserialized: {error}"
            ) from error
        except Exception as error:
            raise SerializationError.of_reading(topic, self._part, error, partition, offset) from error
        return value


def _choose(given: Any, properties: Mapping[str, str], part: Part, kind: str) -> Any:
    if given is None:
        name = properties.get(f"{part}.{kind}")
        try:
            serde: Any = string_serde(properties, part) if name is None else serde_named(name, properties, part)
        except InvalidConfigError as error:
            raise InvalidConfigError(f"{part}.{kind}: {error}") from None
        return prepared_serde(serde, properties, part)
    method = kind.removesuffix("r")
    if not isinstance(given, type) and callable(given) and not hasattr(given, method):
        return _ConfluentCallable(given, part)
    try:
        check_calls(given, method)
    except InvalidConfigError as error:
        raise InvalidConfigError(f"{part}_{kind}: {error}") from None
    return prepared_serde(given, properties, part)


class _ConfluentCallable:
    """A serializer or deserializer of `confluent_kafka`, which is called with the data and a `SerializationContext`."""

    def __init__(self, call: Callable[[Any, Any], Any], part: Part) -> None:
        from confluent_kafka.serialization import MessageField, SerializationContext

        self._call, self._context = call, SerializationContext
        self._field = MessageField.KEY if part == "key" else MessageField.VALUE

    def serialize(self, topic: str, value: Any, headers: Headers | None = None) -> Any:
        return self._call(value, self._context(topic, self._field, list(headers or ())))

    deserialize = serialize


_SERDE_SETTINGS = frozenset(
    {
        "auto.register.schemas",
        "basic.auth.credentials.source",
        "basic.auth.user.info",
        "schema.registry.url",
        "specific.avro.reader",
        "use.latest.version",
        "window.size.ms",
    }
)
_SERDE_SETTING_ENDS = (
    *("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"),
    *("serializer.encoding", "deserializer.encoding", "subject.name.strategy"),
)
_SERDE_SETTING_STARTS = ("default.list.", "windowed.inner.")


def without_serde_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without those for serdes, which librdkafka does not know."""
    return {
        key: value
        for key, value in properties.items()
        if key not in _SERDE_SETTINGS
        and not key.endswith(_SERDE_SETTING_ENDS)
        and not key.startswith(_SERDE_SETTING_STARTS)
    }
