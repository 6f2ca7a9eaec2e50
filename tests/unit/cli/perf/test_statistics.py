"""The figures of a producing run, in Kafka's words."""

from __future__ import annotations

from datetime import datetime

import pytest

from moldau.cli.perf.java_dates import render_date
from moldau.cli.perf.payload import Payloads
from moldau.cli.perf.statistics import ProducerStats, percentile
from moldau.cli.tool import ToolError


def test_the_total_has_rate_latency_and_percentiles() -> None:
    stats = ProducerStats(record_size=1024 * 1024, began=0.0)
    for latency in range(1, 1001):
        stats.latency(float(latency))
    stats.acknowledged(1000)
    assert stats.total(now=10.0) == (
        "1000 records sent, 100.000000 records/sec (100.00 MB/sec), 500.50 ms avg latency, 1000.00 ms max latency, "
        "501 ms 50th, 951 ms 95th, 991 ms 99th, 1000 ms 99.9th."
    )


def test_a_window_counts_only_what_happened_in_it() -> None:
    stats = ProducerStats(record_size=100, began=0.0)
    stats.acknowledged(10)
    stats.latency(5)
    assert stats.close_window(5.0).startswith("10 records sent, 2.0 records/sec")
    stats.acknowledged(15)
    assert stats.close_window(10.0) == (
        "5 records sent, 1.0 records/sec (0.00 MB/sec), 0.0 ms avg latency, 0.0 ms max latency."
    )


def test_a_percentile_of_nothing_is_zero() -> None:
    assert percentile([], 0.5) == 0
    assert percentile([7.0], 0.999) == 7


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss:SSS", "2021-09-02 10:04:05:006"),
        ("dd/MM/yy", "02/09/21"),
        ("h:mm a", "10:04 AM"),
        ("HH'h'", "10h"),
    ],
)
def test_dates_follow_javas_patterns(pattern: str, text: str) -> None:
    assert render_date(datetime(2021, 9, 2, 10, 4, 5, 6000), pattern) == text


def test_payloads_have_the_size_asked_for() -> None:
    only = Payloads.of_size(17).only
    assert only is not None
    assert len(only) == 17
    numbers = Payloads.monotonic()
    assert [numbers.next(), numbers.next()] == [b"0", b"1"]
    with pytest.raises(ToolError, match="positive"):
        Payloads.of_size(0)
