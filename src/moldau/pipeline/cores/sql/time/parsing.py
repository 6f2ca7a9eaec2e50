"""Dates and times read by a pattern, in any case.

PARSE_DATE follows Java's older SimpleDateFormat, which takes numbers of any width, dates beyond the end of a month and
text after the date; the others follow DateTimeFormatter. Start at `parse_timestamp` and `lenient_date`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import tzinfo

from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.time.calendar import MS_PER_DAY, days_in_month, days_of, is_leap, utc_of_local, zone
from moldau.pipeline.cores.sql.time.patterns import MONTHS, WEEKDAYS, Optional, Part, PatternField, Text, read_pattern

__all__ = ["lenient_date", "parse_date", "parse_time", "parse_timestamp"]

_NUMBERS = frozenset("uyYDdHhKkmsAnNwWMLQq")
_DIGITS = re.compile(r"\d+", re.ASCII)
_ZONE_ID = re.compile(r"[A-Za-z][A-Za-z0-9/_.+-]*(?::\d{2})?|[+-]\d{1,2}(?::?\d{2}){0,2}", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d{2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)


class _Reader:
    """Reads one text; `found` has the value of each field by its letter."""

    def __init__(self, text: str, pattern: str, *, is_lenient: bool = False) -> None:
        self._text = text
        self._is_lenient = is_lenient
        self._lowered = text.lower()
        self._pattern = pattern
        self._at = 0
        self.found: dict[str, int] = {}
        self.zone: tzinfo | None = None

    def read_all(self) -> None:
        self._read_parts(read_pattern(self._pattern))
        if self._at < len(self._text) and not self._is_lenient:
            raise self._problem(f"unparsed text found at index {self._at}")

    def _problem(self, why: str | None = None) -> ExpressionError:
        reason = why or f"could not be parsed at index {self._at}"
        return ExpressionError(f"Text '{self._text[:100]}' does not have the format '{self._pattern}': {reason}")

    def _read_parts(self, parts: Sequence[Part]) -> None:
        for place, part in enumerate(parts):
            match part:
                case Text():
                    if not self._lowered.startswith(part.text.lower(), self._at):
                        raise self._problem()
                    self._at += len(part.text)
                case Optional():
                    before = self._at, dict(self.found), self.zone
                    try:
                        self._read_parts(part.parts)
                    except ExpressionError:
                        self._at, self.found, self.zone = before
                case PatternField():
                    self._read_field(part, _reserved_digits(parts[place + 1 :], part))

    def _read_field(self, field: PatternField, reserved: int) -> None:
        letter, count = field.letter, field.count
        if letter in "ML" and count >= 3:
            self.found["M"] = self._name(MONTHS, count) + 1
        elif letter == "E" or (letter in "ec" and count >= 3):
            self.found["E"] = self._name(WEEKDAYS, count) + 1
        elif letter == "a":
            self.found["a"] = self._name(("AM", "PM"), 4)
        elif letter == "G":
            self.found["G"] = self._name(("BC", "AD"), 4)
        elif letter == "S":
            self.found["S"] = int(self._digits(count, count, 0).ljust(9, "0")[:9])
        elif letter in "VvzO":
            self._read_zone()
        elif letter in "XxZ":
            self._read_offset(allows_z=letter == "X" or (letter == "Z" and count == 5))
        elif letter in _NUMBERS:
            self._read_number(letter, count, reserved)
        else:
            raise self._problem(f"the letter {letter} cannot be read")

    def _read_number(self, letter: str, count: int, reserved: int) -> None:
        if letter in "yuY" and count == 2:
            self.found[letter] = _century(int(self._digits(2, 2, 0)), self._is_lenient)
            return
        sign = 1
        if letter in "yuY" and self._text[self._at : self._at + 1] in ("-", "+"):
            sign = -1 if self._text[self._at] == "-" else 1
            self._at += 1
        longest = 19 if count == 1 or letter in "yuY" else count
        if self._is_lenient:
            count, longest = (count, count) if reserved else (1, 19)
        self.found["M" if letter == "L" else letter] = sign * int(self._digits(count, longest, reserved))

    def _digits(self, fewest: int, most: int, reserved: int) -> str:
        """Digits, as many as can be had while leaving those that adjacent fields of fixed width need."""
        found = _DIGITS.match(self._text, self._at)
        available = len(found[0]) if found else 0
        width = min(most, max(available - reserved, fewest))
        if available < fewest:
            raise self._problem()
        digits = self._text[self._at : self._at + width]
        self._at += width
        return digits

    def _name(self, names: Sequence[str], count: int) -> int:
        for place, name in enumerate(names):
            wanted = name[:3] if count <= 3 else name[:1] if count == 5 else name
            if self._lowered.startswith(wanted.lower(), self._at):
                self._at += len(wanted)
                return place
        raise self._problem()

    def _read_zone(self) -> None:
        found = _ZONE_ID.match(self._text, self._at)
        if found is None:
            raise self._problem()
        name = found[0]
        self.zone = zone(_SHORT_NAMES.get(name.upper(), name))
        self._at = found.end()

    def _read_offset(self, *, allows_z: bool) -> None:
        if allows_z and self._lowered.startswith("z", self._at):
            self._at += 1
            self.zone = zone("Z")
            return
        found = _OFFSET.match(self._text, self._at)
        if found is None:
            raise self._problem()
        self.zone = zone(f"{found[1]}{found[2]}:{found[3] or '00'}:{found[4] or '00'}")
        self._at = found.end()


_SHORT_NAMES = {
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "BST": "Europe/London",
    "CET": "Europe/Paris",
    "CEST": "Europe/Paris",
    "JST": "Asia/Tokyo",
    "IST": "Asia/Kolkata",
}


def _century(year: int, is_lenient: bool) -> int:
    """A year of two digits: from 2000 on, or (SimpleDateFormat) from 80 years ago to 20 years ahead."""
    if is_lenient and 2000 + year > time.gmtime().tm_year + 20:
        return 1900 + year
    return 2000 + year


def _reserved_digits(following: Sequence[Part], field: PatternField) -> int:
    """How many digits the fixed-width fields right after a number need."""
    total = 0
    for part in following:
        if not isinstance(part, PatternField):
            break
        is_fixed = part.count == 2 or part.letter == "S" or (part.letter in "D" and part.count == 3)
        if part.letter not in _NUMBERS | {"S"} or not is_fixed or (part.letter in "ML" and part.count > 2):
            break
        total += part.count
    return total


# --- from fields to values -----------------------------------------------------------------------------------


def _check_range(value: int, low: int, high: int, what: str) -> int:
    if not low <= value <= high:
        raise ExpressionError(f"{value} is not a valid {what}: it must be between {low} and {high}")
    return value


def _year(found: dict[str, int], default: int | None) -> int | None:
    if "u" in found:
        return found["u"]
    if "y" in found:
        return 1 - found["y"] if found.get("G") == 0 else found["y"]
    return default


def _days(found: dict[str, int], defaults: tuple[int, int, int] | None) -> int | None:
    """The date; without defaults, None if a part is missing."""
    year = _year(found, defaults[0] if defaults else None)
    if year is None:
        return None
    _check_range(year, -999_999_999, 999_999_999, "year")
    if "D" in found:
        return days_of(year, 1, 1) + _check_range(found["D"], 1, 366 if is_leap(year) else 365, "day of the year") - 1
    month = found.get("M", defaults[1] if defaults else None)
    day = found.get("d", defaults[2] if defaults else None)
    if month is None or day is None:
        return None
    _check_range(month, 1, 12, "month")
    _check_range(day, 1, 31, "day of the month")
    days = days_of(year, month, min(day, days_in_month(year, month)))
    if "E" in found and (days + 3) % 7 + 1 != found["E"]:
        raise ExpressionError("the day of the week is not that of the date")
    return days


def _hour(found: dict[str, int]) -> int | None:
    if "H" in found:
        return _check_range(found["H"], 0, 23, "hour")
    if "k" in found:
        return _check_range(found["k"], 1, 24, "hour") % 24
    if "h" in found or "K" in found:
        hour = _check_range(found["h"], 1, 12, "hour") % 12 if "h" in found else _check_range(found["K"], 0, 11, "hour")
        return hour + 12 * found.get("a", 0) if "a" in found else None
    return None


def _milliseconds(found: dict[str, int]) -> int | None:
    """The time of the day, None if there is no hour; missing smaller parts are zero."""
    if "N" in found:
        return _check_range(found["N"] // 1_000_000, 0, MS_PER_DAY - 1, "time")
    if "A" in found:
        return _check_range(found["A"], 0, MS_PER_DAY - 1, "time")
    hour = _hour(found)
    minute = _check_range(found.get("m", 0), 0, 59, "minute")
    second = _check_range(found.get("s", 0), 0, 59, "second")
    fraction = found.get("S", found.get("n", 0)) // 1_000_000
    if hour is None:
        return None
    return ((hour * 60 + minute) * 60 + second) * 1000 + fraction


def parse_date(text: str, pattern: str) -> int:
    """Days since the epoch; year, month and day must be in the text."""
    reader = _Reader(text, pattern)
    reader.read_all()
    days = _days(reader.found, None)
    if days is None:
        raise ExpressionError(f"'{text[:100]}' with the format '{pattern}' is not a complete date")
    return days


def lenient_date(text: str, pattern: str) -> int:
    """Days since the epoch; missing parts are those of 1970-01-01, a 13th month or 32nd day goes on counting."""
    reader = _Reader(text, pattern, is_lenient=True)
    reader.read_all()
    found = reader.found
    if not found.keys().isdisjoint("HhKkmsSAnNa"):
        raise ExpressionError("Date format contains time field.")
    year = _check_range(_year(found, 1970) or 0, -999_999, 999_999, "year")
    if "D" in found:
        return days_of(year, 1, 1) + _check_range(found["D"], -999_999, 999_999, "day") - 1
    years, month = divmod(_check_range(found.get("M", 1), -999_999, 999_999, "month") - 1, 12)
    return days_of(year + years, month + 1, 1) + _check_range(found.get("d", 1), -999_999, 999_999, "day") - 1


def parse_time(text: str, pattern: str) -> int:
    """Milliseconds of the day; the hour must be in the text."""
    reader = _Reader(text, pattern)
    reader.read_all()
    if not reader.found.keys().isdisjoint("GuyYDMdQqwWEec"):
        raise ExpressionError("Time format contains date field.")
    ms = _milliseconds(reader.found)
    if ms is None:
        raise ExpressionError(f"'{text[:100]}' with the format '{pattern}' is not a complete time")
    return ms


def parse_timestamp(text: str, pattern: str, where: tzinfo) -> int:
    """Milliseconds since the epoch; parts that the pattern lacks are those of 1970-01-01T00:00, a zone read wins."""
    reader = _Reader(text, pattern)
    reader.read_all()
    # Hours of half a day are those of the morning if nothing else is said.
    reader.found.setdefault("a", 0)
    days = _days(reader.found, (1970, 1, 1))
    assert days is not None
    ms = _milliseconds(reader.found)
    if ms is None:
        minutes, seconds = reader.found.get("m", 0), reader.found.get("s", 0)
        ms = (minutes * 60 + seconds) * 1000 + reader.found.get("S", 0) // 1_000_000
    return utc_of_local(days * MS_PER_DAY + ms, reader.zone or where)
