"""The content types of versions 1 and 2, and which version and format a request means. Pure. Start at `V2`."""

from __future__ import annotations

import re
from typing import Final

from moldau.http.negotiation import MediaTypes

__all__ = [
    "ANY_VERSION",
    "EMBEDDED_V1",
    "EMBEDDED_V2",
    "FORMATS_V1",
    "FORMATS_V2",
    "SERVICE",
    "V1",
    "V1_PRODUCE",
    "V1_READ",
    "V2",
    "V2_PRODUCE",
    "V2_READ",
    "embedded_format",
    "embedded_type",
]

FORMATS_V1: Final = ("binary", "avro", "json")
FORMATS_V2: Final = ("binary", "json", "avro", "jsonschema", "protobuf")
JSON, PLAIN = "application/json", "application/vnd.kafka+json"
V1_TYPE, V2_TYPE = "application/vnd.kafka.v1+json", "application/vnd.kafka.v2+json"


def embedded_type(embedded: str, version: int) -> str:
    return f"application/vnd.kafka.{embedded}.v{version}+json"


EMBEDDED_V1: Final = tuple(embedded_type(name, 1) for name in FORMATS_V1)
EMBEDDED_V2: Final = tuple(embedded_type(name, 2) for name in FORMATS_V2)
_UNVERSIONED = tuple(f"application/vnd.kafka.{name}+json" for name in FORMATS_V1)
_V1_BODIES = frozenset({V1_TYPE, PLAIN, JSON, "application/octet-stream", *EMBEDDED_V1, *_UNVERSIONED})
_V2_BODIES = frozenset({V2_TYPE, *EMBEDDED_V2})


def _produced(*media_types: str) -> dict[str, float]:
    return dict.fromkeys(media_types, 1.0)


V1: Final = MediaTypes(_produced(V1_TYPE, PLAIN, JSON), _V1_BODIES)
"""Calls of version 1 without records."""
V2: Final = MediaTypes(_produced(V2_TYPE, PLAIN, JSON), _V2_BODIES | {JSON, PLAIN, "application/octet-stream"})
"""Calls of version 2 without records."""
ANY_VERSION: Final = MediaTypes(_produced(V1_TYPE, V2_TYPE, PLAIN, JSON), _V1_BODIES | _V2_BODIES)
"""Calls that are the same in both versions."""
V1_PRODUCE: Final = MediaTypes(_produced(V1_TYPE, PLAIN, JSON, *EMBEDDED_V1), _V1_BODIES)
V2_PRODUCE: Final = MediaTypes(_produced(V2_TYPE, PLAIN, JSON, *EMBEDDED_V2), frozenset(EMBEDDED_V2))
V1_READ: Final = MediaTypes(_produced(*EMBEDDED_V1, *_UNVERSIONED, V1_TYPE, PLAIN, JSON), _V1_BODIES)
V2_READ: Final = MediaTypes(_produced(*EMBEDDED_V2, V2_TYPE, PLAIN, JSON), _V2_BODIES)
SERVICE: Final = MediaTypes(_produced(JSON, V2_TYPE, V1_TYPE, PLAIN), frozenset({JSON}))
"""Everything else; errors are answered in these."""

_EMBEDDED = re.compile(r"application/vnd\.kafka\.(binary|json|avro|jsonschema|protobuf)(\.v[12])?\+json")


def embedded_format(media_type: str | None) -> str | None:
    """The format of records that a content type names; `None` if it names none."""
    found = _EMBEDDED.fullmatch((media_type or "").partition(";")[0].strip().lower())
    return found.group(1) if found else None
