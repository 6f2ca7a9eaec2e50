"""Subscriptions and assignments that members of a classic consumer group exchange.

To a broker these are opaque bytes; tools that describe groups decode them. An int16 version and classic fields; bytes
after the known fields come from a newer version and are ignored. Start at `decode_assignment`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from moldau.protocol.field_reader import DAMAGE, Cursor
from moldau.protocol.record_schemas import MalformedRecordError, array_of, record_codec, wire

__all__ = [
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "PartitionsOfTopic",
    "decode_assignment",
    "decode_subscription",
]

_INT16: Final = struct.Struct(">h")
NEWEST: Final = 3
Content = TypeVar("Content")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsOfTopic:
    topic: str = wire("string")
    partitions: tuple[int, ...] = array_of("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProtocolSubscription:
    topics: tuple[str, ...] = array_of("string")
    user_data: bytes | None = wire("bytes", is_nullable=True)
    owned_partitions: tuple[PartitionsOfTopic, ...] = array_of(PartitionsOfTopic, since=1)
    generation_id: int = wire("int32", since=2, default=-1)
    rack_id: str | None = wire("string", is_nullable=True, since=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProtocolAssignment:
    assigned_partitions: tuple[PartitionsOfTopic, ...] = array_of(PartitionsOfTopic)
    user_data: bytes | None = wire("bytes", is_nullable=True)


def decode_subscription(data: bytes) -> tuple[int, ConsumerProtocolSubscription]:
    """The version read and the content; raises `MalformedRecordError`."""
    return _decode(ConsumerProtocolSubscription, data)


def decode_assignment(data: bytes) -> tuple[int, ConsumerProtocolAssignment]:
    """The version read and the content; raises `MalformedRecordError`."""
    return _decode(ConsumerProtocolAssignment, data)


def _decode(kind: type[Content], data: bytes) -> tuple[int, Content]:
    if len(data) < _INT16.size:
        raise MalformedRecordError(f"{kind.__name__}: {len(data)} bytes have no version")
    version: int = min(_INT16.unpack_from(data)[0], NEWEST)
    if version < 0:
        raise MalformedRecordError(f"{kind.__name__}: version {version}")
    codec = record_codec(_any(kind), version, is_flexible=False)
    try:
        content: Content = codec.read(Cursor(data, _INT16.size))
    except DAMAGE as error:
        raise MalformedRecordError(f"{kind.__name__} v{version}: {error}") from None
    return version, content


def _any(kind: Any) -> Any:
    return kind
