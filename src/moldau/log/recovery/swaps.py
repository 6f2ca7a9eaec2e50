"""Leftover files in a partition's directory after a crash during a deletion or a cleaning.

    *.deleted   about to be deleted: removed
    *.cleaned   incomplete cleaner output: removed, the originals are still there
    *.swap      complete cleaner output: replaces the originals it covers
    *.tmp       an unfinished atomic write: removed

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
    """Finish or undo what was interrupted; return the file names that remain."""
    leftovers = [name for name in names if name.endswith(_LEFTOVERS)]
    if not leftovers:
        return list(names)
    cleaned = {parse_base_offset(name) for name in leftovers if name.endswith(".cleaned")}
    for name in leftovers:
        if not name.endswith(".swap"):
            files.unlink(f"{directory}/{name}")
    swapped = sorted({parse_base_offset(name) for name in leftovers if name.endswith(".log.swap")})
    for base_offset in swapped:
        # The files of a set are renamed from `.cleaned` to `.swap` one by one: while a `.cleaned` file is left, the
        # originals are untouched and the swap has not begun. Other sets may be in progress at the same time.
        if base_offset not in cleaned:
            _swap_in(files, directory, base_offset)
    for name in files.names(directory):
        if name.endswith(".swap"):
            files.unlink(f"{directory}/{name}")
    files.sync_directory(directory)
    return files.names(directory)


def _swap_in(files: Files, directory: str, base_offset: int) -> None:
    """Remove the originals that a complete swap covers, then rename it to its final name."""
    path = f"{directory}/{base_offset:020d}.log.swap"
    swap = Segment(files, directory, base_offset, size=files.size(path), suffix=".swap")
    end_offset = max(swap.end()[0], base_offset + 1)
    for name in files.names(directory):
        if name.endswith(EXTENSIONS) and base_offset <= parse_base_offset(name) < end_offset:
            files.unlink(f"{directory}/{name}")
    log.info("%s: completing an interrupted swap up to offset %d", path, end_offset)
    swap.release()
    swap.rename("")
