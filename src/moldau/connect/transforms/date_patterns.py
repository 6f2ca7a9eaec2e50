"""Date patterns of Java's `SimpleDateFormat` (and Joda's, for partitioners): format and parse, in a time zone.

Letters: y Y u (year), M L (month), d (day), D (day of year), E (weekday), a (am/pm), H k K h (hour), m, s, S
(milliseconds), z Z X (zone), and quoted text. Start at `DatePattern`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

__all__ = ["DatePattern"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LETTERS: Final = frozenset("yYuMLdDEaHkKhmsSzZX")


class DatePattern:
    """A parsed pattern; raises `ValueError` for one with letters it does not know."""

    def __init__(self, pattern: str, zone: tzinfo = UTC) -> None:
        self.pattern = pattern
        self.zone = zone
        self._parts = _split(pattern)
        self._regex: re.Pattern[str] | None = None

    def format_ms(self, millis: int) -> str:
        """The text of a moment, given as milliseconds since the epoch."""
        at = (EPOCH + timedelta(milliseconds=millis)).astimezone(self.zone)
        return "".join(text if letter == "" else _format(letter, len(text), at) for letter, text in self._parts)

    def parse_ms(self, text: str) -> int:
        """The moment that a text stands for, in milliseconds since the epoch; raises `ValueError`."""
        if self._regex is None:
            self._regex = _regex(self._parts)
        match = self._regex.match(text)
        if match is None:
            raise ValueError(f"Unparseable date: {text!r} does not fit the pattern {self.pattern}")
        fields = {name[0] if name[0] != "n" else "n": value for name, value in match.groupdict().items() if value}
        return _moment(fields, self.zone)


def _split(pattern: str) -> list[tuple[str, str]]:
    """Runs of one letter as (letter, run), other text as ("", text)."""
    parts: list[tuple[str, str]] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        if letter == "'":
            end = pattern.find("'", position + 1)
            if end < 0:
                raise ValueError(f"the pattern {pattern} has a quote that is never closed")
            parts.append(("", pattern[position + 1 : end] or "'"))
            position = end + 1
        elif letter.isascii() and letter.isalpha():
            end = position
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            if letter not in LETTERS:
                raise ValueError(f"the pattern {pattern} has the letter {letter}, which is not known here")
            parts.append((letter, pattern[position:end]))
            position = end
        else:
            parts.append(("", letter))
            position += 1
    return parts


def _format(letter: str, count: int, at: datetime) -> str:
    match letter:
        case "y" | "Y" | "u":
            return f"{at.year % 100:02d}" if count == 2 else f"{at.year:0{count}d}"
        case "M" | "L":
            name = MONTHS[at.month - 1]
            return name if count > 3 else name[:3] if count == 3 else f"{at.month:0{count}d}"
        case "E":
            name = DAYS[at.weekday()]
            return name if count > 3 else name[:3]
        case "a":
            return "AM" if at.hour < 12 else "PM"
        case "z":
            return at.tzname() or "UTC"
        case "Z" | "X":
            return _offset_text(letter, count, at)
    number = {
        "d": at.day,
        "D": at.timetuple().tm_yday,
        "H": at.hour,
        "k": at.hour or 24,
        "K": at.hour % 12,
        "h": at.hour % 12 or 12,
        "m": at.minute,
        "s": at.second,
        "S": at.microsecond // 1000,
    }[letter]
    return f"{number:0{count}d}"


def _offset_text(letter: str, count: int, at: datetime) -> str:
    seconds = int((at.utcoffset() or timedelta()).total_seconds())
    if letter == "X" and seconds == 0:
        return "Z"
    sign, minutes = ("-" if seconds < 0 else "+"), abs(seconds) // 60
    hours, minutes = divmod(minutes, 60)
    if letter == "X" and count == 1:
        return f"{sign}{hours:02d}"
    return f"{sign}{hours:02d}{':' if letter == 'X' and count == 3 else ''}{minutes:02d}"


def _regex(parts: list[tuple[str, str]]) -> re.Pattern[str]:
    pattern = ""
    for position, (letter, text) in enumerate(parts):
        followed_by_number = position + 1 < len(parts) and parts[position + 1][0] not in ("", "E", "a", "z", "Z", "X")
        pattern += (
            re.escape(text)
            if letter == ""
            else f"(?P<{letter}{position}>{_shape(letter, len(text), followed_by_number)})"
        )
    return re.compile(pattern, re.IGNORECASE)


def _shape(letter: str, count: int, is_fixed: bool) -> str:
    match letter:
        case "M" | "L" if count >= 3:
            return "|".join((*MONTHS, *(month[:3] for month in MONTHS)))
        case "E":
            return "|".join((*DAYS, *(day[:3] for day in DAYS)))
        case "a":
            return "AM|PM"
        case "z":
            return "UTC|GMT(?:[+-]\\d{1,2}:?\\d{2})?|[A-Z]{2,5}|[+-]\\d{4}"
        case "Z" | "X":
            return "Z|[+-]\\d{2}(?::?\\d{2})?"
    return f"\\d{{{count}}}" if is_fixed else "\\s*-?\\d+" if letter in "yYu" else "\\s*\\d+"


def _moment(fields: dict[str, str], zone: tzinfo) -> int:
    def number(letters: str, default: int) -> int:
        return next((int(fields[letter]) for letter in letters if letter in fields), default)

    year = number("yYu", 1970)
    year_text = next((fields[letter].strip() for letter in "yYu" if letter in fields), "")
    if len(year_text) == 2 and year_text.isdigit():
        year = _near_century(year)
    start = datetime(year, 1, 1)
    if "D" in fields and not any(letter in fields for letter in "MLd"):
        start += timedelta(days=number("D", 1) - 1)
    else:
        # Lenient as Java: a 13th month or a 32nd day goes over into the next.
        months = _month(fields) - 1
        start = datetime(year + months // 12, months % 12 + 1, 1) + timedelta(days=number("d", 1) - 1)
    hour = number("HkKh", 0)
    if "k" in fields and hour == 24:
        hour = 0
    if "a" in fields and any(letter in fields for letter in "Kh"):
        hour = hour % 12 + (12 if fields["a"].upper() == "PM" else 0)
    at = start + timedelta(hours=hour, minutes=number("m", 0), seconds=number("s", 0), milliseconds=number("S", 0))
    return (at.replace(tzinfo=_zone(fields, zone)) - EPOCH) // timedelta(milliseconds=1)


def _month(fields: dict[str, str]) -> int:
    text = fields.get("M") or fields.get("L") or "1"
    if text.strip().isdigit():
        return int(text)
    return next(index for index, month in enumerate(MONTHS, 1) if month[:3].lower() == text[:3].lower())


def _near_century(short: int) -> int:
    """Two digits mean the year within 80 years before and 20 years after now."""
    newest = datetime.now(UTC).year + 20
    century = newest // 100 * 100
    return century + short if century + short <= newest else century - 100 + short


def _zone(fields: dict[str, str], zone: tzinfo) -> tzinfo:
    text = fields.get("X") or fields.get("Z") or fields.get("z")
    if text is None:
        return zone
    digits = re.sub(r"[^0-9]", "", text)
    if not digits:
        return UTC if text.upper() in ("Z", "UTC", "GMT") else zone
    hours, minutes = int(digits[:2]), int(digits[2:4] or 0)
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if "-" in text else offset)
