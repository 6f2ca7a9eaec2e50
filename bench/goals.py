"""What the whole broker should keep of the prototype's lead over Apache Kafka, as ratios of one run.

A ratio is always moldau divided by Kafka: above one is better for rates, below one for time, memory and CPU.
Start at `GOALS`.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GOALS", "Goal"]


@dataclass(frozen=True)
class Goal:
    ratio: float
    is_at_least: bool

    def is_met_by(self, ratio: float) -> bool:
        return ratio >= self.ratio if self.is_at_least else ratio <= self.ratio

    def __str__(self) -> str:
        return f"≥ {self.ratio:g}×" if self.is_at_least else f"≤ 1/{1 / self.ratio:.0f}"


def at_least(ratio: float) -> Goal:
    return Goal(ratio, is_at_least=True)


def at_most(ratio: float) -> Goal:
    return Goal(ratio, is_at_least=False)


GOALS: dict[tuple[str, str], Goal] = {
    ("produce-1k", "mb_per_s"): at_least(2.5),
    ("produce-1k-idempotent", "mb_per_s"): at_least(2.5),
    ("produce-100", "mb_per_s"): at_least(1.1),
    ("consume-1k", "mb_per_s"): at_least(1.5),
    ("consume-100", "mb_per_s"): at_least(1.0),
    ("requests-10", "requests_per_s"): at_least(1.3),
    ("latency-1k", "p99_ms"): at_most(1 / 3),
    ("produce-1k", "cpu_s_per_gb"): at_most(1 / 3),
    ("consume-1k", "cpu_s_per_gb"): at_most(1 / 3),
    ("fresh", "startup_s"): at_most(1 / 5),
    ("fresh", "idle_mb"): at_most(1 / 5),
    ("fresh", "loaded_mb"): at_most(1 / 5),
    ("cluster-produce-1k", "mb_per_s"): at_least(1.5),
    ("cluster-produce-1k", "cpu_s_per_gb"): at_most(1 / 2),
    ("cluster-latency-1k", "p99_ms"): at_most(1 / 2),
    ("cluster-memory", "loaded_mb"): at_most(1 / 5),
    ("cluster-kill", "beyond_s"): at_most(1 / 2),
    ("cluster-start", "start_s"): at_most(1 / 3),
}
