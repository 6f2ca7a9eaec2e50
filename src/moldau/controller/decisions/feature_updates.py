"""Changes of feature levels: decides from the image alone whether a cluster may go to other levels.

All levels of a request are changed, or none. The texts are Kafka's: operators look for them. Start at
`decide_feature_updates`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from moldau.controller.decisions.eligible_leaders import enabling
from moldau.controller.errors import RefusedError
from moldau.controller.features import (
    DEPENDENCIES,
    ELIGIBLE_LEADER_REPLICAS,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED,
    FeatureRange,
)
from moldau.controller.image import MetadataImage
from moldau.core.errors import ErrorCode
from moldau.core.features import UpgradeType
from moldau.protocol.metadata_records import ClearElrRecord, FeatureLevelRecord, MetadataRecord

__all__ = ["FeatureUpdate", "Updater", "decide_feature_updates"]

UNSUPPORTED: Final = FeatureRange(0, 0)
OTHER_RECORDS: Final = frozenset({8, 11, 13, 14, 15, 17, 23})
"""The levels of metadata.version that brought records, or fields of records, which the level before does not know."""
FAILED: Final = "The update failed for all features since the following feature had an error: "


class FeatureUpdate(NamedTuple):
    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


class Updater(NamedTuple):
    """The controller that decides: its id, its level of the quorum's own feature, and its `min.insync.replicas`."""

    node_id: int
    kraft_version: int
    min_isr: int


def decide_feature_updates(
    image: MetadataImage, updates: Sequence[FeatureUpdate], updater: Updater
) -> list[MetadataRecord]:
    """The records that change the levels; raises `RefusedError` if one of them may not be changed."""
    wanted = {**image.features, **{one.name: one.level for one in updates}}
    records: list[MetadataRecord] = []
    for one in updates:
        reason = _refusal(image, one, wanted, updater)
        if reason is not None:
            raise RefusedError(ErrorCode.INVALID_UPDATE_VERSION, FAILED + reason)
        if one.level != _current(image, one.name, updater):
            records += _changing(image, one, updater)
    return records


def _current(image: MetadataImage, name: str, updater: Updater) -> int:
    return updater.kraft_version if name == KRAFT_VERSION else image.features.get(name, 0)


def _changing(image: MetadataImage, update: FeatureUpdate, updater: Updater) -> list[MetadataRecord]:
    records: list[MetadataRecord] = [FeatureLevelRecord(name=update.name, feature_level=update.level)]
    if update.name == ELIGIBLE_LEADER_REPLICAS:
        # Without the feature leaders commit without those that were eligible.
        records += enabling(image, updater.min_isr) if update.level else [ClearElrRecord(topic_name="")]
    return records


def _refusal(image: MetadataImage, update: FeatureUpdate, wanted: Mapping[str, int], updater: Updater) -> str | None:
    """Why this level may not be set, or `None`."""
    name, level, upgrade_type = update
    current = _current(image, name, updater)
    reason = _unsupported(image, name, level, updater.node_id) or _wrong_direction(update, current)
    if reason is None and name == METADATA_VERSION:
        return _lost_metadata(current, level, upgrade_type)
    if reason is None:
        reason = _quorum_refusal(current, level) if name == KRAFT_VERSION else _unmet_dependency(name, level, wanted)
    return None if reason is None else f"Invalid update version {level} for feature {name}. {reason}"


def _unsupported(image: MetadataImage, name: str, level: int, node_id: int) -> str | None:
    if level < 0:
        return "A feature version cannot be less than 0."
    if name == KRAFT_VERSION:
        return _outside(level, f"Local controller {node_id}", FeatureRange(0, 1))
    here = _outside(level, f"Local controller {node_id}", SUPPORTED.get(name, UNSUPPORTED))
    brokers = (
        _outside(level, f"Broker {broker.node_id}", FeatureRange(*broker.features.get(name, UNSUPPORTED)))
        for broker in image.brokers.values()
    )
    return here or next(filter(None, brokers), None)


def _outside(level: int, who: str, supported: FeatureRange) -> str | None:
    if supported.min <= level <= supported.max:
        return None
    if supported.max == 0:
        return f"{who} does not support this feature."
    levels = f"{supported.min}-{supported.max}" if supported.min < supported.max else str(supported.min)
    return f"{who} only supports versions {levels}"


def _wrong_direction(update: FeatureUpdate, current: int) -> str | None:
    if update.upgrade_type not in tuple(UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.level < current and update.upgrade_type == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if update.level > current and update.upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _lost_metadata(current: int, level: int, upgrade_type: int) -> str | None:
    """Why metadata.version may not go back to this level: records may be in the log that it does not know."""
    if not any(one in OTHER_RECORDS for one in range(level + 1, current + 1)):
        return None
    what = f"Unsupported metadata.version downgrade from {current} to {level}. "
    if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        return what + "Unsafe metadata downgrade is not supported in this version."
    return what + "Refusing to perform the requested downgrade because it might delete metadata information."


def _quorum_refusal(current: int, level: int) -> str | None:
    if level < current:
        return "Can't downgrade the version of this feature."
    if level > current:
        return (
            "The voters of this quorum are fixed by controller.quorum.voters; a quorum keeps them in its log if its "
            "controllers were formatted with --standalone or --initial-controllers."
        )
    return None


def _unmet_dependency(name: str, level: int, wanted: Mapping[str, int]) -> str | None:
    if name not in SUPPORTED:
        return f"Feature {name} not found."
    for needed, least in DEPENDENCIES.get((name, level), {}).items():
        if wanted.get(needed, 0) < least:
            return f"{name} could not be set to {level} because it depends on {needed} level {least}"
    return None
