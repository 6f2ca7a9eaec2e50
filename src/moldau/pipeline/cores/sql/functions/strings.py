"""Functions on texts, and those that texts and bytes share."""

from __future__ import annotations

import hashlib
import re
import uuid as uuids
from collections.abc import Callable
from typing import Any

from moldau.pipeline.cores.sql.failures import MAX_SIZE, ExpressionError
from moldau.pipeline.cores.sql.functions.registry import BUILTIN
from moldau.pipeline.cores.sql.functions.utf16 import unit_length, unit_slice

_STRINGS = "STRING"
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")


# --- characters ----------------------------------------------------------------------------------------------


@BUILTIN.scalar("chr", "(code INTEGER) -> STRING", category=_STRINGS)
def chr_of_code(code: int) -> str | None:
    """The character of a code point, given as a number or as text of the form \\uXXXX."""
    return chr(code) if 0 <= code <= 0x10FFFF else None


@BUILTIN.scalar("chr", "(code STRING) -> STRING", category=_STRINGS)
def chr_of_text(code: str) -> str | None:
    """The character of a code point written as \\uXXXX."""
    if len(code) < 6 or not code.startswith("\\u"):
        return None
    if not re.fullmatch(r"(\\u[0-9a-fA-F]{4})+", code):
        return None
    units = b"".join(int(found, 16).to_bytes(2, "little") for found in _ESCAPED.findall(code))
    return units.decode("utf-16-le", "surrogatepass")


@BUILTIN.scalar("lcase", "(text STRING) -> STRING", category=_STRINGS)
def lcase(text: str) -> str:
    """The text in lower case."""
    return text.lower()


@BUILTIN.scalar("ucase", "(text STRING) -> STRING", category=_STRINGS)
def ucase(text: str) -> str:
    """The text in upper case."""
    return text.upper()


@BUILTIN.scalar("initcap", "(text STRING) -> STRING", category=_STRINGS)
def initcap(text: str) -> str:
    """The text with each word beginning in upper case and going on in lower case."""
    return re.sub(r"\S+", lambda word: word[0][0].upper() + word[0][1:].lower(), text.lstrip())


@BUILTIN.scalar("trim", "(text STRING) -> STRING", category=_STRINGS)
def trim(text: str) -> str:
    """The text without spaces and control characters at both ends."""
    return text.strip("".join(map(chr, range(0x21))))


@BUILTIN.scalar("len", "(text STRING) -> INTEGER", category=_STRINGS)
def text_length(text: str) -> int:
    """How many characters a text, or bytes BYTES, have."""
    return unit_length(text)


@BUILTIN.scalar("len", "(value BYTES) -> INTEGER", category=_STRINGS)
def bytes_length(value: bytes) -> int:
    """How many bytes there are."""
    return len(value)


