"""The base of all stores: a name, the serialization of keys and values, and a flush. Start at `Store`."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from moldau.pipeline.cores.records import Window
from moldau.pipeline.cores.serialization import Decode, Encode, decoder, encoder, is_plain
from moldau.pipeline.ir.nodes import Materialization

__all__ = ["Codec", "Store", "StoreChange", "codec_of"]


def _encode_nothing(value: Any) -> bytes:
    return b""


class Codec(NamedTuple):
    """How a store serializes keys and values; `is_plain` values may be held as objects."""

    encode_key: Encode
    decode_key: Decode
    encode_value: Encode
    decode_value: Decode
    is_plain: bool
    explain_key: Encode = _encode_nothing
    """The serde's slow path, which checks the value and raises a clear error."""
    explain_value: Encode = _encode_nothing
    is_checked: bool = False
    """Whether values are of the right types already, so that a plain one may be held without trying to serialize it."""


def codec_of(table: Materialization, topic: str) -> Codec:
    """The codec of a materialisation; `topic` is the changelog topic's name, for serdes with schemas."""
    return Codec(
        encoder(table.key_serde, topic),
        decoder(table.key_serde, topic),
        encoder(table.value_serde, topic),
        decoder(table.value_serde, topic),
        is_plain(table.value_serde),
        partial(table.key_serde.serialize, topic),
        partial(table.value_serde.serialize, topic),
        bool(getattr(table.value_serde, "is_checked", False)),
    )


class StoreChange(NamedTuple):
    """An entry that was written, for copies of the store that answer queries; a value of None deletes."""

    key: bytes
    value: bytes | None
    timestamp: int | None
    window: Window | None


class Store:
    """A part of a task's state, with a name that is unique in its topology."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_queryable = False
        """Whether flushes return what they wrote."""

    def flush(self) -> list[StoreChange]:
        """Write to the backend what changed since the last flush, and return it."""
        raise NotImplementedError
