"""Counts and times of requests, and what a service tells about itself, in Prometheus' text form.

Start at `HttpMetrics`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping

__all__ = ["PROMETHEUS_TEXT", "HttpMetrics"]

PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Gauges = Callable[[], Mapping[str, float]]


class HttpMetrics:
    """One service's numbers. `prefix` begins every name; `gauges` are asked when somebody looks."""

    def __init__(self, prefix: str, gauges: Gauges = dict) -> None:
        self._prefix = prefix
        self._gauges = gauges
        self._requests: dict[tuple[str, str, int], int] = {}
        self._times: dict[tuple[str, str], list[float]] = {}

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        key = (method, path, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        times = self._times.get((method, path))
        if times is None:
            times = self._times[method, path] = [0.0] * (len(BOUNDS_S) + 2)
        times[bisect_left(BOUNDS_S, seconds)] += 1
        times[-1] += seconds

    def render(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        name = f"{self._prefix}_http_requests_total"
        yield f"# TYPE {name} counter"
        for (method, path, status), count in sorted(self._requests.items()):
            yield f'{name}{{method="{method}",path="{path}",status="{status}"}} {count}'
        yield from self._histograms(f"{self._prefix}_http_request_seconds")
        for gauge, value in self._gauges().items():
            yield f"# TYPE {self._prefix}_{gauge} gauge"
            yield f"{self._prefix}_{gauge} {value:g}"

    def _histograms(self, name: str) -> Iterator[str]:
        yield f"# TYPE {name} histogram"
        for (method, path), times in sorted(self._times.items()):
            labels = f'method="{method}",path="{path}"'
            total = 0.0
            for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), times, strict=False):
                total += count
                yield f'{name}_bucket{{{labels},le="{bound}"}} {total:g}'
            yield f"{name}_sum{{{labels}}} {times[-1]:.6f}"
            yield f"{name}_count{{{labels}}} {total:g}"
