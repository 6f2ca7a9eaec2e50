"""Garbage collection of a process that runs for long: rare, and without the objects that were made at its start."""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["settle_garbage_collection"]

# A collection traverses live objects: freezing the start-up heap keeps it short, a high threshold keeps it rare.
THRESHOLDS: Final = (50_000, 20, 20)


def settle_garbage_collection() -> None:
    """Call it once everything that lives until the end has been made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
