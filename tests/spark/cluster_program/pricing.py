"""What a program of several files keeps beside its topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Rates", "with_tax"]


@dataclass(frozen=True)
class Rates:
    """Per cent, by kind."""

    percent: Mapping[str, int]


def with_tax(order: str, rates: Rates) -> str:
    kind, _, cents = order.partition(":")
    return f"{kind}:{int(cents) * (100 + rates.percent[kind]) // 100}"
