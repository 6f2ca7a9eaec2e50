"""Functions between texts and bytes, and numbers in bytes."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable

from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.registry import BUILTIN

_CONVERSION = "CONVERSIONS"


def _from_hex(text: str) -> bytes:
    """Digits alone, after 0x (where a leading zero may be missing), or within X''."""
    quoted = re.fullmatch(r"[xX]'(.*)'", text, re.DOTALL)
    digits = quoted[1] if quoted else text
    if text.startswith("0x"):
        digits = text[2:].rjust(len(text[2:]) + len(text) % 2, "0")
    if len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F]*", digits):
        raise ExpressionError(f"'{text[:40]}' is not hexadecimal")
    return bytes.fromhex(digits)


def _from_base64(text: str) -> bytes:
    """What is no base64 character does not count, nor does missing padding."""
    digits = re.sub(r"[^A-Za-z0-9+/]", "", text.replace("-", "+").replace("_", "/"))
    usable = digits[: len(digits) - (len(digits) % 4 == 1)]
    return base64.b64decode(usable + "=" * (-len(usable) % 4))


_DECODERS: dict[str, Callable[[str], bytes]] = {
    "hex": _from_hex,
    "utf8": lambda text: text.encode(),
    "ascii": lambda text: text.encode("ascii", "replace"),
    "base64": _from_base64,
}
_ENCODERS: dict[str, Callable[[bytes], str]] = {
    "hex": lambda value: value.hex(),
    "utf8": lambda value: value.decode("utf-8", "replace"),
    "ascii": lambda value: value.decode("ascii", "replace"),
    "base64": lambda value: base64.b64encode(value).decode(),
}


def _known_encoding(encoding: str) -> str:
    if encoding.lower() not in _ENCODERS:
        raise ExpressionError(f"Supported input and output encodings are: hex, utf8, ascii and base64; not {encoding}")
    return encoding.lower()


@BUILTIN.scalar("encode", "(str STRING, input_encoding STRING, output_encoding STRING) -> STRING", category="STRING")
def encode(text: str, given: str, wanted: str) -> str:
    """A text in one encoding as a text in another: hex, utf8, ascii or base64."""
    value = _DECODERS[_known_encoding(given)](text)
    return _ENCODERS[_known_encoding(wanted)](value)


@BUILTIN.scalar("from_bytes", "(value BYTES, encoding STRING) -> STRING", category=_CONVERSION)
def from_bytes(value: bytes, encoding: str) -> str:
    """Bytes as text: hex, utf8, ascii or base64."""
    encoded = _ENCODERS[_known_encoding(encoding)](value)
    return encoded.upper() if encoding.lower() == "hex" else encoded


@BUILTIN.scalar("to_bytes", "(value STRING, encoding STRING) -> BYTES", category=_CONVERSION)
def to_bytes(text: str, encoding: str) -> bytes:
    """The bytes of a text: hex, utf8, ascii or base64."""
    return _DECODERS[_known_encoding(encoding)](text)


_ORDERS = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}


def _number(layout: str, name: str) -> Callable[..., int | float]:
    size = struct.calcsize(layout)

    def number(value: bytes, order: str = "BIG_ENDIAN") -> int | float:
        if order.upper() not in _ORDERS:
            raise ExpressionError(f"Byte order must be BIG_ENDIAN or LITTLE_ENDIAN, not {order}")
        if len(value) != size:
            raise ExpressionError(f"Number of bytes must be equal to {size}, but found {len(value)}")
        found: int | float = struct.unpack(_ORDERS[order.upper()] + layout, value)[0]
        return found

    number.__doc__ = f"The {name} in {size} bytes, the most significant first unless LITTLE_ENDIAN is given."
    return number


for _name, _layout, _type in (
    ("bigint_from_bytes", "q", "BIGINT"),
    ("double_from_bytes", "d", "DOUBLE"),
    ("int_from_bytes", "i", "INTEGER"),
):
    BUILTIN.scalar(
        _name, f"(value BYTES) -> {_type}", f"(value BYTES, byte_order STRING) -> {_type}", category=_CONVERSION
    )(_number(_layout, _type))
