from __future__ import annotations

from typing import Any

import pytest
from tests.unit.pipeline.cores.sql.evaluating import evaluate

COLUMNS = {
    "D": ("DATE", 18321),  # 2020-02-29, a Saturday
    "T": ("TIME", 36_930_123),  # 10:15:30.123
    "TS": ("TIMESTAMP", 1_582_971_330_123),  # 2020-02-29T10:15:30.123
    "MS": ("BIGINT", 1_582_971_330_123),
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("DATEADD(DAYS, 1, D)", 18322),
        ("DATEADD(HOURS, 30, D)", 18322),
        ("DATESUB(HOURS, 1, D)", 18320),
        ("TIMEADD(HOURS, 20, T)", 22_530_123),
        ("TIMESUB(HOURS, 11, T)", 83_730_123),
        ("TIMESTAMPADD(SECONDS, 2, TS)", 1_582_971_332_123),
        ("TIMESTAMPSUB(MILLISECONDS, 123, TS)", 1_582_971_330_000),
        ("FROM_DAYS(10)", 10),
        ("UNIX_DATE(D)", 18321),
        ("FROM_UNIXTIME(MS)", 1_582_971_330_123),
        ("UNIX_TIMESTAMP(TS)", 1_582_971_330_123),
        ("CONVERT_TZ(TS, 'UTC', 'America/New_York')", 1_582_971_330_123 - 5 * 3_600_000),
        ("CONVERT_TZ(TS, '+0200', '+0530')", 1_582_971_330_123 + 12_600_000),
        ("CONVERT_TZ(TS, 'UTC', 'Atlantis')", None),
    ],
)
def test_arithmetic_of_times(expression: str, expected: Any) -> None:
    assert evaluate(expression, **COLUMNS) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("FORMAT_DATE(D, 'yyyy-MM-dd')", "2020-02-29"),
        ("FORMAT_DATE(D, 'EEE, d MMM yy')", "Sat, 29 Feb 20"),
        ("FORMAT_DATE(D, 'EEEE d MMMM uuuu, DDD, QQQ')", "Saturday 29 February 2020, 060, Q1"),
        ("FORMAT_DATE(D, '''week'' w ''of'' YYYY')", "week 9 of 2020"),
        ("FORMAT_DATE(D, 'HH')", None),
        ("FORMAT_DATE(D, 'yyyy[ HH]')", "2020"),
        ("FORMAT_TIME(T, 'HH:mm:ss.SSS')", "10:15:30.123"),
        ("FORMAT_TIME(T, 'h:mm a')", "10:15 AM"),
        ("FORMAT_TIME(T, 'yyyy')", None),
        ("FORMAT_TIMESTAMP(TS, 'yyyy-MM-dd''T''HH:mm:ssX')", "2020-02-29T10:15:30Z"),
        ("FORMAT_TIMESTAMP(TS, 'yyyy-MM-dd HH:mm:ss zzz', 'Europe/London')", "2020-02-29 10:15:30 GMT"),
        ("FORMAT_TIMESTAMP(TS, 'HH:mm xxx VV', 'America/New_York')", "05:15 -05:00 America/New_York"),
        ("FORMAT_TIMESTAMP(TS, 'HH:mm Z', '+0530')", "15:45 +0530"),
        ("TIMESTAMPTOSTRING(MS, 'yyyy-MM-dd HH:mm:ss.SSS')", "2020-02-29 10:15:30.123"),
        ("TIMESTAMPTOSTRING(MS, 'b')", None),
        ("DATETOSTRING(18321, 'dd/MM/yyyy')", "29/02/2020"),
    ],
)
def test_times_as_text(expression: str, expected: str | None) -> None:
    assert evaluate(expression, **COLUMNS) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("PARSE_DATE('2020-02-29', 'yyyy-MM-dd')", 18321),
        ("PARSE_DATE('29-FEB-2020', 'dd-MMM-yyyy')", 18321),
        ("PARSE_DATE('20200229', 'yyyyMMdd')", 18321),
        ("PARSE_DATE('29/02/20', 'dd/MM/yy')", 18321),
        ("PARSE_DATE('01/01/99', 'dd/MM/yy')", 10592),
        ("PARSE_DATE('32/01/2020', 'dd/MM/yyyy')", 18293),
        ("PARSE_DATE('FEB-2020', 'MMM-yyyy')", 18293),
        ("PARSE_DATE('2020-02-29 and more', 'yyyy-MM-dd')", 18321),
        ("PARSE_DATE('2020-02-29 10', 'yyyy-MM-dd HH')", None),
        ("PARSE_TIME('10:15:30.123', 'HH:mm:ss.SSS')", 36_930_123),
        ("PARSE_TIME('101530', 'HHmmss')", 36_930_000),
        ("PARSE_TIME('1:05 pm', 'h:mm a')", 47_100_000),
        ("PARSE_TIME('25:00', 'HH:mm')", None),
        ("PARSE_TIMESTAMP('2020-02-29 10:15:30', 'yyyy-MM-dd HH:mm:ss')", 1_582_971_330_000),
        ("PARSE_TIMESTAMP('2020-02-29T10:15:30Z', 'yyyy-MM-dd''T''HH:mm:ssX')", 1_582_971_330_000),
        ("PARSE_TIMESTAMP('2020-02-29T10:15:30+01:00', 'yyyy-MM-dd''T''HH:mm:ssXXX')", 1_582_967_730_000),
        ("PARSE_TIMESTAMP('2020-02-29 05:15', 'yyyy-MM-dd HH:mm', 'America/New_York')", 1_582_971_300_000),
        ("PARSE_TIMESTAMP('2020-01-01 03', 'yyyy-MM-dd hh')", 1_577_847_600_000),
        ("PARSE_TIMESTAMP('2020', 'yyyy')", 1_577_836_800_000),
        ("PARSE_TIMESTAMP('29/02', 'dd/MM')", 5_011_200_000),
        ("PARSE_TIMESTAMP('2020-13-01', 'yyyy-MM-dd')", None),
        ("PARSE_TIMESTAMP('2020-02-29x', 'yyyy-MM-dd')", None),
        ("STRINGTODATE('2020-02-29', 'yyyy-MM-dd')", 18321),
        ("STRINGTODATE('2020-02', 'yyyy-MM')", None),
        ("STRINGTOTIMESTAMP('2020-02-29 10:15:30.123', 'yyyy-MM-dd HH:mm:ss.SSS')", 1_582_971_330_123),
        ("STRINGTOTIMESTAMP('20200229101530123', 'yyyyMMddHHmmssSSS')", 1_582_971_330_123),
        ("STRINGTOTIMESTAMP('nonsense', 'yyyy')", None),
    ],
)
def test_times_from_text(expression: str, expected: int | None) -> None:
    assert evaluate(expression) == expected


def test_todays_date_and_time_agree() -> None:
    assert abs(evaluate("UNIX_TIMESTAMP()") // 86_400_000 - evaluate("UNIX_DATE()")) <= 1
