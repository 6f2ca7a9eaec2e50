"""Prometheus metrics of requests, of the service itself and of its process. Start at `HttpMetrics`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping

from moldau.core.prometheus import Histogram, MetricFamily, MetricType, Series, render
from moldau.http.process_metrics import process_families

__all__ = ["HttpMetrics"]

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Gauges = Callable[[], Mapping[str, float]]
Families = Callable[[], Iterable[MetricFamily]]


class HttpMetrics:
    """The metrics of one service. `prefix` starts every name; `gauges` and `families` are called at each scrape."""

    def __init__(self, prefix: str, gauges: Gauges = dict, families: Families = tuple) -> None:
        """`gauges` are numbers by name, without prefix; `families` are metrics with labels or of another type."""
        self._prefix = prefix
        self._gauges = gauges
        self._families = families
        self._requests: dict[tuple[str, str, int], int] = {}
        self._times: dict[tuple[str, str], _Times] = {}

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one request by the path of its endpoint; its time ends when the answer starts."""
        key = (method, path, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        times = self._times.get((method, path))
        if times is None:
            times = self._times[method, path] = _Times()
        times.add(seconds)

    def render(self) -> str:
        return "".join(render(self.families()))

    def families(self) -> Iterator[MetricFamily]:
        requests = [
            Series((("method", method), ("path", path), ("status", str(status))), count)
            for (method, path, status), count in sorted(self._requests.items())
        ]
        times = [
            Series((("method", method), ("path", path)), times.histogram())
            for (method, path), times in sorted(self._times.items())
        ]
        name = f"{self._prefix}_http_request"
        yield MetricFamily(f"{name}s_total", MetricType.COUNTER, "Requests answered, by status.", requests)
        yield MetricFamily(f"{name}_seconds", MetricType.HISTOGRAM, "Time until an answer begins.", times)
        for gauge, value in self._gauges().items():
            yield MetricFamily(f"{self._prefix}_{gauge}", MetricType.GAUGE, "", [Series((), value)])
        yield from self._families()
        yield from process_families()


class _Times:
    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_S, seconds)] += 1
        self._sum += seconds

    def histogram(self) -> Histogram:
        return Histogram(BOUNDS_S, tuple(self._counts), self._sum)
