"""The metrics registry: families keyed by Kafka's MBean names, rendered as Prometheus text or JMX-like JSON.

Nothing is counted here. Families are built from plain counters at each scrape (`broker.metric_sources`), so the hot
paths only pay for an addition. `core.prometheus` writes them in small pieces, so that a broker with thousands of
partitions can serve requests in between. Start at `Metrics.render_prometheus`.

    kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=t   attribute Count
    kafka_server_brokertopicmetrics_bytesin_total{topic="t"}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from moldau.core.prometheus import Labels, MetricFamily, MetricType, Series, metric_name, render

__all__ = ["Distribution", "Family", "Kind", "Metrics", "Sample", "Tags", "mbean_matches"]

Tags = tuple[tuple[str, str], ...]
"""MBean properties after type and name, in Kafka's order and spelling."""

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
QUANTILE_LABELS = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
QUANTILE_ATTRIBUTES = (
    "50thPercentile",
    "75thPercentile",
    "95thPercentile",
    "98thPercentile",
    "99thPercentile",
    "999thPercentile",
)


class Kind(Enum):
    """The kind of metric, which determines its attributes and its Prometheus name."""

    GAUGE = "a number that goes up and down, attribute Value"
    METER = "a count that only grows, attribute Count and rates"
    PERCENT = "an idle or busy share between 0 and 1, attribute OneMinuteRate"
    HISTOGRAM = "times or sizes, attributes Count, Mean, Max and percentiles"
    ATTRIBUTE = "an attribute of a group, named by the family"
    TEXT = "a text, shown as a label on a constant 1"
    INFO = "several texts, shown as labels on a constant 1"
    PLAIN_GAUGE = "not an MBean: a Prometheus gauge under its own name"
    PLAIN_COUNTER = "not an MBean: a Prometheus counter under its own name"


@dataclass(frozen=True, slots=True)
class Distribution:
    """An exact count and a sample of recent values."""

    count: int
    recent: Sequence[float]


Value = float | str | Distribution | Mapping[str, str]


class Sample(NamedTuple):
    tags: Tags
    value: Value


class Family(NamedTuple):
    """All series of one name. `group` is `domain:type`, empty for plain Prometheus names."""

    group: str
    name: str
    kind: Kind
    help: str
    samples: Iterable[Sample]


Source = Callable[[], Iterable[Family]]


class Metrics:
    """The registered sources of metric families; one per broker."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._rates = _Rates()

    def add_source(self, source: Source) -> None:
        """Register a source to call at every scrape; each family name must come from one source only."""
        self._sources.append(source)

    def families(self) -> Iterator[Family]:
        for source in self._sources:
            yield from source()

    def render_prometheus(self) -> Iterator[str]:
        """The text for Prometheus, in pieces of a few hundred lines."""
        return render(made for family in self.families() for made in _prometheus_families(family))

    def jmx(self, pattern: str = "*:*", *, now_s: float = 0.0) -> Iterator[tuple[str, dict[str, Any]]]:
        """MBeans that match a JMX object name pattern, with their attributes; one name may be yielded several times."""
        for family in self.families():
            if not family.group:
                continue
            for sample in family.samples:
                name = _mbean(family, sample.tags)
                if mbean_matches(pattern, name):
                    yield name, _attributes(family, sample, self._rates, name, now_s)
        self._rates.drop_unseen(now_s)


# --- Prometheus -------------------------------------------------------------------------------------


def _prometheus_families(family: Family) -> Iterator[MetricFamily]:
    if family.kind is Kind.HISTOGRAM:
        yield from _distribution_families(family)
        return
    series = (_series(family, sample) for sample in family.samples)
    yield MetricFamily(_prometheus_name(family), _prometheus_type(family.kind), family.help, series)


def _series(family: Family, sample: Sample) -> Series:
    tags, value = sample
    if family.kind is Kind.TEXT:
        return Series((*_labels(tags), (family.name, str(value))), 1)
    if isinstance(value, Mapping):
        return Series((*_labels(tags), *value.items()), 1)
    assert isinstance(value, (int, float))
    return Series(_labels(tags), value)


def _distribution_families(family: Family) -> Iterator[MetricFamily]:
    """Kafka's histograms have quantiles instead of buckets; in Prometheus they become a counter and gauges."""
    name, text = _prometheus_name(family), family.help
    counts, quantiles, largest, means = (list[Series]() for _ in range(4))
    for tags, value in family.samples:
        assert isinstance(value, Distribution)
        ordered, labels = sorted(value.recent), _labels(tags)
        counts.append(Series(labels, value.count))
        largest.append(Series(labels, ordered[-1] if ordered else 0))
        means.append(Series(labels, _mean(ordered)))
        for q, shown in zip(QUANTILES, QUANTILE_LABELS, strict=True):
            quantiles.append(Series((*labels, ("quantile", shown)), _quantile(ordered, q)))
    yield MetricFamily(f"{name}_count", MetricType.COUNTER, text, counts)
    yield MetricFamily(name, MetricType.GAUGE, text, quantiles)
    yield MetricFamily(f"{name}_max", MetricType.GAUGE, text, largest)
    yield MetricFamily(f"{name}_mean", MetricType.GAUGE, text, means)


