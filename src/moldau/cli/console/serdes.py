"""Converts keys and values to and from text, with the serdes that a command line names.

The consumer prints deserialized values as Java prints them; the producer serializes the text of a line.
Start at `deserializer_named` and `serializer_named`.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Literal

from moldau.cli.tool import ToolError
from moldau.core.errors import InvalidConfigError
from moldau.serdes.lists import ListSerde
from moldau.serdes.names import MissingSettingError, serde_named
from moldau.serdes.plain import BYTES, STRING, DoubleSerde, FloatSerde
from moldau.serdes.serde import Part, Serde, SerdeError
from moldau.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde

__all__ = ["Deserializer", "Serializer", "deserializer_named", "render_double", "serializer_named"]

Deserializer = Callable[[bytes], bytes]
"""Converts a record's bytes to the text shown; raises `ValueError` for bytes that the serde cannot read."""
Serializer = Callable[[bytes], bytes]
"""Converts the text of a line to a record's bytes; raises `ValueError` for text that the serde cannot write."""


def deserializer_named(
    name: str, properties: Mapping[str, str] | None = None, part: Part | Literal["headers"] = "value"
) -> Deserializer | None:
    """The deserializer for keys, values or headers; `None` for classes whose text is the bytes themselves.

    Properties that begin with `key.deserializer.` or `value.deserializer.` apply only to that deserializer.
    """
    serde = _serde_of_name(name, properties or {}, part, "deserializer")
    if serde is None:
        return None
    show = _renderer(serde)

    def deserialize(content: bytes) -> bytes:
        try:
            return show(serde.deserialize("", content))
        except SerdeError as error:
            raise ValueError(f"the {part} cannot be deserialized: {error}") from None

    return deserialize


def serializer_named(name: str, properties: Mapping[str, str], part: Part, topic: str) -> Serializer | None:
    """The serializer for keys or values of a topic; `None` for classes that write the text as it is."""
    serde = _serde_of_name(name, properties, part, "serializer")
    if serde is None:
        return None
    read: Callable[[str, str], Any] | None = getattr(serde, "from_text", None)
    if read is None:
        raise ToolError(f"{part}.serializer={name}: such a {part} cannot be written as text")

    def serialize(text: bytes) -> bytes:
        try:
            return serde.serialize(topic, read(topic, text.decode()))
        except (SerdeError, UnicodeDecodeError) as error:
            raise ValueError(f"topic {topic}: the {part} cannot be serialized: {error}") from None

    return serialize


def _serde_of_name(
    name: str, properties: Mapping[str, str], part: Part | Literal["headers"], kind: str
) -> Serde | None:
    prefix = f"{part}.{kind}."
    own = {key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)}
    settings = {**properties, **own}
    serde_part: Part = "key" if part == "key" else "value"
    try:
        serde = serde_named(name, settings, serde_part)
        if serde in (STRING, BYTES):
            return None
        # Only serdes with a schema need the registry's modules, which are slow to import.
        from moldau.client.serialization import prepared_serde

        return prepared_serde(serde, settings, serde_part)
    except MissingSettingError as error:
        raise ToolError(f"{name}: {error}, here --property {prefix}{error.setting}={error.example}") from None
    except InvalidConfigError as error:
        raise ToolError(f"{part}.{kind}: {error}") from None


def _renderer(serde: Serde) -> Callable[[Any], bytes]:
    """The function that renders a serde's values: as Java prints them, with JSON for structured values."""
    match serde:
        case FloatSerde():
            return lambda value: _render_float(value).encode()
        case DoubleSerde():
            return lambda value: render_double(value).encode()
        case ListSerde():
            entry = _renderer(serde.inner)
            return lambda values: b"[%b]" % b", ".join(b"null" if one is None else entry(one) for one in values)
        case TimeWindowedSerde() | SessionWindowedSerde():
            inner = _renderer(serde.inner)
            return lambda key: b"[%b@%d/%d]" % (inner(key.key), key.window.start, key.window.end)
        case _:
            return _render


def _render(value: Any) -> bytes:
    match value:
        case bytes():
            return value
        case bool():
            return b"true" if value else b"false"
        case dict() | list() | None:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_as_json).encode()
        case _:
            return str(value).encode()


def _as_json(value: object) -> str:
    """Render types that JSON does not have: bytes as in Avro's JSON, dates and decimals as text."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def render_double(value: float) -> str:
    """The text of Java's `Double.toString`: `1.0`, `1.0E10`, `NaN`, `-Infinity`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{value:f}".rstrip("0")
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        mantissa, exponent = _scientific(value)
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


def _scientific(value: float) -> tuple[str, str]:
    """Mantissa and exponent of a number that `repr` writes without an exponent, in the shortest digits."""
    digits = repr(abs(value)).replace(".", "").strip("0") or "0"
    exponent = f"{value:e}".partition("e")[2]
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}", exponent


def _render_float(value: float) -> str:
    """The text of a 32-bit float, which needs fewer digits than Python prints."""
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        try:
            if struct.pack(">f", short) == struct.pack(">f", value):
                return render_double(short)
        except OverflowError:
            # Rounded up beyond the largest 32-bit float.
            continue
    return render_double(value)
