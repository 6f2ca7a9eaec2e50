"""Prometheus' text format 0.0.4: the one place that writes it. Pure.

A family is a name with all its series; metric sources return families, and `render` writes them in pieces, so that a
process with thousands of series can do other work in between. Start at `render`.

    # HELP moldau_subjects Subjects that are not deleted.
    # TYPE moldau_subjects gauge
    moldau_subjects{context="."} 3
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

__all__ = ["CONTENT_TYPE", "Histogram", "Labels", "MetricFamily", "MetricType", "Series", "metric_name", "render"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LINES_PER_PIECE = 200
MAX_EXACT_FLOAT = 2.0**53

Labels = tuple[tuple[str, str], ...]


class MetricType:
    """The values of `MetricFamily.type`."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Histogram(NamedTuple):
    """Counts per bucket, not cumulative; they are summed up when rendered."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    """One more than there are bounds: the last counts values above all bounds."""
    sum: float


class Series(NamedTuple):
    labels: Labels
    value: float | Histogram


class MetricFamily(NamedTuple):
    name: str
    """A valid name, see `metric_name`."""
    type: str
    help: str
    """One sentence; if empty, no HELP line is written."""
    series: Iterable[Series]


def render(families: Iterable[MetricFamily]) -> Iterator[str]:
    """The text of all families, in pieces of a few hundred lines. Series are iterated lazily."""
    for family in families:
        yield from _render_family(family)


@lru_cache(maxsize=4096)
def metric_name(text: str) -> str:
    """`text` as a valid name: lower case, with `_` for every character that is not allowed."""
    name = re.sub(r"[^a-z0-9_]", "_", text.lower())
    return f"_{name}" if not name or name[0].isdigit() else name


def _render_family(family: MetricFamily) -> Iterator[str]:
    name = family.name
    lines = [f"# HELP {name} {_escape_help(family.help)}\n"] if family.help else []
    lines.append(f"# TYPE {name} {family.type}\n")
    for labels, value in family.series:
        if isinstance(value, Histogram):
            lines.extend(_histogram_lines(name, labels, value))
        else:
            lines.append(f"{name}{_render_labels(labels)} {_render_number(value)}\n")
        if len(lines) >= LINES_PER_PIECE:
            yield "".join(lines)
            lines.clear()
    if lines:
        yield "".join(lines)


def _histogram_lines(name: str, labels: Labels, histogram: Histogram) -> Iterator[str]:
    total = 0
    for bound, count in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        total += count
        yield f"{name}_bucket{_render_labels((*labels, ('le', _render_bound(bound))))} {total}\n"
    rendered = _render_labels(labels)
    yield f"{name}_sum{rendered} {_render_number(histogram.sum)}\n"
    yield f"{name}_count{rendered} {total}\n"


def _render_labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{metric_name(name)}="{_escape_label(value)}"' for name, value in labels) + "}"


def _escape_label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escape_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _render_bound(bound: float) -> str:
    """Bounds keep their decimal point, `1.0`, because existing queries use it."""
    return "+Inf" if bound == math.inf else repr(float(bound))


def _render_number(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < MAX_EXACT_FLOAT else _render_fraction(value)


def _render_fraction(value: float) -> str:
    """Six decimal places, unless they would all be zeros."""
    return repr(round(value, 6) or value)
