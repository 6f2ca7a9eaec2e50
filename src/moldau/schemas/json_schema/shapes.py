"""The demands (constraints) of a JSON Schema, by subject: the form in which two schemas are compared.

A schema is a list of demands: a type with its bounds, a list of values, a combination of other schemas.
Annotations (title, description, default, format) demand nothing. Start at `demands`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from moldau.schemas.json_schema.places import Place
from moldau.schemas.json_text import Json, render, sorted_keys

__all__ = [
    "Array",
    "Combination",
    "Conditional",
    "Demand",
    "Enumeration",
    "Negation",
    "Number",
    "Object",
    "Operand",
    "Plain",
    "Shape",
    "Text",
    "demands",
    "is_nothing",
]


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """A type without further constraints: boolean or null."""

    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Strings. `bounds` has minLength and maxLength if given."""

    bounds: Mapping[str, Json]
    pattern: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """Numbers, or integers only. `bounds` holds minimum, maximum and their exclusive forms as numbers."""

    is_integer: bool
    bounds: Mapping[str, Json]
    multiple_of: Json


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """Objects. Open if further properties may be anything; closed if there may be none."""

    properties: Mapping[str, Place]
    required: frozenset[str]
    patterns: Mapping[str, Place]
    allows_additional: bool
    additional: Place | None
    needed_together: Mapping[str, frozenset[str]]
    dependent_schemas: Mapping[str, Place]
    property_names: Place | None
    bounds: Mapping[str, Json]

    @property
    def is_open(self) -> bool:
        return self.allows_additional and self.additional is None and not self.patterns


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Arrays: `each` constrains all items, `leading` the first ones by position, `additional` the rest."""

    each: Place | None
    leading: tuple[Place, ...]
    allows_additional: bool
    additional: Place | None
    contains: Place | None
    is_unique: bool
    bounds: Mapping[str, Json]

    @property
    def is_open(self) -> bool:
        return self.allows_additional and self.additional is None


@dataclass(frozen=True, slots=True, eq=False)
class Enumeration:
    """One of several values, stored as texts that are equal if the values are equal."""

    keyword: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Negation:
    """Any value that does not fit a schema."""

    schema: Place


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """allOf, anyOf or oneOf of other schemas; a list of types is an anyOf."""

    criterion: str
    branches: tuple[Operand, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """if, then and else."""

    condition: Place
    then: Place | None
    otherwise: Place | None


Shape: TypeAlias = Plain | Text | Number | Object | Array | Enumeration | Negation | Combination | Conditional
Operand: TypeAlias = Place | Shape
Demand: TypeAlias = tuple[str, Operand]
"""The subject of a demand (`type`, `enum`, `allOf`…), and the demand."""

_TEXT: Final = ("minLength", "maxLength", "pattern")
_NUMBER: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_ARRAY: Final = (
    *("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minContains", "maxContains"),
    *("minItems", "maxItems", "uniqueItems"),
)
_OBJECT: Final = (
    *("properties", "required", "patternProperties", "additionalProperties", "unevaluatedProperties", "dependencies"),
    *("dependentRequired", "dependentSchemas", "propertyNames", "minProperties", "maxProperties"),
)
_IMPLYING: Final = (("string", _TEXT), ("number", _NUMBER), ("array", _ARRAY), ("object", _OBJECT))


def is_nothing(operand: Operand) -> bool:
    """Whether the operand accepts no value."""
    return isinstance(operand, Place) and operand.raw is False


def demands(operand: Operand) -> tuple[Demand, ...]:
    """The demands of an operand, whose references must be resolved; `true` and `{}` have none."""
    if not isinstance(operand, Place):
        return (("type", operand),)
    raw = operand.raw
    if not isinstance(raw, dict):
        return ()
    found: list[Demand] = [*_type_demands(operand)]
    if isinstance(raw.get("enum"), list):
        found.append(("enum", Enumeration("enum", frozenset(map(_text, raw["enum"])))))
    if "const" in raw and operand.draft.number > 4:
        found.append(("const", Enumeration("const", frozenset({_text(raw["const"])}))))
    for criterion in ("allOf", "anyOf", "oneOf"):
        if isinstance(raw.get(criterion), list):
            found.append((criterion, Combination(criterion, tuple(operand.inner(item) for item in raw[criterion]))))
    if "not" in raw:
        found.append(("not", Negation(operand.inner(raw["not"]))))
    if "if" in raw and operand.draft.number >= 7 and ("then" in raw or "else" in raw):
        conditional = Conditional(operand.inner(raw["if"]), _inner(operand, "then"), _inner(operand, "else"))
        found.append(("if", conditional))
    if operand.reference is not None:
        found.append(("$ref", operand.target()))
    return tuple(found)


def _type_demands(place: Place) -> list[Demand]:
    """The demands of `type` (one or several) or, without `type`, of the types that the keywords imply."""
    named = place.raw.get("type")
    if isinstance(named, str):
        return [("type", _of_type(place, named))]
    if isinstance(named, list):
        if len(named) == 1:
            return [("type", _of_type(place, named[0]))]
        return [("type", Combination("anyOf", tuple(_of_type(place, kind) for kind in named)))]
    implied = [kind for kind, keywords in _IMPLYING if any(keyword in place.raw for keyword in keywords)]
    return [(f"type {kind}" if len(implied) > 1 else "type", _of_type(place, kind)) for kind in implied]


def _of_type(place: Place, kind: str) -> Shape:
    raw = place.raw
    match kind:
        case "string":
            return Text(_bounds(raw, "minLength", "maxLength"), raw.get("pattern"))
        case "integer" | "number":
            return Number(kind == "integer", _limits(raw), raw.get("multipleOf"))
        case "object":
            return _object(place)
        case "array":
            return _array(place)
    return Plain(kind)


def _limits(raw: dict[str, Json]) -> dict[str, Json]:
    """The bounds of a number. Draft 4 has `exclusiveMaximum: true` where later drafts have the number itself."""
    limits = _bounds(raw, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    for plain, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(limits.get(exclusive), bool):
            is_exclusive = limits.pop(exclusive)
            if is_exclusive and plain in limits:
                limits[exclusive] = limits.pop(plain)
    return limits


def _object(place: Place) -> Object:
    raw = place.raw
    additional = raw.get("additionalProperties", raw.get("unevaluatedProperties", True))
    dependencies = raw.get("dependencies", {})
    together = {name: needed for name, needed in dependencies.items() if isinstance(needed, list)}
    together |= raw.get("dependentRequired", {})
    schemas = {name: schema for name, schema in dependencies.items() if not isinstance(schema, list)}
    schemas |= raw.get("dependentSchemas", {})
    return Object(
        properties=_places(place, raw.get("properties", {})),
        required=frozenset(raw.get("required", ())),
        patterns=_places(place, raw.get("patternProperties", {})),
        allows_additional=additional is not False,
        additional=None if additional in (True, False, {}) else place.inner(additional),
        needed_together={name: frozenset(needed) for name, needed in together.items()},
        dependent_schemas=_places(place, schemas),
        property_names=_inner(place, "propertyNames"),
        bounds=_bounds(raw, "minProperties", "maxProperties"),
    )


def _array(place: Place) -> Array:
    """An array's demands. Since 2020 `prefixItems` is for the first items, `items` for the rest; before, `items`
    could be either."""
    raw = place.raw
    items = raw.get("items")
    if place.draft.number >= 2020:
        leading = raw.get("prefixItems", [])
        each, rest = (None, items) if leading else (items, None)
    else:
        leading = items if isinstance(items, list) else []
        each, rest = (None, raw.get("additionalItems")) if isinstance(items, list) else (items, None)
    if rest is None and each is None:
        rest = raw.get("unevaluatedItems")
    return Array(
        each=None if each is None else place.inner(each),
        leading=tuple(place.inner(item) for item in leading),
        allows_additional=rest is not False,
        additional=None if rest is None or rest in (True, False, {}) else place.inner(rest),
        contains=_inner(place, "contains"),
        is_unique=raw.get("uniqueItems") is True,
        bounds=_bounds(raw, "minItems", "maxItems", "minContains", "maxContains"),
    )


def _bounds(raw: dict[str, Json], *keywords: str) -> dict[str, Json]:
    return {keyword: raw[keyword] for keyword in keywords if keyword in raw}


def _places(place: Place, schemas: dict[str, Json]) -> dict[str, Place]:
    return {name: place.inner(schema) for name, schema in schemas.items()}


def _inner(place: Place, keyword: str) -> Place | None:
    return place.inner(place.raw[keyword]) if keyword in place.raw else None


def _text(value: Json) -> str:
    """A text that is the same for equal values: in JSON Schema, 1 and 1.0 are equal."""
    return render(sorted_keys(_whole(value)))


def _whole(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return value
