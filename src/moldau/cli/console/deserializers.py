"""The Java deserializers a command line may name, and the text their values print as."""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable, Mapping

from moldau.cli.console.windowed_keys import WINDOWED, windowed_reader
from moldau.cli.tool import ToolError

__all__ = ["Deserializer", "deserializer_named", "render_double"]

Deserializer = Callable[[bytes], bytes]
"""From a record's bytes to the text shown for them; raises `ValueError` for bytes of the wrong size."""


def deserializer_named(name: str | None, settings: Mapping[str, str] | None = None) -> Deserializer | None:
    """Look a class up by its last part; `None` for those whose text is the bytes themselves.

    The deserializers of windowed keys have `settings`: the size of the windows, what is inside.
    """
    if not name:
        return None
    simple = name.strip().rsplit(".", 1)[-1].removesuffix("Deserializer").lower()
    if simple in _AS_THEY_ARE:
        return None
    if (windowed := windowed_reader(simple, settings or {}, deserializer_named)) is not None:
        return windowed
    try:
        return _BY_NAME[simple]
    except KeyError:
        known = ", ".join(sorted({*_BY_NAME, *_AS_THEY_ARE, *WINDOWED}))
        raise ToolError(f"{name} is a Java class, which cannot run here; there is {known}") from None


def render_double(value: float) -> str:
    """Text in the manner of Java's `Double.toString`: `1.0`, `1.0E10`, `NaN`, `-Infinity`."""
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
    """The shortest digits of a number that `repr` writes out, with one digit before the point."""
    digits = repr(abs(value)).replace(".", "").strip("0") or "0"
    exponent = f"{value:e}".partition("e")[2]
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}", exponent


def _number(layout: str, name: str, render: Callable[[float], str] = str) -> Deserializer:
    unpacker = struct.Struct(layout)

    def deserialize(content: bytes) -> bytes:
        if len(content) != unpacker.size:
            raise ValueError(f"Size of data received by {name}Deserializer is not {unpacker.size}")
        return render(unpacker.unpack(content)[0]).encode()

    return deserialize


def _boolean(content: bytes) -> bytes:
    if content not in (b"\x00", b"\x01"):
        raise ValueError("Size of data received by BooleanDeserializer is not 1, or it is neither 0 nor 1")
    return b"true" if content == b"\x01" else b"false"


def _uuid(content: bytes) -> bytes:
    try:
        return str(uuid.UUID(content.decode())).encode()
    except ValueError:
        raise ValueError("Error parsing data into UUID") from None


def _float(value: float) -> str:
    """A 32-bit number has fewer digits than Python prints for it."""
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if struct.pack(">f", short) == struct.pack(">f", value):
            return render_double(short)
    return render_double(value)


_AS_THEY_ARE = frozenset({"string", "bytearray", "bytes", "bytebuffer"})
_BY_NAME: dict[str, Deserializer] = {
    "integer": _number(">i", "Integer"),
    "long": _number(">q", "Long"),
    "short": _number(">h", "Short"),
    "double": _number(">d", "Double", render_double),
    "float": _number(">f", "Float", _float),
    "boolean": _boolean,
    "uuid": _uuid,
    "void": lambda content: b"null",
}
