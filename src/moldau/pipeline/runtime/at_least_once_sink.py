"""Results of a batch, at least once: rows first, then the group's offsets.

A batch that is interrupted is written again from its beginning. Start at `AtLeastOnceSink.deliver`.
"""

from __future__ import annotations

from moldau.pipeline.runtime.delivery import Delivery
from moldau.pipeline.runtime.group_presence import GroupPresence
from moldau.pipeline.runtime.results import Results
from moldau.pipeline.runtime.settings import StreamsSettings
from moldau.pipeline.runtime.sinks import Batch

__all__ = ["AtLeastOnceSink"]


class AtLeastOnceSink:
    """An idempotent producer; the presence commits offsets behind it."""

    def __init__(self, settings: StreamsSettings, presence: GroupPresence) -> None:
        self._delivery = Delivery(settings, {})
        self._presence = presence

    def deliver(self, results: Results, batch: Batch) -> int:
        """Write all rows, wait until they are stored, and let the offsets follow."""
        sent = self._delivery.send(results)
        self._delivery.flush()
        self._presence.commit_soon(batch.ends)
        return sent

    def refresh(self) -> None:
        """Nothing to do: the presence keeps the group's offsets."""

    def interrupt(self) -> None:
        self._delivery.interruptible.interrupt()

    def close(self) -> None:
        self._delivery.close()
