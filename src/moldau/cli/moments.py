"""Parses timestamps and durations in the formats of Kafka's tools, to milliseconds."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, timezone

from moldau.cli.options import Parsed
from moldau.cli.tool import ToolError

__all__ = ["asked_moment_ms", "parse_datetime_ms", "parse_duration_ms"]

_DATETIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:(Z)|([+-])(\d{2}):?(\d{2})?)?"
)
_DURATION = re.compile(
    r"([+-]?)P(?:([+-]?\d+)D)?(T(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+)(?:[.,](\d{0,9}))?S)?)?", re.IGNORECASE
)


def asked_moment_ms(parsed: Parsed) -> int | None:
    """The timestamp from `--to-datetime`, or now minus `--by-duration`; `None` without either."""
    if parsed.has("to-datetime"):
        return parse_datetime_ms(parsed.value("to-datetime"))
    if parsed.has("by-duration"):
        return time.time_ns() // 1_000_000 - parse_duration_ms(parsed.value("by-duration"))
    return None


def parse_datetime_ms(text: str) -> int:
    """Parse `YYYY-MM-DDTHH:mm:SS.sss`, with an offset (`Z`, `+01`, `+0100`, `+01:00`) or else in UTC."""
    found = _DATETIME.fullmatch(text.strip())
    if found is None:
        detail = "" if "T" in text else ": there is no 'T' between date and time"
        raise ToolError(
            f"{text} is not a date and time{detail}; write YYYY-MM-DDTHH:mm:SS.sss, with Z or +01:00 if need be"
        )
    *numbers, fraction, is_utc, sign, hours, minutes = found.groups()
    zone = UTC
    try:
        if sign and not is_utc:
            offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
            zone = timezone(offset if sign == "+" else -offset)
        year, month, day, hour, minute, second = map(int, numbers)
        moment = datetime(year, month, day, hour, minute, second, tzinfo=zone)
    except ValueError as error:
        raise ToolError(f"{text} is not a date and time: {error}") from None
    return round(moment.timestamp()) * 1000 + int((fraction or "0").ljust(3, "0")[:3])


def parse_duration_ms(text: str) -> int:
    """Parse ISO-8601's `PnDTnHnMnS` like Java's Duration: each part may have its own sign."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.group(number) for number in (2, 4, 5, 6)) or found.group(3) in ("T", "t"):
        raise ToolError(f"{text} is not a duration: write PnDTnHnMnS, such as PT1H30M or P2D")
    sign, days, _, hours, minutes, seconds, fraction = found.groups()
    milliseconds = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60_000
    milliseconds += int(seconds or 0) * 1000
    part = int((fraction or "0").ljust(3, "0")[:3])
    milliseconds += -part if (seconds or "").startswith("-") else part
    return -milliseconds if sign == "-" else milliseconds
