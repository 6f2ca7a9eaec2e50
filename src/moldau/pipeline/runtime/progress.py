"""How far an exactly-once application has come, written with each batch's results and in the same transaction.

The record lives in a compacted topic of the application's own, so it never expires, as a group's offsets do a week
after the application stopped. Start at `Progress`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.core.ids import TopicPartition
from moldau.pipeline.runtime.checkpoint import end_offsets
from moldau.pipeline.runtime.errors import CheckpointMismatchError

__all__ = ["TOPIC_CONFIGS", "Progress", "progress_topic"]

TOPIC_CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    # A record for each batch: many, of which only the last one counts.
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}


def progress_topic(application_id: str) -> str:
    """The topic that holds an application's progress."""
    return f"{application_id}-progress"


@dataclass(frozen=True, slots=True)
class Progress:
    """The last batch whose results are in Kafka."""

    checkpoint: str
    """The id of the checkpoint that the batch belongs to."""
    batch: int
    entry: str
    """The checkpoint's offset log entry of the batch, word for word: with it the batch can be planned again."""

    @property
    def ends(self) -> dict[TopicPartition, int]:
        return end_offsets(self.entry)

    def covers(self, checkpoint: str | None, batch: int, entry: str) -> bool:
        """Whether a batch of a checkpoint is in Kafka already.

        Raises `CheckpointMismatchError` where it is, but went to other offsets then: the checkpoint is not the one
        that this record was written with.
        """
        if checkpoint != self.checkpoint or batch > self.batch:
            return False
        if batch == self.batch and end_offsets(entry) != self.ends:
            raise CheckpointMismatchError(
                f"batch {batch} was committed with other offsets than this checkpoint plans for it; "
                "the state directory was changed or restored from an older copy"
            )
        return True

    def encoded(self) -> bytes:
        facts = {"version": 1, "checkpoint": self.checkpoint, "batch": self.batch, "entry": self.entry}
        return json.dumps(facts).encode()

    @classmethod
    def decoded(cls, data: bytes) -> Progress:
        facts = json.loads(data)
        return cls(facts["checkpoint"], facts["batch"], facts["entry"])
