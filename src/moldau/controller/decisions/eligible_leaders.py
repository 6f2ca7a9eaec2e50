"""Eligible leader replicas (KIP-966): whether a cluster keeps them, and what that asks of `min.insync.replicas`.

Which replicas are eligible depends on that setting, so the cluster has one value for all brokers, kept in the metadata,
and a change of it clears the sets. What becomes of a partition is `controller.decisions.partition_changes`.
Start at `enabling`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moldau.controller.errors import RefusedError
from moldau.controller.features import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION
from moldau.controller.image import CLUSTER_DEFAULT, ConfigResource, ConfigResourceType, MetadataImage
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_records import ClearElrRecord, ConfigRecord, FeatureLevelRecord, MetadataRecord

__all__ = ["MIN_ISR", "clearing", "enabling", "first_records", "has_eligible_leaders", "min_isr_of"]

MIN_ISR: Final = "min.insync.replicas"
FIRST_METADATA_VERSION: Final = 25
"""The metadata.version from which a new cluster begins with them."""


def has_eligible_leaders(image: MetadataImage) -> bool:
    """Whether the cluster keeps eligible leader replicas."""
    return image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0


def min_isr_of(image: MetadataImage, topic: str) -> int:
    """A topic's `min.insync.replicas`, in a cluster that keeps eligible leader replicas."""
    value = image.topic_config(topic).get(MIN_ISR) or image.cluster_config.get(MIN_ISR)
    return int(value) if value else 1


def enabling(image: MetadataImage, min_isr: int) -> list[MetadataRecord]:
    """The records besides the feature's: one value for all brokers, by default the one of the controller's file."""
    records: list[MetadataRecord] = [
        _min_isr(resource.name, None)
        for resource, settings in image.configs.items()
        if resource.type == ConfigResourceType.BROKER and resource.name and MIN_ISR in settings
    ]
    if MIN_ISR not in image.cluster_config:
        records.append(_min_isr(CLUSTER_DEFAULT.name, str(min_isr)))
    return records


def first_records(given: Sequence[MetadataRecord], min_isr: int) -> list[MetadataRecord]:
    """What a new cluster begins with besides what it was formatted with, unless that says otherwise."""
    levels = {one.name: one.feature_level for one in given if isinstance(one, FeatureLevelRecord)}
    if levels.get(METADATA_VERSION, 0) < FIRST_METADATA_VERSION or not levels.get(ELIGIBLE_LEADER_REPLICAS, 1):
        return []
    return [
        FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1),
        *enabling(MetadataImage(), min_isr),
    ]


def clearing(image: MetadataImage, resource: ConfigResource, changed: Sequence[str]) -> list[MetadataRecord]:
    """The records that go with a change of settings; raises `RefusedError` if it may not be.

    With another `min.insync.replicas` a leader may commit without replicas that were eligible.
    """
    if MIN_ISR not in changed or not has_eligible_leaders(image):
        return []
    if resource.type == ConfigResourceType.BROKER and resource.name:
        text = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        raise RefusedError(ErrorCode.INVALID_CONFIG, text)
    return [ClearElrRecord(topic_name=resource.name)]


def _min_isr(resource_name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ConfigResourceType.BROKER, resource_name=resource_name, name=MIN_ISR, value=value)
