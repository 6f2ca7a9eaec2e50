"""Paths to fields: one name, or with syntax V2 names with dots between them. Start at `FieldPath`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.connect.api.errors import ConfigError
from moldau.connect.transforms.parts import field_value, get_field, require_map
from moldau.formats.registry.data_schema import DataField, DataSchema, Kind

__all__ = ["FieldPath"]


class FieldPath:
    """Where a field is."""

    def __init__(self, text: str, *, is_nested: bool) -> None:
        self.steps = _steps(text) if is_nested else [text]

    def in_map(self, value: Mapping[Any, Any]) -> Any:
        """The field of data without schema, None if there is none."""
        found: Any = value
        for step in self.steps:
            if found is None:
                return None
            found = require_map(found, "nested field access").get(step)
        return found

    def in_schema(self, schema: DataSchema) -> DataField | None:
        """The field of a schema, None if there is none."""
        field: DataField | None = None
        inside = schema
        for step in self.steps:
            field = get_field(inside, step) if inside.kind is Kind.STRUCT else None
            if field is None:
                return None
            inside = field.schema
        return field

    def in_struct(self, schema: DataSchema, value: Mapping[str, Any], *, uses_default: bool) -> Any:
        """The field of a struct, None if it or something around it is null."""
        found: Any = value
        inside = schema
        for step in self.steps:
            field = get_field(inside, step)
            if found is None or field is None:
                return None
            found, inside = field_value(field, found, uses_default=uses_default), field.schema
        return found


def _steps(text: str) -> list[str]:
    steps, position = [], 0
    while position <= len(text):
        if text[position : position + 1] == "`":
            end = position + 1
            while True:
                end = text.find("`", end)
                if end < 0:
                    raise ConfigError([f"Incomplete backtick pair in path: [{text}], consider adding one at the end"])
                # A backtick within a name is one that no dot and no end follows, or one with a backslash before it.
                if text[end - 1] == "\\" or (end + 1 < len(text) and text[end + 1] != "."):
                    end += 1
                    continue
                break
            steps.append(text[position + 1 : end].replace("\\`", "`"))
            position = end + 2
        else:
            end = text.find(".", position)
            end = len(text) if end < 0 else end
            steps.append(text[position:end])
            position = end + 1
    return steps
