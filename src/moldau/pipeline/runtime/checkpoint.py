"""Spark's checkpoint of a pipeline, as far as we read it: which batches were planned, and how far each one goes.

Before a batch runs, Spark writes the offsets at which it ends; after it, that it is done. Whatever happens in between,
the same batch comes again with the same ends. Start at `Checkpoint`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from moldau.core.ids import TopicPartition
from moldau.pipeline.runtime.errors import CheckpointMismatchError
from moldau.pipeline.runtime.files import Files

__all__ = ["Checkpoint", "as_entry", "kafka_offsets", "source_lines"]

METADATA_LINES = 2
"""The version and the batch's settings come before a line for each source."""


class Checkpoint:
    """The log of a query's batches, at a path or URI."""

    def __init__(self, location: str, files: Files) -> None:
        self.location = location
        self._files = files

    @property
    def identity(self) -> str | None:
        """The query's id, given when it first started; None where it never did."""
        text = self._files.read(f"{self.location}/metadata")
        return None if not text else str(json.loads(text)["id"])

    @property
    def last_planned(self) -> int | None:
        return self._last("offsets")

    @property
    def last_committed(self) -> int | None:
        return self._last("commits")

    def entry(self, batch: int) -> str | None:
        """What Spark wrote down before the batch ran."""
        return self._files.read(f"{self.location}/offsets/{batch}")

    def restore_entry(self, batch: int, entry: str) -> None:
        """Plan a batch again as it was planned before."""
        self._files.write(f"{self.location}/offsets/{batch}", entry)

    def delete(self) -> None:
        self._files.delete(self.location)

    def _last(self, folder: str) -> int | None:
        return max(
            (int(name) for name in self._files.names(f"{self.location}/{folder}") if name.isdigit()), default=None
        )


def source_lines(entry: str) -> list[str]:
    """What an entry says about each source; the form is the source's own business."""
    return entry.splitlines()[METADATA_LINES:]


def as_entry(lines: Iterable[str]) -> str:
    """Lines of sources in the form of an entry, where Spark reports them otherwise."""
    return "\n" * METADATA_LINES + "\n".join(lines)


def kafka_offsets(lines: Iterable[str]) -> dict[TopicPartition, int]:
    """The next offset to read of each partition, from the lines of Kafka sources; others, such as clocks, are skipped.

    A topic that several sources read counts as far as the slowest of them has come.
    """
    ends: dict[TopicPartition, int] = {}
    for line in lines:
        # Sources may have names, written before their offsets; a source without data yet has none.
        opening = line.find("{")
        for topic, partitions in _parse_offsets(line[opening:]).items() if opening >= 0 else ():
            for number, offset in partitions.items():
                place = TopicPartition(topic, int(number))
                ends[place] = min(offset, ends.get(place, offset))
    return ends


def _parse_offsets(text: str) -> dict[str, dict[str, int]]:
    try:
        offsets = json.loads(text)
    except ValueError:
        raise CheckpointMismatchError(f"the checkpoint's offset log cannot be read: {text[:100]!r}") from None
    return {topic: of for topic, of in offsets.items() if isinstance(of, dict)}
