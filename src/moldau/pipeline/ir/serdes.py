"""How keys and values become bytes and come back.

A serde is an object with two methods; those here need nothing but the standard library and equal Kafka's own
(`StringSerde`, `LongSerde` and so on). `None` is never given to a serde: a null key or value stays null.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Protocol


class Serde(Protocol):
    """Bytes to value and back; `topic` lets a serde look its schema up by subject."""

    def serialize(self, topic: str, value: Any, /) -> bytes: ...

    def deserialize(self, topic: str, data: bytes, /) -> Any: ...
