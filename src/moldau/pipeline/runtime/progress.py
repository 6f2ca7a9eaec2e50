"""How far an exactly-once pipeline has come: what its sink stores together with a batch's results, all or nothing.

The Kafka sink keeps it in a compacted topic of the pipeline's own (`kafka.progress_topic`), another sink wherever it
can be written in one transaction with the rows. It never expires, as a group's offsets do a week after the pipeline
stopped. Start at `Progress`.
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
    """The checkpoint's offset log entry of the batch, word for word: with it the batch can be planned again. What it
    says about the sources is opaque here; `Source.position` reads it.
    """

    def covers(self, checkpoint: str | None, batch: int, entry: str) -> bool:
        """Whether a batch of a checkpoint is in the sink already.

        Raises `CheckpointMismatchError` where it is, but went to other offsets then: the checkpoint is not the one
        that this record was written with.
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
