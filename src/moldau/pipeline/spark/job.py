"""What a compiler needs to know beside the topology: the application's settings and how to read its topics.

Made by `pipeline.runtime`, which knows clusters and checkpoints. Start at `Job`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.pipeline.ir.nodes import OffsetReset

__all__ = ["Job", "SourceOptions"]

SourceOptions = Callable[[tuple[str, ...], str | None, OffsetReset | None], dict[str, str]]
"""All options of a Kafka source: of these topics, or of a pattern, with this reset where the topology names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One application on one cluster."""

    application_id: str
    partition_counts: Mapping[str, int]
    """Of every topic that is read or written."""
    settings: Mapping[str, Any]
    """The application's configuration, by Kafka's keys."""
    source_options: SourceOptions
