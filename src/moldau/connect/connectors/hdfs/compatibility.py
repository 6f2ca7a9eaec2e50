"""Schemas that change while files are open: which record begins a new file, and which is projected.

| mode | a record with another schema |
|---|---|
| NONE | begins a new file |
| BACKWARD, FULL | with a newer version begins a new file; with an older one is projected to the file's schema |
| FORWARD | with an older version begins a new file; with a newer one is projected |

Start at `Compatibility`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.connect.api.errors import DataError
from moldau.connect.api.schemas import DataSchema, Kind
from moldau.formats.registry.data_schema import NO_DEFAULT

__all__ = ["Compatibility"]

WIDER = [Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.FLOAT32, Kind.FLOAT64]


class Compatibility:
    """The rules of `schema.compatibility`."""

    def __init__(self, mode: str) -> None:
        self.mode = mode.upper()

    def needs_new_file(self, current: DataSchema | None, found: DataSchema | None) -> bool:
        """Whether a record with the schema `found` cannot go into a file with the schema `current`."""
        if current is found or current == found:
            return False
        if self.mode == "NONE" or current is None or found is None:
            return True
        if current.version is None or found.version is None:
            raise DataError(
                f"schema.compatibility={self.mode} needs schemas with versions, and these have none; use a converter "
                "that keeps versions, or schema.compatibility=NONE"
            )
        return found.version < current.version if self.mode == "FORWARD" else found.version > current.version

    def projected(self, current: DataSchema | None, found: DataSchema | None, value: Any) -> Any:
        """The value of a record as the file's schema has it."""
        if current is found or current is None or found is None or current == found:
            return value
        return project(found, current, value)


def project(source: DataSchema, target: DataSchema, value: Any) -> Any:
    """A value of one schema as another has it: missing fields get their default; raises `DataError`."""
    if value is None:
        if target.is_optional:
            return None
        if target.default is not NO_DEFAULT:
            return target.default
        raise DataError("a null cannot be projected to a schema that is neither optional nor has a default")
    if source.kind is not target.kind:
        if source.kind in WIDER and target.kind in WIDER and WIDER.index(source.kind) < WIDER.index(target.kind):
            return float(value) if target.kind in (Kind.FLOAT32, Kind.FLOAT64) else value
        raise DataError(f"Schema type mismatch. source type: {source.kind.value} and target type: {target.kind.value}")
    match target.kind:
        case Kind.STRUCT:
            return _project_struct(source, target, value)
        case Kind.ARRAY:
            return [project(source.element, target.element, one) for one in value]
        case Kind.MAP:
            return {key: project(source.element, target.element, one) for key, one in value.items()}
    return value


def _project_struct(source: DataSchema, target: DataSchema, value: Mapping[str, Any]) -> dict[str, Any]:
    known = {field.name: field.schema for field in source.fields}
    made = {}
    for field in target.fields:
        if field.name in known:
            made[field.name] = project(known[field.name], field.schema, value.get(field.name))
        elif field.schema.default is not NO_DEFAULT:
            made[field.name] = field.schema.default
        elif field.schema.is_optional:
            made[field.name] = None
        else:
            raise DataError(f"Required field `{field.name}` is missing from source schema")
    return made
