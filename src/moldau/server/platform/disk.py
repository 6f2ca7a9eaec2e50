"""Whether the disk under the platform's folder has room left. Start at `lack_of_room`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

__all__ = ["lack_of_room"]

LEAST_BYTES: Final = 16 * 1024 * 1024
"""With less, logs and the status of services can no longer be written reliably."""


def lack_of_room(folder: Path) -> str | None:
    """What is wrong and what helps if the disk is full; None if it is not."""
    try:
        free = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
    except OSError:
        return None  # whoever writes there will tell what is wrong
    if free >= LEAST_BYTES:
        return None
    return f"the disk is full ({free // 2**20} MB left): make room in {folder}, or records are refused"
