"""Types and columns in the words of DESCRIBE: `VARCHAR(STRING)`, `BIGINT (primary key)`. Start at `field_table`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moldau.cli.ksql.rendering.tables import table

__all__ = ["field_table", "type_text"]


def type_text(schema: Mapping[str, Any]) -> str:
    """A SchemaInfo as text."""
    match schema["type"]:
        case "STRING":
            return "VARCHAR(STRING)"
        case "DECIMAL":
            parameters = schema.get("parameters") or {}
            return f"DECIMAL({parameters.get('precision')}, {parameters.get('scale')})" if parameters else "DECIMAL"
        case "ARRAY":
            return f"ARRAY<{type_text(schema['memberSchema'])}>"
        case "MAP":
            return f"MAP<STRING, {type_text(schema['memberSchema'])}>"
        case "STRUCT":
            fields = ", ".join(f"{one['name']} {type_text(one['schema'])}" for one in schema["fields"])
            return f"STRUCT<{fields}>"
        case name:
            return str(name)


def field_table(fields: Sequence[Mapping[str, Any]], *, is_table: bool, window_type: str | None) -> list[str]:
    """The columns of a source or query with their types; keys and headers are marked."""
    rows = []
    for one in fields:
        mark = _mark(one, is_table=is_table, window_type=window_type)
        text = type_text(one["schema"])
        rows.append([one["name"], f"{text:<16} {mark}" if mark else text])
    return table(["Field", "Type"], rows)


def _mark(field: Mapping[str, Any], *, is_table: bool, window_type: str | None) -> str:
    match field.get("type"):
        case "KEY":
            window = f" (Window type: {window_type})" if window_type else ""
            return ("(primary key)" if is_table else "(key)") + window
        case "HEADER":
            key = field.get("headerKey")
            return f"(header('{key}'))" if key else "(headers)"
        case "SYSTEM":
            return "(system)"
        case _:
            return ""
