"""Path and query parameters that endpoints share."""

from __future__ import annotations

import re

from moldau.http.endpoints import Parameter, flag, number, text

__all__ = [
    "CONTEXT",
    "DELETED",
    "DELETED_ONLY",
    "FIND_TAGS",
    "FORMAT",
    "NORMALIZE",
    "PAGE",
    "PERMANENT",
    "REFERENCE_FORMAT",
    "parts_of",
]

CONTEXT = Parameter(
    "context", "A context such as `.lab`.", {"type": "string", "minLength": 1, "pattern": "^\\.[a-z]+$"}
)
_PARTS = (
    CONTEXT,
    Parameter("subject", "A subject, plain or qualified as `:.context:name`.", {"type": "string", "minLength": 1}),
    Parameter(
        "version",
        "A number from 1, or `latest`.",
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
                {"type": "string", "enum": ["latest", "-1"]},
            ]
        },
    ),
    Parameter("id", "A schema's id.", {"type": "integer", "format": "int32"}),
    Parameter("guid", "A schema's guid.", {"type": "string", "format": "uuid"}),
)
_PART_BY_NAME = {part.name: part for part in _PARTS}

DELETED = flag("deleted", "Whether soft-deleted ones count.")
DELETED_ONLY = flag("deletedOnly", "Only soft-deleted ones.")
NORMALIZE = flag("normalize", "Whether the schema is put in its normal form first.")
PERMANENT = flag("permanent", "Whether it goes for good; a soft delete must come first.")
FORMAT = text("format", "Avro: `resolved`; Protobuf: `serialized`, `ignore_extensions`; else the stored text.")
REFERENCE_FORMAT = text("referenceFormat", "`qualified` spells out the context of references.")
FIND_TAGS = Parameter("findTags", "Accepted, and passed over.", {"type": "string"}, is_repeatable=True)
PAGE = (number("offset", "How many to leave out.", 0), number("limit", "How many to give; -1 for all.", -1))


def parts_of(path: str) -> dict[str, Parameter]:
    """The parameters of a path; a name has the same meaning in all paths."""
    return {name: _PART_BY_NAME[name] for name in re.findall(r"\{(\w+)\}", path)}
