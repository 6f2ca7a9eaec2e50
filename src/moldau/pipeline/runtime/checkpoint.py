"""Reads Spark's checkpoint of a pipeline: which batches were planned, and the offsets at which each one ends.

Spark writes a batch's end offsets before it runs the batch, and a commit entry after it. If the batch fails in between,
Spark runs the same batch again with the same end offsets. Start at `Checkpoint`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from moldau.core.ids import TopicPartition
from moldau.pipeline.runtime.errors import CheckpointMismatchError
from moldau.pipeline.runtime.files import Files

__all__ = ["Checkpoint", "as_entry", "kafka_offsets", "source_lines"]

METADATA_LINES = 2
"""Each entry has two lines, the version and the batch's settings, before one line per source."""


class Checkpoint:
    """The offset log of a query's batches, at a path or URI."""

    def __init__(self, location: str, files: Files) -> None:
        self.location = location
        self._files = files

    @property
    def identity(self) -> str | None:
        """The query's id, assigned at its first start; None if it was never started."""
        text = self._files.read(f"{self.location}/metadata")
        return None if not text else str(json.loads(text)["id"])

    @property
    def last_planned(self) -> int | None:
        return self._last("offsets")

    @property
    def last_committed(self) -> int | None:
        return self._last("commits")

    def entry(self, batch: int) -> str | None:
        """The entry that Spark wrote before the batch ran."""
        return self._files.read(f"{self.location}/offsets/{batch}")

    def restore_entry(self, batch: int, entry: str) -> None:
        """Write a batch's earlier entry again, so that Spark plans the same batch."""
        self._files.write(f"{self.location}/offsets/{batch}", entry)

    def delete(self) -> None:
        self._files.delete(self.location)

    def _last(self, folder: str) -> int | None:
        return max(
            (int(name) for name in self._files.names(f"{self.location}/{folder}") if name.isdigit()), default=None
        )


def source_lines(entry: str) -> list[str]:
    """The lines of an entry, one per source; their format is defined by the source."""
    return entry.splitlines()[METADATA_LINES:]


def as_entry(lines: Iterable[str]) -> str:
    """Source lines as an entry, for use when Spark reports them in another form."""
    return "\n" * METADATA_LINES + "\n".join(lines)


def kafka_offsets(lines: Iterable[str]) -> dict[TopicPartition, int]:
    """The next offset to read of each partition, from the lines of Kafka sources; others, such as clocks, are skipped.

    If several sources read a topic, the lowest of their offsets is used.
    """
    ends: dict[TopicPartition, int] = {}
    for line in lines:
        # Sources may have names, written before their offsets; a source without data yet has no offsets.
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
