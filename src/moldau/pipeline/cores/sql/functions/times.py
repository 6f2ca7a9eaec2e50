"""Functions on dates, times and timestamps. Patterns are those of Java's DateTimeFormatter."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from moldau.pipeline.cores.sql.arithmetic import divide_integers, wrap_long
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.registry import BUILTIN
from moldau.pipeline.cores.sql.time import formatting, parsing
from moldau.pipeline.cores.sql.time.calendar import MS_PER_DAY, offset_seconds_at, zone

_DATES = "DATE / TIME"

_UNITS = {
    "MILLISECONDS": 1,
    "SECONDS": 1000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "DAYS": MS_PER_DAY,
}


def _duration(unit: str, count: int) -> int:
    name = unit.upper() if unit.upper().endswith("S") else unit.upper() + "S"
    if name not in _UNITS:
        raise ExpressionError(f"{unit} is not a unit of time: use one of {', '.join(_UNITS)}")
    return _UNITS[name] * count


# --- arithmetic ----------------------------------------------------------------------------------------------


def _move_date(sign: int) -> Callable[[str, int, int], int]:
    def move(unit: str, count: int, days: int) -> int:
        # Towards zero, as Java converts to days, so an hour before 1970-01-01 is still that day.
        return divide_integers(days * MS_PER_DAY + sign * _duration(unit, count), MS_PER_DAY)

    return move


def _move_time(sign: int) -> Callable[[str, int, int], int]:
    def move(unit: str, count: int, ms: int) -> int:
        return (ms + sign * _duration(unit, count)) % MS_PER_DAY

    return move


def _move_timestamp(sign: int) -> Callable[[str, int, int], int]:
    def move(unit: str, count: int, ms: int) -> int:
        return wrap_long(ms + sign * _duration(unit, count))

    return move


for _name, _move, _kind, _about in (
    ("dateadd", _move_date(1), "DATE", "A date later by some units of time, without the time of the day."),
    ("datesub", _move_date(-1), "DATE", "A date earlier by some units of time, without the time of the day."),
    ("timeadd", _move_time(1), "TIME", "A time of the day later by some units, starting again at midnight."),
    ("timesub", _move_time(-1), "TIME", "A time of the day earlier by some units, going back over midnight."),
    ("timestampadd", _move_timestamp(1), "TIMESTAMP", "A timestamp later by some units of time."),
    ("timestampsub", _move_timestamp(-1), "TIMESTAMP", "A timestamp earlier by some units of time."),
):
    _move.__doc__ = _about
    BUILTIN.scalar(_name, f"(unit INTERVALUNIT, interval INTEGER, value {_kind}) -> {_kind}", category=_DATES)(_move)


@BUILTIN.scalar("convert_tz", "(timestamp TIMESTAMP, from_tz STRING, to_tz STRING) -> TIMESTAMP", category=_DATES)
def convert_tz(ms: int, given: str, wanted: str) -> int:
    """A timestamp shifted by the difference of two time zones at that moment."""
    return ms + (offset_seconds_at(ms, zone(wanted)) - offset_seconds_at(ms, zone(given))) * 1000


# --- to text -------------------------------------------------------------------------------------------------


@BUILTIN.scalar("format_date", "(date DATE, format STRING) -> STRING", category=_DATES)
def format_date(days: int, pattern: str) -> str:
    """A date as text by a pattern."""
    return formatting.format_date(days, pattern)


@BUILTIN.scalar("format_time", "(time TIME, format STRING) -> STRING", category=_DATES)
def format_time(ms: int, pattern: str) -> str:
    """A time as text by a pattern."""
    return formatting.format_time(ms, pattern)


def _format_timestamp(ms: int, pattern: str, zone_id: str = "UTC") -> str:
    return formatting.format_timestamp(ms, pattern, zone_id, zone(zone_id))


for _name, _kind, _about in (
    ("format_timestamp", "TIMESTAMP", "A timestamp as text by a pattern, in UTC or another time zone."),
    ("timestamptostring", "BIGINT", "Milliseconds since 1970 as text by a pattern, in UTC or another time zone."),
):

    def _format_time(ms: int, pattern: str, zone_id: str = "UTC") -> str:
        return _format_timestamp(ms, pattern, zone_id)

    _format_time.__doc__ = _about
    BUILTIN.scalar(
        _name,
        f"(timestamp {_kind}, format STRING) -> STRING",
        f"(timestamp {_kind}, format STRING, timezone STRING) -> STRING",
        category=_DATES,
    )(_format_time)


@BUILTIN.scalar("datetostring", "(epoch_days INTEGER, format STRING) -> STRING", category=_DATES)
def datetostring(days: int, pattern: str) -> str:
    """Days since 1970 as text by a pattern."""
    return formatting.format_date(days, pattern)


# --- from text -----------------------------------------------------------------------------------------------


@BUILTIN.scalar("parse_date", "(text STRING, format STRING) -> DATE", category=_DATES)
def parse_date(text: str, pattern: str) -> int:
    """A text by a pattern as a date."""
    return parsing.lenient_date(text, pattern)


@BUILTIN.scalar("parse_time", "(text STRING, format STRING) -> TIME", category=_DATES)
def parse_time(text: str, pattern: str) -> int:
    """A text by a pattern as a time."""
    return parsing.parse_time(text, pattern)


@BUILTIN.scalar("stringtodate", "(text STRING, format STRING) -> INTEGER", category=_DATES)
def stringtodate(text: str, pattern: str) -> int:
    """A text by a pattern as days since 1970."""
    return parsing.parse_date(text, pattern)


@BUILTIN.scalar(
    "parse_timestamp",
    "(text STRING, format STRING) -> TIMESTAMP",
    "(text STRING, format STRING, timezone STRING) -> TIMESTAMP",
    category=_DATES,
)
def parse_timestamp(text: str, pattern: str, zone_id: str = "UTC") -> int:
    """A text by a pattern as a timestamp, in UTC or another time zone."""
    return parsing.parse_timestamp(text, pattern, zone(zone_id))


@BUILTIN.scalar(
    "stringtotimestamp",
    "(text STRING, format STRING) -> BIGINT",
    "(text STRING, format STRING, timezone STRING) -> BIGINT",
    category=_DATES,
)
def stringtotimestamp(text: str, pattern: str, zone_id: str = "UTC") -> int:
    """A text by a pattern as milliseconds since 1970, in UTC or another time zone."""
    return parsing.parse_timestamp(text, pattern, zone(zone_id))


# --- numbers -------------------------------------------------------------------------------------------------


@BUILTIN.scalar("from_days", "(days INTEGER) -> DATE", category=_DATES)
def from_days(days: int) -> int:
    """The date some days after 1970-01-01."""
    return days


@BUILTIN.scalar("from_unixtime", "(epochMilli BIGINT) -> TIMESTAMP", category=_DATES)
def from_unixtime(ms: int) -> int:
    """The timestamp some milliseconds after 1970-01-01."""
    return ms


@BUILTIN.scalar("unix_date", "() -> INTEGER", "(date DATE) -> INTEGER", category=_DATES)
def unix_date(*days: Any) -> int:
    """The days from 1970-01-01 to a date, or to today."""
    return int(days[0]) if days else time.time_ns() // 1_000_000 // MS_PER_DAY


@BUILTIN.scalar("unix_timestamp", "() -> BIGINT", "(timestamp TIMESTAMP) -> BIGINT", category=_DATES)
def unix_timestamp(*ms: Any) -> int:
    """The milliseconds from 1970-01-01 to a timestamp, or to now."""
    return int(ms[0]) if ms else time.time_ns() // 1_000_000
