"""Serdes by name, for settings, property files and command lines.

A name is a Java class (`org.apache.kafka.common.serialization.LongDeserializer`, `Serdes$StringSerde`,
`io.confluent.kafka.serializers.KafkaAvroSerializer`) or a short name (`long`, `avro`). Only the last part of the
name is used, without `Serializer`, `Deserializer` or `Serde`. Start at `serde_named`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from moldau.core.errors import InvalidConfigError
from moldau.serdes import plain
from moldau.serdes.lists import ListSerde
from moldau.serdes.serde import Part, Serde, check_calls
from moldau.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde

__all__ = ["KNOWN_NAMES", "MissingSettingError", "serde_from_setting", "serde_named", "string_serde"]

Settings = Mapping[str, Any]

WINDOW_SIZE = "window.size.ms"
WINDOWED_INNER = ("windowed.inner.class.serde", "windowed.inner.deserializer.class", "windowed.inner.serializer.class")


class MissingSettingError(InvalidConfigError):
    """A named serde needs a setting that is missing or invalid."""

    def __init__(self, serde: str, what: str, setting: str, example: str) -> None:
        super().__init__(f"{serde} needs {what}: set {setting}={example}")
        self.setting, self.example = setting, example


def string_serde(settings: Settings, part: Part) -> plain.StringSerde:
    """The string serde, with the encoding from the settings of Java's `StringSerializer` and `StringDeserializer`."""
    kinds = ("serializer.encoding", "deserializer.encoding")
    given = (settings.get(key) for kind in kinds for key in (f"{part}.{kind}", kind, kind.partition(".")[2]))
    encoding = next((str(one) for one in given if one), None)
    return plain.STRING if encoding is None else plain.StringSerde(encoding)


def _list(settings: Settings, part: Part) -> Serde:
    key = f"default.list.{part}.serde.inner"
    return ListSerde(_inner(settings, part, (key,), "ListSerde"))


def _time_windowed(settings: Settings, part: Part) -> Serde:
    size_ms = str(settings.get(WINDOW_SIZE, ""))
    if not (size_ms.isascii() and size_ms.isdigit()):
        what = f"the size of the windows in ms, and got {size_ms or 'none'}"
        raise MissingSettingError("TimeWindowedSerde", what, WINDOW_SIZE, "60000")
    return TimeWindowedSerde(_inner(settings, part, WINDOWED_INNER, ""), int(size_ms))


def _session_windowed(settings: Settings, part: Part) -> Serde:
    return SessionWindowedSerde(_inner(settings, part, WINDOWED_INNER, ""))


def _inner(settings: Settings, part: Part, keys: tuple[str, ...], needed_by: str) -> Serde:
    """The inner serde of another one; if none is set, the string serde, or an error if `needed_by` is given."""
    given = next((settings[key] for key in keys if settings.get(key)), None)
    if given is None and needed_by:
        raise MissingSettingError(needed_by, "the serde of its entries", keys[0], "string")
    return string_serde(settings, part) if given is None else serde_from_setting(given, keys[0], settings, part)


def _with_schema(kind: str) -> Callable[[Settings, Part], Serde]:
    def make(settings: Settings, part: Part) -> Serde:
        # The three formats import three libraries, which most programs do not need.
        from moldau.serdes import schema_serde

        serde: Serde = getattr(schema_serde, kind)()
        return serde

    return make


def _always(serde: Serde) -> Callable[[Settings, Part], Serde]:
    return lambda settings, part: serde


_BY_WORD: Mapping[str, Callable[[Settings, Part], Serde]] = {
    "string": string_serde,
    **dict.fromkeys(("bytes", "bytearray", "bytebuffer"), _always(plain.BYTES)),
    "short": _always(plain.SHORT),
    **dict.fromkeys(("integer", "int"), _always(plain.INT)),
    "long": _always(plain.LONG),
    "float": _always(plain.FLOAT),
    "double": _always(plain.DOUBLE),
    "boolean": _always(plain.BOOLEAN),
    "uuid": _always(plain.UUID),
    "void": _always(plain.VOID),
    **dict.fromkeys(("json", "kafkajson"), _always(plain.JSON)),
    **dict.fromkeys(("avro", "kafkaavro", "genericavro", "specificavro", "primitiveavro"), _with_schema("AvroSerde")),
    **dict.fromkeys(("jsonschema", "kafkajsonschema"), _with_schema("JsonSchemaSerde")),
    **dict.fromkeys(("protobuf", "kafkaprotobuf"), _with_schema("ProtobufSerde")),
    "list": _list,
    "timewindowed": _time_windowed,
    "sessionwindowed": _session_windowed,
}

KNOWN_NAMES = tuple(_BY_WORD)
"""The short names."""


def serde_named(name: str, settings: Settings | None = None, part: Part = "value") -> Serde:
    """The serde for a Java class name or a short name; `settings` give inner serdes, window sizes and encodings.

    Raises `InvalidConfigError` for an unknown name.
    """
    word = re.split(r"[.$]", name.strip())[-1].lower()
    for suffix in ("deserializer", "serializer", "serde"):
        word = word.removesuffix(suffix)
    make = _BY_WORD.get(word)
    if make is None:
        raise InvalidConfigError(
            f"{name}: no serde has this name, and Java classes cannot run here; known are {', '.join(KNOWN_NAMES)}, or "
            "give a serde object in Python"
        )
    return make(settings or {}, part)


def serde_from_setting(given: object, key: str, settings: Settings, part: Part) -> Serde:
    """The serde that a setting gives as a name, a class or an object; errors name the setting `key`."""
    try:
        if isinstance(given, str):
            return serde_named(given, settings, part)
        made: Any = given() if isinstance(given, type) else given
        check_calls(made, "serialize", "deserialize")
    except InvalidConfigError as error:
        raise InvalidConfigError(f"{key}: {error}") from None
    serde: Serde = made
    return serde
