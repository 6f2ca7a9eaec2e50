"""The registry's wire format: a magic byte, the schema's id, and a body in the schema's format. Start at `parse_frame`.

Apart from `values`, so that whoever handles no schemas does not load what parses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from moldau.schemas.errors import InvalidValueError

__all__ = ["Frame", "frame_value", "parse_frame"]

_ID_MAGIC: Final = 0
_GUID_MAGIC: Final = 1


@dataclass(frozen=True, slots=True)
class Frame:
    """A record's key or value, split into body and schema. Either `schema_id` or `guid` is set."""

    body: bytes
    schema_id: int | None = None
    guid: str | None = None


def frame_value(schema_id: int, body: bytes) -> bytes:
    """The bytes of a record's key or value."""
    if not 0 <= schema_id < 2**32:
        raise InvalidValueError(f"{schema_id} is not a schema id: it has to fit into four bytes")
    return bytes([_ID_MAGIC]) + schema_id.to_bytes(4, "big") + body


def parse_frame(payload: bytes) -> Frame:
    """Split a record's key or value; raises `InvalidValueError` if it does not name its schema."""
    if len(payload) >= 5 and payload[0] == _ID_MAGIC:
        return Frame(payload[5:], schema_id=int.from_bytes(payload[1:5], "big"))
    if len(payload) >= 17 and payload[0] == _GUID_MAGIC:
        return Frame(payload[17:], guid=str(UUID(bytes=payload[1:17])))
    if payload[:1] in (b"\x00", b"\x01"):
        raise InvalidValueError(f"{len(payload)} bytes are too few for data with a schema id before it")
    raise InvalidValueError("Unknown magic byte! The data were not written with a schema of a registry")
