"""Leftovers in a partition's directory: what a crash in the middle of a deletion or a cleaning left behind.

    *.deleted   on their way out: gone
    *.cleaned   cleaner output that was not complete: gone, the originals are still there
    *.swap      cleaner output that is complete: it takes the place of the originals it covers
    *.tmp       half of an atomic write: gone

Start at `finish_swaps`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.log.files import Files
from moldau.log.segments.segment import EXTENSIONS, Segment, parse_base_offset

__all__ = ["finish_swaps"]

log = logging.getLogger("moldau.log")

_LEFTOVERS = (".deleted", ".cleaned", ".swap", ".tmp")


def finish_swaps(files: Files, directory: str, names: Sequence[str]) -> list[str]:
    """Finish or undo what was interrupted; return the names that are there afterwards."""
    leftovers = [name for name in names if name.endswith(_LEFTOVERS)]
    if not leftovers:
        return list(names)
    cleaned = {parse_base_offset(name) for name in leftovers if name.endswith(".cleaned")}
    for name in leftovers:
        if not name.endswith(".swap"):
            files.unlink(f"{directory}/{name}")
    swapped = sorted({parse_base_offset(name) for name in leftovers if name.endswith(".log.swap")})
    for base_offset in swapped:
        # A set is renamed from `.cleaned` to `.swap` file by file: while one of the former is left, the
        # originals are untouched and the swap has not begun. Other sets may be in the making meanwhile.
        if base_offset not in cleaned:
            _swap_in(files, directory, base_offset)
    for name in files.names(directory):
        if name.endswith(".swap"):
            files.unlink(f"{directory}/{name}")
    files.sync_directory(directory)
    return files.names(directory)


def _swap_in(files: Files, directory: str, base_offset: int) -> None:
    """Remove the originals that a complete swap covers, then give it its final name."""
    path = f"{directory}/{base_offset:020d}.log.swap"
    swap = Segment(files, directory, base_offset, size=files.size(path), suffix=".swap")
    end_offset = max(swap.end()[0], base_offset + 1)
    for name in files.names(directory):
        if name.endswith(EXTENSIONS) and base_offset <= parse_base_offset(name) < end_offset:
            files.unlink(f"{directory}/{name}")
    log.info("%s: completing an interrupted swap up to offset %d", path, end_offset)
    swap.release()
    swap.rename("")
