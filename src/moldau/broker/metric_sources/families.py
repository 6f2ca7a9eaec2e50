"""Constructors of metric families, shared by all sources."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.broker.metrics import Family, Kind, Sample

__all__ = ["attribute", "gauge", "meter", "plain", "plain_counter"]


def gauge(group: str, name: str, value: float, text: str) -> Family:
    return Family(group, name, Kind.GAUGE, text, [Sample((), value)])


def meter(group: str, name: str, value: float, text: str) -> Family:
    return Family(group, name, Kind.METER, text, [Sample((), value)])


def attribute(group: str, name: str, value: float, text: str) -> Family:
    return Family(group, name, Kind.ATTRIBUTE, text, [Sample((), value)])


def plain(name: str, samples: Iterable[Sample] | float, text: str) -> Family:
    return Family("", name, Kind.PLAIN_GAUGE, text, _samples(samples))


def plain_counter(name: str, samples: Iterable[Sample] | float, text: str) -> Family:
    return Family("", name, Kind.PLAIN_COUNTER, text, _samples(samples))


def _samples(samples: Iterable[Sample] | float) -> Iterable[Sample]:
    return [Sample((), samples)] if isinstance(samples, (int, float)) else samples