def _prometheus_name(family: Family) -> str:
    if not family.group:
        return family.name
    domain, _, kind = family.group.partition(":")
    name = family.name
    if family.kind is Kind.METER:
        name = f"{name.removesuffix('PerSec')}_total"
    elif family.kind is Kind.PERCENT:
        name = f"{name.removesuffix('Percent')}_percent"
    return metric_name("_".join((domain, kind, name) if name else (domain, kind)))


def _prometheus_type(kind: Kind) -> str:
    return MetricType.COUNTER if kind in (Kind.METER, Kind.PLAIN_COUNTER) else MetricType.GAUGE


def _labels(tags: Tags) -> Labels:
    """Label values without the quotes that MBeans put around values with special characters."""
    return tuple((key, value.strip('"')) for key, value in tags)


# --- JMX --------------------------------------------------------------------------------------------


def _mbean(family: Family, tags: Tags) -> str:
    domain, _, kind = family.group.partition(":")
    # Attributes of a group share one MBean; every other family has its own name.
    named = family.kind in (Kind.ATTRIBUTE, Kind.INFO) or not family.name
    own = () if named else (("name", family.name),)
    properties = ",".join(f"{key}={value}" for key, value in (("type", kind), *own, *tags))
    return f"{domain}:{properties}"


def _attributes(family: Family, sample: Sample, rates: _Rates, mbean: str, now_s: float) -> dict[str, Any]:
    value = sample.value
    if isinstance(value, Distribution):
        return _distribution_attributes(value)
    if isinstance(value, Mapping):
        return dict(value)
    if family.kind is Kind.METER:
        assert isinstance(value, (int, float))
        return {"Count": value, **rates.attributes(mbean, value, now_s)}
    if family.kind is Kind.PERCENT:
        return {"OneMinuteRate": value}
    if family.kind is Kind.ATTRIBUTE:
        return {family.name: value}
    return {"Value": value}


def _distribution_attributes(value: Distribution) -> dict[str, Any]:
    ordered = sorted(value.recent)
    mean = _mean(ordered)
    variance = sum((one - mean) ** 2 for one in ordered) / (len(ordered) - 1) if len(ordered) > 1 else 0.0
    return {
        "Count": value.count,
        "Min": ordered[0] if ordered else 0,
        "Max": ordered[-1] if ordered else 0,
        "Mean": mean,
        "StdDev": math.sqrt(variance),
        **{name: _quantile(ordered, q) for name, q in zip(QUANTILE_ATTRIBUTES, QUANTILES, strict=True)},
    }


class _Rates:
    """Rates over one, five and fifteen minutes, computed from the counts at earlier scrapes."""

    WINDOWS = (("OneMinuteRate", 60), ("FiveMinuteRate", 300), ("FifteenMinuteRate", 900))
    LONGEST_S = 900
    SPACING_S = 5

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[float, float]]] = {}
        self._dropped_s = 0.0

    def drop_unseen(self, now_s: float) -> None:
        """Drop series not scraped within the longest window, such as those of deleted topics."""
        if now_s - self._dropped_s >= self.LONGEST_S:
            self._dropped_s = now_s
            self._seen = {name: seen for name, seen in self._seen.items() if seen[-1][0] > now_s - self.LONGEST_S}

    def attributes(self, series: str, count: float, now_s: float) -> dict[str, float]:
        seen = self._seen.setdefault(series, [])
        while len(seen) > 1 and seen[1][0] <= now_s - self.LONGEST_S:
            seen.pop(0)
        rates = {name: self._rate(seen, count, now_s, window) for name, window in self.WINDOWS}
        if not seen or now_s - seen[-1][0] >= self.SPACING_S:
            seen.append((now_s, count))
        first_s, first_count = seen[0]
        rates["MeanRate"] = (count - first_count) / (now_s - first_s) if now_s > first_s else 0.0
        return rates

    @staticmethod
    def _rate(seen: Sequence[tuple[float, float]], count: float, now_s: float, window_s: int) -> float:
        """The rate since the newest sample that is at least `window_s` old, or else since the oldest one."""
        older = [one for one in seen if one[0] <= now_s - window_s]
        since_s, then = older[-1] if older else (seen[0] if seen else (now_s, count))
        return (count - then) / (now_s - since_s) if now_s > since_s else 0.0


def mbean_matches(pattern: str, name: str) -> bool:
    """Match JMX object name patterns: `*` and `?` in the domain and in values, a lone `*` for more properties."""
    if pattern in ("", "*", "*:*"):
        return True
    domain_pattern, _, properties_pattern = pattern.partition(":")
    domain, _, properties = name.partition(":")
    if not fnmatchcase(domain, _literal_brackets(domain_pattern)):
        return False
    wanted = [part for part in properties_pattern.split(",") if part]
    is_open = "*" in wanted
    asked = dict(part.partition("=")[::2] for part in wanted if part != "*")
    had = dict(part.partition("=")[::2] for part in properties.split(","))
    if asked.keys() - had.keys() or (not is_open and had.keys() - asked.keys()):
        return False
    return all(fnmatchcase(had[key], _literal_brackets(value)) for key, value in asked.items())


def _literal_brackets(pattern: str) -> str:
    return pattern.replace("[", "[[]")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _quantile(ordered: Sequence[float], q: float) -> float:
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)]
