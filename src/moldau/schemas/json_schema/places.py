"""Places in JSON Schemas and what a `$ref` there leads to, within the schema or into its references.

Nothing is fetched from anywhere: a `$ref` to what the schema was not given is an error. Start at `Place`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urldefrag, urljoin

from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
from referencing import Registry, Resource
from referencing.exceptions import NoSuchAnchor, PointerToNowhere, Unresolvable

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.json_schema.drafts import Draft
from moldau.schemas.json_text import Json

if TYPE_CHECKING:
    from referencing._core import Resolver

__all__ = ["Place", "root_place", "subschemas"]

_MAX_HOPS: Final = 100

_ONE: Final = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_MAPS: Final = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A schema inside a document: its JSON, and what relative references in it are relative to."""

    raw: Json
    resolver: Resolver[Json]
    draft: Draft

    def inner(self, raw: Json) -> Place:
        """A schema written inside this one."""
        identifier = "id" if self.draft.number == 4 else "$id"
        if isinstance(raw, dict) and isinstance(raw.get(identifier), str):
            resource = self.draft.specification.create_resource(raw)
            return Place(raw, self.resolver.in_subresource(resource), self.draft)
        return Place(raw, self.resolver, self.draft)

    @property
    def reference(self) -> str | None:
        """Where it points, if it points somewhere. A dynamic reference is taken for the plain one it defaults to."""
        if not isinstance(self.raw, dict):
            return None
        return next((self.raw[key] for key in _REFERENCES if isinstance(self.raw.get(key), str)), None)

    def followed(self) -> Place:
        """What the reference here points to, or a clear refusal when that is nothing."""
        reference = self.reference
        assert reference is not None
        try:
            resolved = self.resolver.lookup(reference)
        except (Unresolvable, NoSuchAnchor, PointerToNowhere, ValueError):
            raise InvalidSchemaError(
                f"Invalid JSON Schema: the reference {reference!r} leads nowhere: neither this schema nor "
                "one of its references defines it"
            ) from None
        if not isinstance(resolved.contents, dict | bool):
            raise InvalidSchemaError(f"Invalid JSON Schema: the reference {reference!r} leads to what is no schema")
        contents = resolved.contents
        names_draft = isinstance(contents, dict) and "$schema" in contents
        return Place(contents, resolved.resolver, Draft.of(contents) if names_draft else self.draft)

    def settled(self) -> Place:
        """This place, or the end of a chain of references when it consists of nothing but one."""
        place = self
        for _ in range(_MAX_HOPS):
            if place.reference is None or (place.draft.number >= 2019 and _says_more(place.raw)):
                return place
            place = place.followed()
        raise InvalidSchemaError(f"Invalid JSON Schema: the reference {self.reference!r} leads back to itself")


def root_place(schema: Json, draft: Draft, references: Mapping[str, Json]) -> Place:
    """The place of a whole schema, from which `references` can be reached by the names they were given."""
    specification = draft.specification
    root: Resource[Json] = specification.create_resource(schema)
    base = root.id() or ""
    registry: Registry[Json] = REGISTRY
    for name, document in references.items():
        resource: Resource[Json] = Draft.of(document).specification.create_resource(document)
        for uri in {urldefrag(name).url, urldefrag(urljoin(base, name)).url} - {""}:
            registry = registry.with_resource(uri, resource)
    return Place(schema, registry.resolver_with_root(root), draft)


def subschemas(place: Place) -> Iterator[Place]:
    """Every schema written directly inside the one at `place`."""
    raw = place.raw
    if not isinstance(raw, dict):
        return
    for key in _ONE:
        if isinstance(raw.get(key), dict | bool):
            yield place.inner(raw[key])
    for key in _LISTS:
        if isinstance(raw.get(key), list):
            yield from (place.inner(item) for item in raw[key])
    for key in _MAPS:
        if isinstance(raw.get(key), dict):
            yield from (place.inner(item) for item in raw[key].values() if isinstance(item, dict | bool))


_SILENT: Final = frozenset(
    {
        *_REFERENCES,
        "$anchor",
        "$comment",
        "$defs",
        "$dynamicAnchor",
        "$id",
        "$recursiveAnchor",
        "$schema",
        "$vocabulary",
    }
    | {"default", "definitions", "deprecated", "description", "examples", "id", "readOnly", "title", "writeOnly"}
)


def _says_more(raw: Json) -> bool:
    """Whether a schema with a reference constrains values by more than it (drafts before 2019 ignore the rest)."""
    return any(key not in _SILENT for key in raw)
