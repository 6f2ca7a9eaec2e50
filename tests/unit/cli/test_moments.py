"""Moments and durations are read as Java reads them."""

from __future__ import annotations

import pytest

from moldau.cli.moments import parse_datetime_ms, parse_duration_ms
from moldau.cli.tool import ToolError


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT10S", 10_000),
        ("P1D", 86_400_000),
        ("PT1H30M", 5_400_000),
        ("P1DT1S", 86_401_000),
        ("PT0.5S", 500),
        ("PT-0.5S", -500),
        ("-PT1M", -60_000),
        ("pt1m", 60_000),
        ("PT1H-30M", 1_800_000),
    ],
)
def test_durations_are_iso(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "1h", "P", "PT", "P1DT", "PT1D", "P1H", "PTS", "P1.5D"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="PT1H30M"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:01.250", 1250),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T00:00:01.250Z", 1250),
        ("1970-01-01T01:00:01.250+01", 1250),
        ("1970-01-01T01:00:01.250+0100", 1250),
        ("1969-12-31T22:30:01.250-01:30", 1250),
        ("2021-09-02T13:04:32.926", 1_630_587_872_926),
    ],
)
def test_moments_are_in_utc_unless_they_say_otherwise(text: str, ms: int) -> None:
    assert parse_datetime_ms(text) == ms


@pytest.mark.parametrize("text", ["", "yesterday", "2021-09-02 13:04:32", "2021-13-02T13:04:32", "2021-09-02T25:04:32"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="is not a date and time"):
        parse_datetime_ms(text)
