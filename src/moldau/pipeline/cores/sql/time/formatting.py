"""Dates and times written by a pattern. Start at `format_timestamp`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.time.calendar import (
    MS_PER_DAY,
    date_of,
    days_of,
    offset_seconds_at,
)
from moldau.pipeline.cores.sql.time.patterns import MONTHS, WEEKDAYS, Optional, Part, PatternField, Text, read_pattern

__all__ = ["format_date", "format_time", "format_timestamp"]


@dataclass(frozen=True, slots=True)
class _Moment:
    """What a pattern can write; parts that a kind of value lacks are None."""

    days: int | None
    ms: int | None
    offset: int | None = None
    zone_id: str = ""
    zone_name: str = ""

    @property
    def date(self) -> tuple[int, int, int]:
        return date_of(_require_field(self.days, "date"))

    @property
    def weekday(self) -> int:
        """1 is Monday."""
        return (_require_field(self.days, "date") + 3) % 7 + 1

    @property
    def day_of_year(self) -> int:
        days = _require_field(self.days, "date")
        return days - days_of(self.date[0], 1, 1) + 1

    @property
    def time(self) -> int:
        return _require_field(self.ms, "time")

    @property
    def seconds_east(self) -> int:
        return _require_field(self.offset, "time zone")


def _require_field(value: int | None, what: str) -> int:
    if value is None:
        raise ExpressionError(f"the pattern asks for a {what}, which the value does not have")
    return value


def format_date(days: int, pattern: str) -> str:
    """A date by a pattern."""
    return _write_parts(read_pattern(pattern), _Moment(days, None))


def format_time(ms: int, pattern: str) -> str:
    """A time of the day by a pattern."""
    return _write_parts(read_pattern(pattern), _Moment(None, ms))


def format_timestamp(ms: int, pattern: str, zone_id: str, where: tzinfo) -> str:
    """A moment in a zone by a pattern."""
    offset = offset_seconds_at(ms, where)
    days, of_day = divmod(ms + offset * 1000, MS_PER_DAY)
    return _write_parts(read_pattern(pattern), _Moment(days, of_day, offset, zone_id, _zone_name(ms, where, zone_id)))


def _zone_name(ms: int, where: tzinfo, zone_id: str) -> str:
    if where is UTC:
        return "UTC" if zone_id != "Z" else "Z"
    bounded = min(max(ms, -62_135_510_400_000), 253_402_214_400_000)
    name = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=bounded)).astimezone(where).tzname() or zone_id
    return name.removeprefix("UTC") if name.startswith(("UTC+", "UTC-")) else name


def _write_parts(parts: tuple[Part, ...], moment: _Moment) -> str:
    written: list[str] = []
    for part in parts:
        match part:
            case Text():
                written.append(part.text)
            case Optional():
                try:
                    written.append(_write_parts(part.parts, moment))
                except ExpressionError:
                    continue
            case PatternField():
                written.append(_WRITERS[part.letter](moment, part.count))
    return "".join(written)


Writer = Callable[[_Moment, int], str]


def _padded_writer(value: Callable[[_Moment], int]) -> Writer:
    def write(moment: _Moment, count: int) -> str:
        number = value(moment)
        text = str(abs(number)).rjust(count, "0")
        if len(str(abs(number))) > count > 2:
            raise ExpressionError(f"{number} has more than {count} digits")
        return f"-{text}" if number < 0 else text

    return write


def _year(year_of: Callable[[_Moment], int]) -> Writer:
    def write(moment: _Moment, count: int) -> str:
        year = year_of(moment)
        if count == 2:
            return f"{year % 100:02d}"
        text = str(abs(year)).rjust(count, "0")
        sign = "-" if year < 0 else "+" if count >= 4 and len(text) > count else ""
        return sign + text

    return write


def _name_writer(value: Callable[[_Moment], int], names: tuple[str, ...]) -> Writer:
    def write(moment: _Moment, count: int) -> str:
        number = value(moment)
        if count <= 2:
            return str(number).rjust(count, "0")
        name = names[number - 1]
        return name[:3] if count == 3 else name[:1] if count == 5 else name

    return write


def _weekday_name(moment: _Moment, count: int) -> str:
    name = WEEKDAYS[moment.weekday - 1]
    return name[:3] if count <= 3 else name[:1] if count == 5 else name


def _sunday_first(moment: _Moment) -> int:
    return moment.weekday % 7 + 1


def _localized_weekday(moment: _Moment, count: int) -> str:
    return str(_sunday_first(moment)).rjust(count, "0") if count <= 2 else _weekday_name(moment, count)


def _week(moment: _Moment) -> tuple[int, int]:
    """Year and week where weeks start on Sunday and the first one holds January 1st."""
    year = moment.date[0]
    days = _require_field(moment.days, "date")
    for candidate in (year + 1, year):
        new_year = days_of(candidate, 1, 1)
        start = new_year - (new_year + 4) % 7
        if days >= start:
            return candidate, (days - start) // 7 + 1
    raise AssertionError("a date is in its own year or the next")


def _week_of_month(moment: _Moment) -> int:
    year, month, day = moment.date
    first = (days_of(year, month, 1) + 4) % 7
    return (day - 1 + first) // 7 + 1


def _fraction(moment: _Moment, count: int) -> str:
    return f"{moment.time % 1000:03d}000000"[:count]


def _half_day(moment: _Moment, count: int) -> str:
    return "PM" if moment.time >= MS_PER_DAY // 2 else "AM"


def _hour(moment: _Moment) -> int:
    return moment.time // 3_600_000


def _quarter(moment: _Moment, count: int) -> str:
    number = (moment.date[1] + 2) // 3
    ordinal = ("1st", "2nd", "3rd", "4th")[number - 1]
    return str(number).rjust(count, "0") if count <= 2 else f"Q{number}" if count == 3 else f"{ordinal} quarter"


def _era(moment: _Moment, count: int) -> str:
    is_common = moment.date[0] > 0
    if count == 4:
        return "Anno Domini" if is_common else "Before Christ"
    return ("A" if is_common else "B") if count == 5 else "AD" if is_common else "BC"


def _offset_parts(moment: _Moment) -> tuple[str, int, int, int]:
    seconds = abs(moment.seconds_east)
    return "-" if moment.seconds_east < 0 else "+", seconds // 3600, seconds // 60 % 60, seconds % 60


def _offset(moment: _Moment, count: int) -> str:
    sign, hours, minutes, seconds = _offset_parts(moment)
    colon = ":" if count in (3, 5) else ""
    text = f"{sign}{hours:02d}"
    if count > 1 or minutes:
        text += f"{colon}{minutes:02d}"
    if count >= 4 and seconds:
        text += f"{colon}{seconds:02d}"
    return text


def _offset_or_z(moment: _Moment, count: int) -> str:
    return "Z" if moment.seconds_east == 0 else _offset(moment, count)


def _general_offset(moment: _Moment, count: int) -> str:
    if count <= 3:
        return _offset(moment, 2)
    return _localized_offset(moment, 4) if count == 4 else _offset_or_z(moment, 5)


def _localized_offset(moment: _Moment, count: int) -> str:
    sign, hours, minutes, _ = _offset_parts(moment)
    if moment.seconds_east == 0:
        return "GMT"
    if count == 4:
        return f"GMT{sign}{hours:02d}:{minutes:02d}"
    return f"GMT{sign}{hours}" + (f":{minutes:02d}" if minutes else "")


def _zone_text(moment: _Moment, count: int) -> str:
    _require_field(moment.offset, "time zone")
    return moment.zone_name


def _zone_id(moment: _Moment, count: int) -> str:
    _require_field(moment.offset, "time zone")
    return moment.zone_id


_WRITERS: dict[str, Writer] = {
    "G": _era,
    "u": _year(lambda moment: moment.date[0]),
    "y": _year(lambda moment: moment.date[0] if moment.date[0] > 0 else 1 - moment.date[0]),
    "Y": _year(lambda moment: _week(moment)[0]),
    "w": _padded_writer(lambda moment: _week(moment)[1]),
    "W": _padded_writer(_week_of_month),
    "D": _padded_writer(lambda moment: moment.day_of_year),
    "M": _name_writer(lambda moment: moment.date[1], MONTHS),
    "L": _name_writer(lambda moment: moment.date[1], MONTHS),
    "d": _padded_writer(lambda moment: moment.date[2]),
    "Q": _quarter,
    "q": _quarter,
    "E": _weekday_name,
    "e": _localized_weekday,
    "c": _localized_weekday,
    "a": _half_day,
    "H": _padded_writer(_hour),
    "k": _padded_writer(lambda moment: _hour(moment) or 24),
    "K": _padded_writer(lambda moment: _hour(moment) % 12),
    "h": _padded_writer(lambda moment: _hour(moment) % 12 or 12),
    "m": _padded_writer(lambda moment: moment.time // 60_000 % 60),
    "s": _padded_writer(lambda moment: moment.time // 1000 % 60),
    "S": _fraction,
    "A": _padded_writer(lambda moment: moment.time),
    "n": _padded_writer(lambda moment: moment.time % 1000 * 1_000_000),
    "N": _padded_writer(lambda moment: moment.time * 1_000_000),
    "V": _zone_id,
    "v": _zone_text,
    "z": _zone_text,
    "O": _localized_offset,
    "X": _offset_or_z,
    "x": _offset,
    "Z": _general_offset,
}
