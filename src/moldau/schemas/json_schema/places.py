"""Places in JSON Schemas, and the targets of a `$ref` there, in the schema itself or in its references.

Nothing is fetched: a `$ref` to a document that was not given with the schema is an error. Start at `Place`.
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

__all__ = ["Place", "ReferenceEnds", "root_place", "subschemas"]

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
    """A schema inside a document: its JSON, and the resolver for relative references in it."""

    raw: Json
    resolver: Resolver[Json]
    draft: Draft

    def inner(self, raw: Json) -> Place:
        """The place of a schema nested in this one."""
        if isinstance(raw, dict) and isinstance(raw.get(_identifier(self.draft)), str):
            resource = self.draft.specification.create_resource(raw)
            return Place(raw, self.resolver.in_subresource(resource), self.draft)
        return Place(raw, self.resolver, self.draft)

    @property
    def reference(self) -> str | None:
        """The target of the reference here, if any. A dynamic reference is treated as the plain one it defaults to."""
        if not isinstance(self.raw, dict):
            return None
        return next((self.raw[key] for key in _REFERENCES if isinstance(self.raw.get(key), str)), None)

    def target(self) -> Place:
        """The place the reference here points to; raises `InvalidSchemaError` if it does not exist."""
        reference = self.reference
        assert reference is not None
        try:
            resolved = self.resolver.lookup(reference)
        except (Unresolvable, NoSuchAnchor, PointerToNowhere, ValueError):
            raise InvalidSchemaError(
                f"Invalid JSON Schema: the reference {reference!r} cannot be resolved: neither this schema nor "
                "one of its references defines it"
            ) from None
        if not isinstance(resolved.contents, dict | bool):
            raise InvalidSchemaError(
                f"Invalid JSON Schema: the reference {reference!r} points to something that is not a schema"
            )
        contents = resolved.contents
        names_draft = isinstance(contents, dict) and "$schema" in contents
        return Place(contents, resolved.resolver, Draft.of(contents) if names_draft else self.draft)

    @property
    def is_only_reference(self) -> bool:
        """Whether the schema here has no constraints besides its reference."""
        return self.reference is not None and not (self.draft.number >= 2019 and _says_more(self.raw))


class ReferenceEnds:
    """Finds the ends of chains of references. Each chain is followed only once, from any number of places."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Place, int]] = {}
        """The end of a place's chain and the number of hops to it, by `id()` of its JSON, which outlives the place."""

    def end_of(self, place: Place) -> Place:
        """The place itself or, if it is only a reference, the end of the chain of references."""
        trail: list[Place] = []
        end, hops = place, 0
        while end.is_only_reference:
            known = self._known.get(id(end.raw))
            if known is not None:
                end, hops = known
                break
            trail.append(end)
            if len(trail) > _MAX_HOPS:
                raise _endless(place)
            end = end.target()
        for one in reversed(trail):
            hops += 1
            self._known[id(one.raw)] = end, hops
        if hops > _MAX_HOPS:
            raise _endless(place)
        return end


def _endless(place: Place) -> InvalidSchemaError:
    return InvalidSchemaError(f"Invalid JSON Schema: the reference {place.reference!r} leads back to itself")


def root_place(schema: Json, draft: Draft, references: Mapping[str, Json]) -> Place:
    """The place of a whole schema, from which `references` can be resolved by their names."""
    specification = draft.specification
    root: Resource[Json] = specification.create_resource(schema)
    named = schema.get(_identifier(draft)) if isinstance(schema, dict) else None
    base = (root.id() if isinstance(named, str) else None) or ""
    registry: Registry[Json] = REGISTRY
    for name, document in references.items():
        resource: Resource[Json] = Draft.of(document).specification.create_resource(document)
        for uri in {urldefrag(name).url, urldefrag(urljoin(base, name)).url} - {""}:
            registry = registry.with_resource(uri, resource)
    return Place(schema, _index_anchors(registry.with_resource(base, root)).resolver(base_uri=base), draft)


def _identifier(draft: Draft) -> str:
    return "id" if draft.number == 4 else "$id"


def _index_anchors(registry: Registry[Json]) -> Registry[Json]:
    """Index anchors and ids once: otherwise the resolver searches the whole document for each of them."""
    try:
        return registry.crawl()
    except (AttributeError, TypeError, ValueError):
        # The document comes from an old log and was never validated; references to its invalid parts will fail.
        return registry


def subschemas(place: Place) -> Iterator[Place]:
    """Every schema nested directly in the one at `place`."""
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
    """Whether a schema has constraints besides its reference (drafts before 2019 ignore them)."""
    return any(key not in _SILENT for key in raw)