@BUILTIN.scalar("md5", "(text STRING) -> STRING", category=_STRINGS)
def md5(text: str) -> str:
    """The MD5 digest of a text, in hexadecimal."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


# --- joining -------------------------------------------------------------------------------------------------


@BUILTIN.scalar("concat", "(values STRING...) -> STRING", category=_STRINGS, is_strict=False)
def concat(*values: str | None) -> str:
    """The texts, or the bytes, one after the other; NULL counts as empty."""
    return "".join(value for value in values if value is not None)


@BUILTIN.scalar("concat", "(values BYTES...) -> BYTES", category=_STRINGS, is_strict=False)
def concat_bytes(*values: bytes | None) -> bytes:
    """The bytes one after the other; NULL counts as empty."""
    return b"".join(value for value in values if value is not None)


@BUILTIN.scalar("concat_ws", "(separator STRING, values STRING...) -> STRING", category=_STRINGS, is_strict=False)
def concat_ws(separator: str | None, *values: str | None) -> str | None:
    """The values that are not NULL, with a separator between them; NULL if the separator is."""
    return None if separator is None else separator.join(value for value in values if value is not None)


@BUILTIN.scalar("concat_ws", "(separator BYTES, values BYTES...) -> BYTES", category=_STRINGS, is_strict=False)
def concat_ws_bytes(separator: bytes | None, *values: bytes | None) -> bytes | None:
    """The bytes that are not NULL, with a separator between them."""
    return None if separator is None else separator.join(value for value in values if value is not None)


@BUILTIN.scalar("elt", "(position INTEGER, values STRING...) -> STRING", category=_STRINGS, is_strict=False)
def elt(position: int | None, *values: str | None) -> str | None:
    """The value at a position from 1, NULL if there is none."""
    return values[position - 1] if position is not None and 1 <= position <= len(values) else None


@BUILTIN.scalar("field", "(text STRING, values STRING...) -> INTEGER", category=_STRINGS, is_strict=False)
def field(text: str | None, *values: str | None) -> int:
    """The position from 1 of a text among values, 0 if it is not there."""
    return values.index(text) + 1 if text is not None and text in values else 0


# --- parts ---------------------------------------------------------------------------------------------------


def _bounds(length: int, position: int, count: int | None) -> tuple[int, int]:
    """Start and end from 0 for a position from 1, 0 as 1, negative from the end."""
    start = max(length + position, 0) if position < 0 else min(max(position - 1, 0), length)
    return start, length if count is None else min(start + max(count, 0), length)


@BUILTIN.scalar(
    "substring",
    "(str STRING, pos INTEGER) -> STRING",
    "(str STRING, pos INTEGER, length INTEGER) -> STRING",
    category=_STRINGS,
)
def substring(text: str, position: int, count: int | None = None) -> str:
    """The part of a text from a position (from 1, negative from the end) of at most some length."""
    start, end = _bounds(unit_length(text), position, count)
    return unit_slice(text, start, end)


@BUILTIN.scalar(
    "substring",
    "(bytes BYTES, pos INTEGER) -> BYTES",
    "(bytes BYTES, pos INTEGER, length INTEGER) -> BYTES",
    category=_STRINGS,
)
def substring_bytes(value: bytes, position: int, count: int | None = None) -> bytes:
    """The part of bytes from a position (from 1, negative from the end) of at most some length."""
    start, end = _bounds(len(value), position, count)
    return value[start:end]


@BUILTIN.scalar("split", "(text STRING, delimiter STRING) -> ARRAY<STRING>", category=_STRINGS)
def split(text: str, delimiter: str) -> list[str]:
    """The parts between delimiters; an empty delimiter splits into characters."""
    return text.split(delimiter) if delimiter else list(text) or [""]


@BUILTIN.scalar("split", "(value BYTES, delimiter BYTES) -> ARRAY<BYTES>", category=_STRINGS)
def split_bytes(value: bytes, delimiter: bytes) -> list[bytes]:
    """The parts between delimiters; an empty delimiter splits into single bytes."""
    return value.split(delimiter) if delimiter else [value[at : at + 1] for at in range(len(value))] or [b""]


@BUILTIN.scalar(
    "split_to_map",
    "(input STRING, entry_delimiter STRING, kv_delimiter STRING) -> MAP<STRING, STRING>",
    category="MAP",
)
def split_to_map(text: str, entry_delimiter: str, kv_delimiter: str) -> dict[str, str] | None:
    """A map of the entries in a text; of entries with the same key the last counts."""
    if not entry_delimiter or not kv_delimiter or entry_delimiter == kv_delimiter:
        return None
    entries = (entry.split(kv_delimiter, 2) for entry in text.split(entry_delimiter) if kv_delimiter in entry)
    return {entry[0]: entry[1] for entry in entries}


@BUILTIN.scalar("replace", "(text STRING, old STRING, new STRING) -> STRING", category=_STRINGS)
def replace(text: str, old: str, new: str) -> str:
    """The text with every occurrence of a part replaced."""
    if len(new) > len(old) and text.count(old) * len(new) > MAX_SIZE:
        raise ExpressionError(f"the text would be longer than {MAX_SIZE} characters")
    return text.replace(old, new)


@BUILTIN.scalar(
    "instr",
    "(str STRING, substring STRING) -> INTEGER",
    "(str STRING, substring STRING, position INTEGER) -> INTEGER",
    "(str STRING, substring STRING, position INTEGER, occurrence INTEGER) -> INTEGER",
    category=_STRINGS,
    is_strict=False,
)
def instr(text: str | None, part: str | None, position: int | None = 1, occurrence: int | None = 1) -> int:
    """The position from 1 of a part, searched from a position (negative: backwards); 0 if it is not there."""
    if text is None or part is None or position is None or occurrence is None or position == 0 or occurrence < 1:
        return 0
    if position > 0:
        at = position - 2
        for _ in range(occurrence):
            at = text.find(part, at + 1)
            if at < 0:
                return 0
        return at + 1
    end = len(text) + position + len(part)
    for _ in range(occurrence):
        at = text.rfind(part, 0, max(end, 0))
        if at < 0:
            return 0
        end = at + len(part) - 1
    return at + 1


def _pad(value: Any, length: int, padding: Any, *, is_left: bool) -> Any:
    if length < 0 or not padding:
        return None
    if length > MAX_SIZE:
        raise ExpressionError(f"cannot pad to more than {MAX_SIZE} characters")
    if len(value) >= length:
        return value[:length]
    missing = length - len(value)
    filling = (padding * (missing // len(padding) + 1))[:missing]
    return filling + value if is_left else value + filling


@BUILTIN.scalar(
    "lpad",
    "(input STRING, length INTEGER, padding STRING) -> STRING",
    "(input BYTES, length INTEGER, padding BYTES) -> BYTES",
    category=_STRINGS,
)
def lpad(value: Any, length: int, padding: Any) -> Any:
    """A text or bytes filled up at the beginning, or cut, to a length."""
    return _pad(value, length, padding, is_left=True)


@BUILTIN.scalar(
    "rpad",
    "(input STRING, length INTEGER, padding STRING) -> STRING",
    "(input BYTES, length INTEGER, padding BYTES) -> BYTES",
    category=_STRINGS,
)
def rpad(value: Any, length: int, padding: Any) -> Any:
    """A text or bytes filled up at the end, or cut, to a length."""
    return _pad(value, length, padding, is_left=False)


# --- masks ---------------------------------------------------------------------------------------------------

_MASKS = "upper STRING, lower STRING, digit STRING, other STRING"


def _mask_text(text: str, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> str:
    marks = [None if mark is None else mark[:1] for mark in (upper, lower, digit, other)]

    def mark_of(character: str) -> str:
        kind = 0 if character.isupper() else 1 if character.islower() else 2 if character.isdecimal() else 3
        mark = marks[kind]
        return character if mark is None else mark

    return "".join(map(mark_of, text))


_DEFAULT_MASKS = ("X", "x", "n", "-")


@BUILTIN.scalar(
    "mask", "(text STRING) -> STRING", f"(text STRING, {_MASKS}) -> STRING", category=_STRINGS, is_strict=False
)
def mask(text: str | None, *masks: str | None) -> str | None:
    """The text with its characters replaced by kind: upper X, lower x, digits n, others -; NULL keeps a kind."""
    return None if text is None else _mask_text(text, *(masks or _DEFAULT_MASKS))


def _partly_masked(split_at: Callable[[int, int], int], masks_left: bool) -> Callable[..., str | None]:
    def partly(text: str | None, count: int | None, *masks: str | None) -> str | None:
        if text is None or count is None:
            return None
        if count < 0:
            raise ExpressionError(f"the number of characters must not be negative, got {count}")
        at = split_at(len(text), min(count, len(text)))
        chosen = masks or _DEFAULT_MASKS
        if masks_left:
            return _mask_text(text[:at], *chosen) + text[at:]
        return text[:at] + _mask_text(text[at:], *chosen)

    return partly


for _name, _split_at, _masks_left, _about in (
    ("mask_left", lambda length, count: count, True, "The text with its first characters masked."),
    ("mask_right", lambda length, count: length - count, False, "The text with its last characters masked."),
    ("mask_keep_left", lambda length, count: count, False, "The text masked except for its first characters."),
    ("mask_keep_right", lambda length, count: length - count, True, "The text masked except for its last characters."),
):
    _partly = _partly_masked(_split_at, _masks_left)
    _partly.__doc__ = _about
    BUILTIN.scalar(
        _name,
        "(text STRING, count INTEGER) -> STRING",
        f"(text STRING, count INTEGER, {_MASKS}) -> STRING",
        category=_STRINGS,
        is_strict=False,
    )(_partly)


# --- identifiers ---------------------------------------------------------------------------------------------


@BUILTIN.scalar("uuid", "() -> STRING", category=_STRINGS)
def uuid() -> str:
    """A random UUID, or the UUID of 16 bytes."""
    return str(uuids.uuid4())


@BUILTIN.scalar("uuid", "(bytes BYTES) -> STRING", category=_STRINGS)
def uuid_of_bytes(value: bytes) -> str | None:
    """The UUID of 16 bytes."""
    return str(uuids.UUID(bytes=value)) if len(value) == 16 else None
