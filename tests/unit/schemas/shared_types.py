"""Schemas of a few kilobytes in which every type is used twice by the one above it, in all three formats.

Whoever walks them use by use instead of type by type needs 2 to the power of the levels steps. Start at `SHARED`.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["LEVELS", "SHARED", "avro_levels", "json_levels", "protobuf_levels"]

LEVELS = 40


def avro_levels(leaf: str, levels: int = LEVELS) -> str:
    record: dict[str, Any] = {"type": "record", "name": "L0", "fields": [{"name": "x", "type": leaf}]}
    for level in range(1, levels + 1):
        fields = [{"name": "a", "type": record}, {"name": "b", "type": f"L{level - 1}"}]
        record = {"type": "record", "name": f"L{level}", "fields": fields}
    return json.dumps(record)


def json_levels(leaf: str, levels: int = LEVELS) -> str:
    definitions: dict[str, Any] = {"L0": {"type": leaf}}
    for level in range(1, levels + 1):
        below = {"$ref": f"#/definitions/L{level - 1}"}
        definitions[f"L{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    return json.dumps({"definitions": definitions, "$ref": f"#/definitions/L{levels}"})


def protobuf_levels(leaf: str, levels: int = LEVELS) -> str:
    messages = [f"message L{n} {{ L{n - 1} a = 1; map<string, L{n - 1}> b = 2; }}" for n in range(levels, 0, -1)]
    return "\n".join(['syntax = "proto3";', *messages, f"message L0 {{ {leaf} x = 1; }}"])


SHARED = {
    "AVRO": (avro_levels("int"), avro_levels("string")),
    "JSON": (json_levels("integer"), json_levels("string")),
    "PROTOBUF": (protobuf_levels("int32"), protobuf_levels("string")),
}
"""By type: a schema, and one that is at odds with it in the innermost type."""
