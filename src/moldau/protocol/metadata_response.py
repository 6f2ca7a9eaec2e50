"""Metadata responses, versions 0 to 13: a hand-written encoder, because a cluster's topics are told whole and often.

Topics are encoded one by one, so that whoever answers can keep the bytes of those that did not change. Partitions that
look alike (the same brokers, the same error) share what is encoded. Everything else of this API, requests too, is
`protocol.messages`. Start at `encode_metadata_response`.

    version  adds
    1        rack, controller id, internal flag
    2        cluster id
    3        throttle time
    5        offline replicas
    7        leader epochs
    8        authorized operations of topics; those of the cluster up to version 10
    9        flexible encoding
    10       topic ids
    12       topics without a name
    13       a top-level error
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from typing import Final, NamedTuple

from moldau.protocol.hot_fields import NodeEndpoint, encode_compact_string, encode_string, encode_uvarint

__all__ = ["MetadataPartition", "PartitionEncoder", "encode_metadata_response", "encode_metadata_topic"]

FIRST_FLEXIBLE: Final = 9
NO_ID: Final = bytes(16)

_INT16: Final = struct.Struct(">h").pack
_INT32: Final = struct.Struct(">i").pack
_PARTITION: Final = struct.Struct(">hii").pack
_PARTITION_WITH_EPOCH: Final = struct.Struct(">hiii").pack


class MetadataPartition(NamedTuple):
    error_code: int
    number: int
    leader_id: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline_replicas: Sequence[int]


class PartitionEncoder:
    """Encodes the partitions of one version and remembers the lists of brokers, of which there are few."""

    __slots__ = ("_has_epochs", "_has_offline", "_is_flexible", "_known")

    def __init__(self, version: int) -> None:
        self._has_epochs = version >= 7
        self._has_offline = version >= 5
        self._is_flexible = version >= FIRST_FLEXIBLE
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], bytes] = {}

    def encode(self, partition: MetadataPartition) -> bytes:
        error_code, number, leader_id, leader_epoch, replicas, isr, offline = partition
        key = (tuple(replicas), tuple(isr), tuple(offline))
        brokers = self._known.get(key)
        if brokers is None:
            brokers = self._known[key] = self._encode_brokers(*key)
        if self._has_epochs:
            return _PARTITION_WITH_EPOCH(error_code, number, leader_id, leader_epoch) + brokers
        return _PARTITION(error_code, number, leader_id) + brokers

    def _encode_brokers(self, replicas: Sequence[int], isr: Sequence[int], offline: Sequence[int]) -> bytes:
        lists = (replicas, isr, offline) if self._has_offline else (replicas, isr)
        encoded = b"".join(
            _count(len(ids), is_flexible=self._is_flexible) + struct.pack(f">{len(ids)}i", *ids) for ids in lists
        )
        return encoded + b"\0" if self._is_flexible else encoded


def encode_metadata_topic(
    version: int,
    *,
    error_code: int,
    name: str | None,
    topic_id: uuid.UUID | None,
    is_internal: bool,
    partitions: Sequence[bytes],
    operations: int,
) -> bytes:
    """One topic, its partitions already encoded; a name may be missing from version 12 on and is empty before."""
    is_flexible = version >= FIRST_FLEXIBLE
    parts = [_INT16(error_code), _string(name if version >= 12 else name or "", is_flexible=is_flexible)]
    if version >= 10:
        parts.append(NO_ID if topic_id is None else topic_id.bytes)
    if version >= 1:
        parts.append(b"\x01" if is_internal else b"\0")
    parts.append(_count(len(partitions), is_flexible=is_flexible))
    parts += partitions
    if version >= 8:
        parts.append(_INT32(operations))
    if is_flexible:
        parts.append(b"\0")
    return b"".join(parts)


def encode_metadata_response(
    version: int,
    *,
    brokers: Sequence[NodeEndpoint],
    cluster_id: str | None,
    controller_id: int,
    topics: Sequence[bytes],
    operations: int,
    error_code: int = 0,
) -> bytes:
    """The response's body, its topics already encoded."""
    is_flexible = version >= FIRST_FLEXIBLE
    parts = [_INT32(0)] if version >= 3 else []
    parts.append(_count(len(brokers), is_flexible=is_flexible))
    parts += [_broker(version, one) for one in brokers]
    if version >= 2:
        parts.append(_string(cluster_id, is_flexible=is_flexible))
    if version >= 1:
        parts.append(_INT32(controller_id))
    parts.append(_count(len(topics), is_flexible=is_flexible))
    parts += topics
    if 8 <= version <= 10:
        parts.append(_INT32(operations))
    if version >= 13:
        parts.append(_INT16(error_code))
    if is_flexible:
        parts.append(b"\0")
    return b"".join(parts)


def _broker(version: int, broker: NodeEndpoint) -> bytes:
    is_flexible = version >= FIRST_FLEXIBLE
    encoded = _INT32(broker.node_id) + _string(broker.host, is_flexible=is_flexible) + _INT32(broker.port)
    if version >= 1:
        encoded += _string(broker.rack, is_flexible=is_flexible)
    return encoded + b"\0" if is_flexible else encoded


def _string(text: str | None, *, is_flexible: bool) -> bytes:
    return encode_compact_string(text) if is_flexible else encode_string(text)


def _count(length: int, *, is_flexible: bool) -> bytes:
    return encode_uvarint(length + 1) if is_flexible else _INT32(length)
