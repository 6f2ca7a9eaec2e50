"""Making snapshots as the metadata grows: every node does it for itself, beside its other work."""

from __future__ import annotations

import asyncio
import logging

from moldau.controller.image import MetadataImage
from moldau.controller.metadata_log import MetadataLog
from moldau.controller.replay import ImageDelta

__all__ = ["SnapshotMaker"]

log = logging.getLogger(__name__)


class SnapshotMaker:
    """Subscribe it to the controller; one snapshot at a time is written, in a thread."""

    def __init__(self, metadata_log: MetadataLog) -> None:
        self._log = metadata_log
        self._making: asyncio.Task[None] | None = None

    async def __call__(self, delta: ImageDelta) -> None:
        self.consider(delta.image)

    def consider(self, image: MetadataImage) -> None:
        """Begin a snapshot if one is due; at start too, so that frequent restarts stay quick."""
        if self._making is None and self._log.is_snapshot_due(image):
            self._making = asyncio.ensure_future(self._make(image))

    async def finish(self) -> None:
        """Wait for a snapshot under way, before the log is closed."""
        if self._making is not None:
            await self._making

    async def _make(self, image: MetadataImage) -> None:
        try:
            snapshot = await asyncio.get_running_loop().run_in_executor(None, self._log.save_snapshot, image)
            self._log.trim()
            log.info("metadata snapshot up to offset %d written", snapshot.end_offset)
        except Exception:
            log.exception("a metadata snapshot could not be written; the log goes on without it")
        finally:
            self._making = None
