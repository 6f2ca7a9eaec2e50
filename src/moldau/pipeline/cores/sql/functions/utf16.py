"""Lengths and positions of texts in UTF-16 code units, which Java counts."""

from __future__ import annotations

__all__ = ["from_units", "is_plain", "to_units", "unit_length", "unit_slice"]


def is_plain(text: str) -> bool:
    """Whether characters and code units are the same."""
    return text.isascii() or max(text) <= "\uffff"


def to_units(text: str) -> bytes:
    """The code units, two bytes each."""
    return text.encode("utf-16-le", "surrogatepass")


def from_units(units: bytes) -> str:
    """A text of code units; halves of a pair stay as they are."""
    return units.decode("utf-16-le", "surrogatepass")


def unit_length(text: str) -> int:
    """How many code units a text has."""
    return len(text) if is_plain(text) else len(to_units(text)) // 2


def unit_slice(text: str, start: int, end: int) -> str:
    """The code units from `start` up to `end`, both from 0."""
    return text[start:end] if is_plain(text) else from_units(to_units(text)[2 * start : 2 * end])
