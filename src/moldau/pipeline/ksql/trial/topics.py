"""Topics in memory; `registry` is their schema registry. Start at `MemoryTopics`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["MemoryRecord", "MemoryTopics"]


@dataclass
class MemoryRecord:
    """A record of a topic, as bytes."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass
class MemoryTopics:
    """Topics with one log each."""

    counts: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Of the topics that statements made."""
    logs: dict[str, list[MemoryRecord]] = field(default_factory=dict)

    def partitions(self, topic: str) -> int | None:
        return self.counts.get(topic)

    def create(self, topic: str, partitions: int, replicas: int, settings: Mapping[str, str]) -> None:
        self.counts[topic] = partitions
        self.settings[topic] = settings

    def delete(self, topic: str) -> None:
        self.counts.pop(topic, None)

    def append(self, topic: str, record: MemoryRecord) -> None:
        self.logs.setdefault(topic, []).append(record)

    def log(self, topic: str) -> list[MemoryRecord]:
        return self.logs.get(topic, [])
