"""The proleptic ISO calendar for any year, ISO texts of dates and times, and zones.

Python's datetime ends with year 9999; a TIMESTAMP of 64 bits does not. Start at `date_of` and `parse_timestamp`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from moldau.pipeline.cores.sql.failures import ExpressionError

__all__ = [
    "MS_PER_DAY",
    "date_of",
    "date_text",
    "days_in_month",
    "days_of",
    "is_leap",
    "offset_seconds_at",
    "parse_date",
    "parse_time",
    "parse_timestamp",
    "time_text",
    "timestamp_text",
    "utc_of_local",
    "zone",
]

MS_PER_DAY = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS, _LAST_MS = -62_135_596_800_000 + MS_PER_DAY, 253_402_300_799_999 - MS_PER_DAY
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap(year: int) -> bool:
    """Whether a year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    """28 to 31."""
    return 29 if month == 2 and is_leap(year) else _MONTH_DAYS[month - 1]


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01. Years are counted from March, so that the leap day is the last of its year."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


# --- texts ---------------------------------------------------------------------------------------------------


def _year_text(year: int) -> str:
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"{'+' if year > 0 else '-'}{abs(year):04d}"


def date_text(days: int) -> str:
    """`2020-01-31`."""
    year, month, day = date_of(days)
    return f"{_year_text(year)}-{month:02d}-{day:02d}"


def time_text(ms: int) -> str:
    """`10:15` or `10:15:30`: whole seconds, left out if zero."""
    seconds = ms // 1000
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return f"{text}:{seconds % 60:02d}" if seconds % 60 else text


def timestamp_text(ms: int) -> str:
    """`2020-01-31T10:15:30.123`."""
    days, of_day = divmod(ms, MS_PER_DAY)
    seconds, fraction = divmod(of_day, 1000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{date_text(days)}T{clock}.{fraction:03d}"


_DATE = r"([+-]?\d{1,9})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_TIME = r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?"
_DATE_PATTERN = re.compile(_DATE, re.ASCII)
_TIME_PATTERN = re.compile(_TIME, re.ASCII)
_TIMESTAMP_PATTERN = re.compile(rf"{_DATE}(?:[T ](?:{_TIME})?)?(Z|[+-]\d{{2}}(?::?\d{{2}})?)?", re.ASCII)


def parse_date(text: str) -> int:
    """Days of an ISO date; a missing month or day is the first."""
    found = _DATE_PATTERN.fullmatch(text.strip())
    if not found:
        raise _unreadable(text, "date", "yyyy-MM-dd")
    return _days(text, *found.groups())


def _days(text: str, year: str, month: str | None, day: str | None) -> int:
    y, m, d = int(year), int(month or 1), int(day or 1)
    if not (1 <= m <= 12 and 1 <= d <= days_in_month(y, m)):
        raise _unreadable(text, "date", "yyyy-MM-dd")
    return days_of(y, m, d)


def parse_time(text: str) -> int:
    """Milliseconds of the day of an ISO time; missing parts are zero."""
    found = _TIME_PATTERN.fullmatch(text.strip())
    if not found:
        raise _unreadable(text, "time", "HH:mm:ss.SSS")
    return _milliseconds(text, *found.groups())


def _milliseconds(text: str, hour: str | None, minute: str | None, second: str | None, fraction: str | None) -> int:
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    is_midnight = h == 24 and not m and not s and not (fraction or "").strip("0")
    if not is_midnight and (h > 23 or m > 59 or s > 59):
        raise _unreadable(text, "time", "HH:mm:ss.SSS")
    return ((h * 60 + m) * 60 + s) * 1000 + int((fraction or "").ljust(3, "0")[:3])


def parse_timestamp(text: str) -> int:
    """Milliseconds since the epoch of an ISO date and time, in UTC unless an offset is given; may be partial."""
    found = _TIMESTAMP_PATTERN.fullmatch(text.strip())
    if not found:
        raise _unreadable(text, "timestamp", "yyyy-MM-ddTHH:mm:ss[.SSS][+hh:mm]")
    *parts, offset = found.groups()
    days = _days(text, parts[0] or "", parts[1], parts[2])
    local = days * MS_PER_DAY + _milliseconds(text, *parts[3:])
    return local - _offset_ms(offset)


def _offset_ms(offset: str | None) -> int:
    if offset is None or offset == "Z":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    ms = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
    return -ms if offset[0] == "-" else ms


def _unreadable(text: str, what: str, layout: str) -> ExpressionError:
    return ExpressionError(f"'{text}' is not a {what}; required format is '{layout}'")


# --- zones ---------------------------------------------------------------------------------------------------

_OFFSET_ID = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)


@lru_cache(maxsize=1)
def _zone_names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


@lru_cache(maxsize=1024)
def zone(name: str) -> tzinfo:
    """A zone by its id (`Europe/Prague`), an offset (`+02:00`, `UTC+2`) or `Z`."""
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    found = _OFFSET_ID.fullmatch(name)
    if found:
        sign, hours, minutes, seconds = found.groups()
        delta = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        if delta > timedelta(hours=18):
            raise ExpressionError(f"the offset of zone '{name}' is beyond 18 hours")
        return timezone(-delta if sign == "-" else delta)
    try:
        # Only names of the database: a path as a name must not reach the file system.
        return ZoneInfo(_zone_names()[name.lower()])
    except (KeyError, ZoneInfoNotFoundError):
        raise ExpressionError(f"Unknown time-zone ID: {name}") from None


def offset_seconds_at(ms: int, where: tzinfo) -> int:
    """The offset of a zone at an instant; years beyond Python's calendar have that of its first or last one."""
    if where is UTC:
        return 0
    instant = _EPOCH + timedelta(milliseconds=min(max(ms, _FIRST_MS), _LAST_MS))
    offset = instant.astimezone(where).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def utc_of_local(local_ms: int, where: tzinfo) -> int:
    """The instant of a local time; the earlier one where clocks are put back, later by the gap where put forward."""
    if where is UTC:
        return local_ms
    bounded = min(max(local_ms, _FIRST_MS), _LAST_MS)
    wall = (_EPOCH + timedelta(milliseconds=bounded)).replace(tzinfo=where, fold=0)
    offset = wall.utcoffset()
    assert offset is not None
    return local_ms - int(offset.total_seconds()) * 1000
