"""The progress of an exactly-once pipeline, which its sink stores atomically with a batch's results.

The Kafka sink keeps it in a compacted topic that only this pipeline uses (`kafka.progress_topic`); another sink keeps
it wherever it can be written in one transaction with the rows. It never expires, unlike a group's offsets, which expire
a week after the pipeline stopped. Start at `Progress`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from moldau.pipeline.runtime.checkpoint import source_lines
from moldau.pipeline.runtime.errors import CheckpointMismatchError

__all__ = ["Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The last batch whose results are in the sink."""

    checkpoint: str
    """The id of the checkpoint that the batch belongs to."""
    batch: int
    entry: str
    """The checkpoint's unchanged offset log entry of the batch, from which the batch can be planned again. Its source
    lines are opaque here; `Source.position` decodes them.
    """

    def covers(self, checkpoint: str | None, batch: int, entry: str) -> bool:
        """Whether a batch of a checkpoint is already in the sink.

        Raises `CheckpointMismatchError` if it is, but with other end offsets: then this record was written with another
        checkpoint.
        """
        if checkpoint != self.checkpoint or batch > self.batch:
            return False
        if batch == self.batch and source_lines(entry) != source_lines(self.entry):
            raise CheckpointMismatchError(
                f"batch {batch} was committed with other offsets than this checkpoint plans for it; "
                "the state directory was changed or restored from an older copy"
            )
        return True

    def encode(self) -> bytes:
        facts = {"version": 1, "checkpoint": self.checkpoint, "batch": self.batch, "entry": self.entry}
        return json.dumps(facts).encode()

    @classmethod
    def decode(cls, data: bytes) -> Progress:
        facts = json.loads(data)
        return cls(facts["checkpoint"], facts["batch"], facts["entry"])
