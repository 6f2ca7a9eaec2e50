"""What is written for Prometheus can be read back, whatever the names, labels and numbers are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.core.prometheus import Histogram, MetricFamily, MetricType, Series, metric_name, render

NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"
LABEL = rf'({NAME})="((?:[^"\\\n]|\\["\\n])*)"'
LINE = re.compile(rf"({NAME})(?:\{{((?:{LABEL}(?:,|(?=\}})))*)\}})? (\S+)")


def unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)


def parse(text: str) -> list[tuple[str, list[tuple[str, str]], float]]:
    """Read samples as the format's description says, by a grammar of its own."""
    assert text.endswith("\n")
    samples = []
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("#"):
            assert re.fullmatch(rf"# (HELP {NAME} .+|TYPE {NAME} (counter|gauge|histogram))", line)
            continue
        found = LINE.fullmatch(line)
        assert found is not None, line
        labels = [(name, unescape(value)) for name, value in re.findall(LABEL, found[2] or "")]
        samples.append((found[1], labels, float(found[5])))
    return samples


def text_of(*families: MetricFamily) -> str:
    return "".join(render(families))


anything = st.text(alphabet=st.characters(codec="utf-8"))


@settings(deadline=None)
@given(
    anything, anything.filter(bool), st.lists(st.tuples(anything, anything), max_size=3), st.floats() | st.integers()
)
def test_what_is_written_can_be_read_back(name: str, text: str, labels: list[tuple[str, str]], value: float) -> None:
    wire = text_of(MetricFamily(metric_name(name), MetricType.GAUGE, text, [Series(tuple(labels), value)]))
    ((read_name, read_labels, read_value),) = parse(wire)
    assert read_name == metric_name(name)
    assert read_labels == [(metric_name(key), shown) for key, shown in labels]
    if math.isnan(value):
        assert math.isnan(read_value)
    else:
        assert read_value == pytest.approx(value, abs=1e-6)


@given(st.integers(-(2**63), 2**63))
def test_whole_numbers_lose_no_digit(value: int) -> None:
    wire = text_of(MetricFamily("x", MetricType.COUNTER, "", [Series((), value)]))
    assert wire == f"# TYPE x counter\nx {value}\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (12345678.0, "12345678"),
        (0.1 + 0.2, "0.3"),
        (1e-9, "1e-09"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (True, "1"),
    ],
)
def test_numbers_are_written_as_people_write_them(value: float, written: str) -> None:
    assert text_of(MetricFamily("x", MetricType.GAUGE, "", [Series((), value)])).endswith(f"x {written}\n")


def test_texts_are_escaped() -> None:
    family = MetricFamily("x", MetricType.GAUGE, "a\\b\nc", [Series((("l", 'q"\\\n'),), 1)])
    assert text_of(family) == '# HELP x a\\\\b\\nc\n# TYPE x gauge\nx{l="q\\"\\\\\\n"} 1\n'


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**40), min_size=4, max_size=4), st.floats(0, 1e6))
def test_buckets_are_cumulative_and_end_with_the_count(counts: list[int], total_s: float) -> None:
    histogram = Histogram((0.5, 1.0, 2.5), tuple(counts), total_s)
    samples = parse(text_of(MetricFamily("h", MetricType.HISTOGRAM, "", [Series((("a", "b"),), histogram)])))
    buckets = [value for name, _, value in samples if name == "h_bucket"]
    assert buckets == [sum(counts[: end + 1]) for end in range(4)]
    assert [dict(labels)["le"] for name, labels, _ in samples if name == "h_bucket"] == ["0.5", "1.0", "2.5", "+Inf"]
    assert samples[-1] == ("h_count", [("a", "b")], sum(counts))


def test_large_families_come_in_pieces_and_series_are_asked_for_one_by_one() -> None:
    asked = 0

    def series() -> Iterator[Series]:
        nonlocal asked
        for number in range(1000):
            asked += 1
            yield Series((("n", str(number)),), number)

    pieces = render([MetricFamily("x", MetricType.GAUGE, "Many.", series())])
    next(pieces)
    assert asked < 300
    assert sum(piece.count("\n") for piece in pieces) > 700
