"""Feature levels: which ones this release supports, and which ones a new cluster starts with.

A feature is advertised with the range of levels that are implemented, and finalized by a record in the
metadata log. Start at `SUPPORTED`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.core.features import KRAFT_VERSION, METADATA_VERSION

__all__ = [
    "DEPENDENCIES",
    "ELIGIBLE_LEADER_REPLICAS",
    "INITIAL_LEVELS",
    "KRAFT_VERSION",
    "METADATA_VERSION",
    "SUPPORTED",
    "FeatureRange",
]


class FeatureRange(NamedTuple):
    min: int
    max: int


ELIGIBLE_LEADER_REPLICAS: Final = "eligible.leader.replicas.version"

SUPPORTED: Final[dict[str, FeatureRange]] = {
    METADATA_VERSION: FeatureRange(7, 25),
    KRAFT_VERSION: FeatureRange(0, 0),
    "transaction.version": FeatureRange(0, 2),
    "group.version": FeatureRange(0, 1),
    ELIGIBLE_LEADER_REPLICAS: FeatureRange(0, 1),
    "share.version": FeatureRange(0, 0),
    "streams.version": FeatureRange(0, 0),
}
"""Keys are Kafka's names; level 25 is 4.0-IV3, 7 is 3.3-IV3."""

INITIAL_LEVELS: Final[dict[str, int]] = {METADATA_VERSION: 25}
"""The levels in an empty metadata log that was not formatted with other levels."""

DEPENDENCIES: Final[dict[tuple[str, int], dict[str, int]]] = {(ELIGIBLE_LEADER_REPLICAS, 1): {METADATA_VERSION: 23}}
"""For a feature and its level, the least levels of other features."""
