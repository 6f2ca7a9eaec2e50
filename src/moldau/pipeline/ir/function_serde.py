"""A serde made of two functions, for values that no other serde knows. Start at `FunctionSerde`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from moldau.pipeline.ir.errors import SerdeError
from moldau.pipeline.ir.serdes import shown
from moldau.pipeline.ir.type_variables import V

__all__ = ["FunctionSerde"]


@dataclass(frozen=True, slots=True)
class FunctionSerde(Generic[V]):
    """What `encode` (value) writes and `decode` (bytes) reads; neither is ever called with None."""

    encode: Callable[[V], bytes]
    decode: Callable[[bytes], V]

    def serialize(self, topic: str, value: V, /) -> bytes:
        try:
            return self.encode(value)
        except Exception as error:
            raise SerdeError(f"{shown(value)} cannot be written: {type(error).__name__}: {error}") from error

    def deserialize(self, topic: str, data: bytes, /) -> V:
        try:
            return self.decode(data)
        except Exception as error:
            raise SerdeError(f"{shown(data)} cannot be read: {type(error).__name__}: {error}") from error
