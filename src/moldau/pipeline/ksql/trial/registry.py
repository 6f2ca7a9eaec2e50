"""A schema registry in memory: no HTTP, no compatibility rules. Start at `MemoryRegistry`.

It is a source of schemas for codecs and serdes; `prepare` registers what the description of a topic holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from moldau.formats.format import format_named
from moldau.schemas.parsed_schema import ParsedSchema
from moldau.schemas.schema import parse
from moldau.serdes.schema_source import RegisteredSchema, SchemaText, UnfitValueError

__all__ = ["MemoryRegistry"]


class MemoryRegistry:
    """Schemas by id and by subject."""

    def __init__(self) -> None:
        self._by_id: dict[int | str, RegisteredSchema] = {}
        self._subjects: dict[str, list[RegisteredSchema]] = {}

    # What codecs ask

    def schema(self, name: int | str) -> RegisteredSchema:
        found = self._by_id.get(name)
        if found is None:
            raise UnfitValueError(f"there is no schema {name}")
        return found

    def latest(self, subject: str) -> RegisteredSchema | None:
        versions = self._subjects.get(subject)
        return versions[-1] if versions else None

    def registered(self, subject: str, schema: SchemaText, *, may_register: bool) -> RegisteredSchema:
        known = next(
            (
                one
                for one in self._by_id.values()
                if one.parsed.canonical == schema.text and one.parsed.schema_type == schema.schema_type
            ),
            None,
        )
        parsed = known.parsed if known is not None else parse(schema.schema_type, schema.text)
        return self._add(subject, parsed, None if known is None else known.id)

    def parsed_name(self, schema: SchemaText) -> str | None:
        return parse(schema.schema_type, schema.text).name

    # What the description of a topic says

    def prepare(self, topic: Mapping[str, Any]) -> None:
        """Register the schemas of a topic's keys and values."""
        for part in ("key", "value"):
            if f"{part}Schema" not in topic:
                continue
            references = topic.get(f"{part}SchemaReferences", ())
            given = {one["name"]: _text(one["schema"]) for one in references}
            schema_type = _schema_type(topic.get(f"{part}Format"))
            parsed = parse(schema_type, _text(topic[f"{part}Schema"]), given)
            self._add(f"{topic['name']}-{part}", parsed, topic.get(f"{part}SchemaId"))

    def _add(self, subject: str, parsed: ParsedSchema, schema_id: int | None) -> RegisteredSchema:
        if schema_id is None:
            same = [
                one.id
                for one in self._by_id.values()
                if one.parsed.canonical == parsed.canonical and one.parsed.schema_type == parsed.schema_type
            ]
            schema_id = same[0] if same else max((one.id for one in self._by_id.values()), default=0) + 1
        found = RegisteredSchema(schema_id, parsed)
        self._by_id[schema_id] = found
        versions = self._subjects.setdefault(subject, [])
        versions[:] = [one for one in versions if one.id != schema_id]
        versions.append(found)
        return found


def _text(schema: Any) -> str:
    """Protobuf is given as text, the others as JSON; an Avro primitive is given by its bare name."""
    if isinstance(schema, str):
        is_proto = "message" in schema or "syntax" in schema
        return schema if is_proto or schema.startswith(("{", "[", '"')) else json.dumps(schema)
    return json.dumps(schema, default=float)


def _schema_type(name: Any) -> str:
    if name is None:
        return "AVRO"
    found = format_named(str(name)).schema_type
    # Some descriptions call JSON_SR by the registry's own name for the type.
    return "JSON" if found is None else str(found)
