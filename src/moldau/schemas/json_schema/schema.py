"""A parsed JSON Schema and how to get one. Start at `parse_json_schema`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.json_schema.drafts import Draft, check
from moldau.schemas.json_schema.places import Place, ReferenceEnds, root_place, subschemas
from moldau.schemas.json_text import Json, load, render, sorted_keys
from moldau.schemas.parsed_schema import ParsedSchema, References, SchemaType

__all__ = ["JsonSchema", "parse_json_schema"]


class JsonSchema:
    """One JSON Schema with the documents that its `$ref`s may point to."""

    schema_type = SchemaType.JSON

    def __init__(self, raw: Json, references: Mapping[str, JsonSchema]) -> None:
        self.raw = raw
        self.draft = Draft.of(raw)
        self._references = references

    @property
    def references(self) -> Mapping[str, ParsedSchema]:
        return self._references

    @cached_property
    def canonical(self) -> str:
        return render(self.raw)

    @property
    def name(self) -> str | None:
        title = self.raw.get("title") if isinstance(self.raw, dict) else None
        return title if isinstance(title, str) else None

    @property
    def top_level_fields(self) -> frozenset[str]:
        properties = self.raw.get("properties") if isinstance(self.raw, dict) else None
        return frozenset(properties) if isinstance(properties, dict) else frozenset()

    def check_field_names(self) -> None:
        waiting = [self.root]
        while waiting:
            place = waiting.pop()
            properties = place.raw.get("properties") if isinstance(place.raw, dict) else None
            for name in properties if isinstance(properties, dict) else ():
                if name.startswith("$$"):
                    raise InvalidSchemaError(
                        f"Invalid JSON Schema: the property {name!r} begins with the reserved '$$'"
                    )
            waiting.extend(subschemas(place))

    @cached_property
    def documents(self) -> Mapping[str, Json]:
        """Every schema it can refer to, directly or indirectly, by name."""
        found: dict[str, Json] = {}
        for name, reference in self._references.items():
            found.update(reference.documents)
            found[name] = reference.raw
        return found

    @cached_property
    def root(self) -> Place:
        """The place of the whole schema."""
        return root_place(self.raw, self.draft, self.documents)

    def normalized(self) -> JsonSchema:
        return JsonSchema(sorted_keys(self.raw), self._references)

    def render(self, format: str | None) -> str:
        """The canonical text, the only format of JSON Schema."""
        return self.canonical

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JsonSchema):
            return NotImplemented
        return self.canonical == other.canonical and self._references == other._references

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __repr__(self) -> str:
        return f"JsonSchema({self.canonical})"


def parse_json_schema(text: str, references: References | None = None, *, validate: bool = True) -> JsonSchema:
    """Return the schema `text` describes. `validate` also checks it against its draft and follows every `$ref`."""
    raw = _load_json(text, "JSON Schema")
    schema = JsonSchema(raw, _parse_references(references or {}))
    if validate:
        check(raw, schema.draft)
        _follow_references(schema.root)
    return schema


def _load_json(text: str, what: str) -> Json:
    raw = load(text, what)
    if not isinstance(raw, dict | bool):
        raise InvalidSchemaError(f"Invalid JSON Schema: {what} must be an object or a boolean")
    return raw


def _parse_references(references: References) -> dict[str, JsonSchema]:
    """Parse references given as texts. They may refer to each other in any order, even in cycles."""
    parsed: dict[str, JsonSchema] = {}
    for name, reference in references.items():
        if isinstance(reference, str):
            parsed[name] = JsonSchema(_load_json(reference, f"reference {name!r}"), {})
        elif isinstance(reference, JsonSchema):
            parsed[name] = reference
        else:
            raise InvalidSchemaError(
                f"reference {name!r} is a schema of type {reference.schema_type}; "
                "a JSON Schema can refer to JSON Schemas only"
            )
    return parsed


def _follow_references(root: Place) -> None:
    waiting, ends = [root], ReferenceEnds()
    while waiting:
        place = waiting.pop()
        if place.reference is not None:
            place.target()
            ends.end_of(place)
        waiting.extend(subschemas(place))
