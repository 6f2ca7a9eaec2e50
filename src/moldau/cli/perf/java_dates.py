"""Java's date patterns, as far as the tools use them: `yyyy-MM-dd HH:mm:ss:SSS`."""

from __future__ import annotations

import re
from datetime import datetime

__all__ = ["render_date"]

_PIECE = re.compile(r"'([^']*)'|([A-Za-z])\2*|.", re.S)


def render_date(moment: datetime, pattern: str) -> str:
    """Format a time with a SimpleDateFormat pattern; letters that are not supported here stay unchanged."""
    return "".join(_piece(moment, found) for found in _PIECE.finditer(pattern))


def _piece(moment: datetime, found: re.Match[str]) -> str:
    if found.group(1) is not None:
        return found.group(1) or "'"
    letters = found.group(0)
    number = {
        "M": moment.month,
        "d": moment.day,
        "H": moment.hour,
        "h": moment.hour % 12 or 12,
        "m": moment.minute,
        "s": moment.second,
        "S": moment.microsecond // 1000,
    }.get(letters[0])
    if letters[0] == "y":
        return f"{moment.year % 100:02d}" if len(letters) == 2 else str(moment.year)
    if letters[0] == "a":
        return "AM" if moment.hour < 12 else "PM"
    if number is None or (letters[0] == "M" and len(letters) > 2):
        return moment.strftime("%b") if letters[0] == "M" else letters
    return f"{number:0{len(letters)}d}"
