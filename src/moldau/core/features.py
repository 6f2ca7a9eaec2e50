"""Names of feature levels, and the kinds of their changes. Start at `UpgradeType`."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["KRAFT_VERSION", "METADATA_VERSION", "UpgradeType"]

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
"""The quorum's own feature: 1 if its voters are kept in its log."""


class UpgradeType(IntEnum):
    """The kind of change that a client allows, with the numbers of UpdateFeatures."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3
