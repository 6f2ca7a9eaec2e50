"""Every rule about changes of a JSON Schema, in both directions and under both policies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.schemas.compatibility import CompatibilityLevel, CompatibilityPolicy, check
from moldau.schemas.schema import ParsedSchema, parse

STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
ARRAY = {"type": "array"}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def opened(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def partly(**properties: Any) -> dict[str, Any]:
    """An object whose further properties are strings."""
    return {"type": "object", "properties": properties, "additionalProperties": STRING}


def patterned(**properties: Any) -> dict[str, Any]:
    """An object whose further properties are numbers and start with `n_`."""
    return {**closed(**properties), "patternProperties": {"^n_": NUMBER}}


def required(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    return {**schema, "required": list(names)}


WITH_DEFAULT = {"type": "string", "default": "x"}
TO_OPEN, TO_UNOPEN = "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"
FROM_CLOSED = "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"
REQUIRED_TO_OPEN = "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
DEFAULT_TO_OPEN = "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"
NOT_COVERED = "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
GONE_NOT_COVERED = "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
SUBSCHEMAS = "COMBINED_TYPE_SUBSCHEMAS_CHANGED"


def bound(kind: str, keyword: str, low: int, high: int) -> list[tuple[str, Any, Any, str | None, str | None]]:
    """The four changes of a limit: raised, lowered, added, removed."""
    words = "".join(f"_{letter}" if letter.isupper() else letter for letter in keyword).upper()
    less, more = {"type": kind, keyword: low}, {"type": kind, keyword: high}
    if "max" in keyword.lower():
        changed = [(f"{keyword} raised", less, more, None, f"{words}_DECREASED")]
        changed += [(f"{keyword} lowered", more, less, f"{words}_DECREASED", None)]
    else:
        changed = [(f"{keyword} raised", less, more, f"{words}_INCREASED", None)]
        changed += [(f"{keyword} lowered", more, less, None, f"{words}_INCREASED")]
    bare = {"type": kind}
    changed += [(f"{keyword} added", bare, less, f"{words}_ADDED", None)]
    return [*changed, (f"{keyword} removed", less, bare, None, f"{words}_ADDED")]


ROWS: list[tuple[str, Any, Any, str | None, str | None]] = [
    ("add optional property, old open", opened(a=STRING), opened(a=STRING, b=STRING), TO_OPEN, None),
    ("add optional property, old closed", closed(a=STRING), closed(a=STRING, b=STRING), None, FROM_CLOSED),
    ("add property that may be anything, old open", opened(), opened(b={}), None, None),
    ("add property that is true, old open", opened(), opened(b=True), None, None),
    ("add required property, old open", opened(), required(opened(b=STRING), "b"), REQUIRED_TO_OPEN, None),
    ("add required property, old closed", closed(), required(closed(b=STRING), "b"), TO_UNOPEN, FROM_CLOSED),
    (
        "add required property with default, old closed",
        closed(),
        required(closed(b=WITH_DEFAULT), "b"),
        None,
        FROM_CLOSED,
    ),
    (
        "add required property with default, old open",
        opened(),
        required(opened(b=WITH_DEFAULT), "b"),
        DEFAULT_TO_OPEN,
        None,
    ),
    ("remove property, new open", opened(a=STRING), opened(), None, TO_OPEN),
    ("remove optional property, new closed", closed(a=STRING), closed(), FROM_CLOSED, None),
    ("remove required property, new closed", required(closed(a=STRING), "a"), closed(), FROM_CLOSED, TO_UNOPEN),
    ("remove property that was false, new closed", closed(a=False), closed(), None, None),
    ("add property covered by a schema", partly(), partly(a=STRING), None, None),
    ("remove property covered by a schema", partly(a=STRING), partly(), None, None),
    ("add property covered by a pattern", patterned(), patterned(n_1=NUMBER), None, None),
    ("add property at odds with a schema", partly(), partly(a=NUMBER), NOT_COVERED, GONE_NOT_COVERED),
    ("add property wider than its pattern", patterned(), patterned(n_1={}), None, GONE_NOT_COVERED),
    ("add property matched by no pattern", patterned(), patterned(a=STRING), None, FROM_CLOSED),
    ("property becomes required", opened(a=STRING), required(opened(a=STRING), "a"), "REQUIRED_ATTRIBUTE_ADDED", None),
    (
        "property with default becomes required",
        opened(a=WITH_DEFAULT),
        required(opened(a=WITH_DEFAULT), "a"),
        None,
        None,
    ),
    (
        "property is no longer required",
        required(opened(a=STRING), "a"),
        opened(a=STRING),
        None,
        "REQUIRED_ATTRIBUTE_ADDED",
    ),
    (
        "property with default no longer required",
        required(opened(a=WITH_DEFAULT), "a"),
        opened(a=WITH_DEFAULT),
        None,
        None,
    ),
    ("additionalProperties false to absent", closed(), opened(), None, "ADDITIONAL_PROPERTIES_REMOVED"),
    (
        "additionalProperties false to true",
        closed(),
        {**opened(), "additionalProperties": True},
        None,
        "ADDITIONAL_PROPERTIES_REMOVED",
    ),
    ("additionalProperties true to schema", opened(), partly(), "ADDITIONAL_PROPERTIES_NARROWED", None),
    ("additionalProperties schema to true", partly(), opened(), None, "ADDITIONAL_PROPERTIES_NARROWED"),
    ("integer to number", INTEGER, NUMBER, None, "TYPE_NARROWED"),
    ("type to other type", STRING, NUMBER, "TYPE_CHANGED", "TYPE_CHANGED"),
    ("object to array", opened(), ARRAY, "TYPE_CHANGED", "TYPE_CHANGED"),
    ("boolean to null", {"type": "boolean"}, {"type": "null"}, "TYPE_CHANGED", "TYPE_CHANGED"),
    ("type to anything", STRING, {}, None, "TYPE_CHANGED"),
    ("type to true", opened(a=STRING), opened(a=True), None, "TYPE_CHANGED"),
    ("false to type", opened(a=False), opened(a=STRING), None, "TYPE_CHANGED"),
    ("type to list of types", STRING, {"type": ["string", "null"]}, None, "SUM_TYPE_NARROWED"),
    (
        "list of types extended",
        {"type": ["string", "null"]},
        {"type": ["null", "string", "array"]},
        None,
        "SUM_TYPE_NARROWED",
    ),
    ("type to oneOf with it", STRING, {"oneOf": [NUMBER, STRING]}, None, "SUM_TYPE_NARROWED"),
    ("type to anyOf with it", STRING, {"anyOf": [STRING, NUMBER]}, None, "SUM_TYPE_NARROWED"),
    ("type to oneOf without it", STRING, {"oneOf": [NUMBER, ARRAY]}, "TYPE_CHANGED", "TYPE_CHANGED"),
    ("oneOf extended", {"oneOf": [STRING]}, {"oneOf": [NUMBER, STRING]}, None, "SUM_TYPE_NARROWED"),
    ("type to oneOf of it alone", STRING, {"oneOf": [STRING]}, None, None),
    (
        "remove an allOf branch",
        {"allOf": [STRING, {"enum": ["a"]}]},
        {"allOf": [STRING]},
        None,
        "PRODUCT_TYPE_EXTENDED",
    ),
    ("remove an enum beside a type", {**STRING, "enum": ["a"]}, STRING, None, "PRODUCT_TYPE_EXTENDED"),
    ("oneOf to anyOf", {"oneOf": [STRING, NUMBER]}, {"anyOf": [STRING, NUMBER]}, None, "COMBINED_TYPE_CHANGED"),
    (
        "allOf to anyOf",
        {"allOf": [STRING, {"maxLength": 3}]},
        {"anyOf": [STRING, {"maxLength": 3}]},
        None,
        "COMBINED_TYPE_CHANGED",
    ),
    (
        "oneOf to allOf",
        {"oneOf": [STRING, NUMBER]},
        {"allOf": [STRING, NUMBER]},
        "COMBINED_TYPE_CHANGED",
        "COMBINED_TYPE_CHANGED",
    ),
    ("oneOf to allOf with one branch", {"oneOf": [STRING]}, {"allOf": [STRING]}, None, None),
    ("branches without successor", {"oneOf": [STRING, NUMBER]}, {"oneOf": [STRING, ARRAY]}, SUBSCHEMAS, SUBSCHEMAS),
    ("branches reordered", {"oneOf": [STRING, NUMBER]}, {"oneOf": [NUMBER, STRING]}, None, None),
    ("branches doubled", {"allOf": [STRING, STRING]}, {"allOf": [STRING]}, None, None),
    ("enum value added", {"enum": ["a"]}, {"enum": ["a", "b"]}, None, "ENUM_ARRAY_NARROWED"),
    ("enum value removed", {"enum": ["a", "b"]}, {"enum": ["a"]}, "ENUM_ARRAY_NARROWED", None),
    ("enum value replaced", {"enum": ["a"]}, {"enum": ["b"]}, "ENUM_ARRAY_CHANGED", "ENUM_ARRAY_CHANGED"),
    (
        "enum value added beside a type",
        {**STRING, "enum": ["a"]},
        {**STRING, "enum": ["a", "b"]},
        None,
        "ENUM_ARRAY_NARROWED",
    ),
    ("const changed", {"const": 1}, {"const": 2}, "ENUM_ARRAY_CHANGED", "ENUM_ARRAY_CHANGED"),
    ("const 1 is const 1.0", {"const": 1}, {"const": 1.0}, None, None),
    *bound("string", "maxLength", 3, 5),
    *bound("string", "minLength", 3, 5),
    *bound("number", "maximum", 3, 5),
    *bound("number", "minimum", 3, 5),
    *bound("number", "exclusiveMaximum", 3, 5),
    *bound("number", "exclusiveMinimum", 3, 5),
    *bound("array", "maxItems", 3, 5),
    *bound("array", "minItems", 3, 5),
    *bound("array", "maxContains", 3, 5),
    *bound("array", "minContains", 3, 5),
    *bound("object", "maxProperties", 3, 5),
    *bound("object", "minProperties", 3, 5),
    ("pattern removed", {**STRING, "pattern": "a"}, STRING, None, "PATTERN_ADDED"),
    ("pattern changed", {**STRING, "pattern": "a"}, {**STRING, "pattern": "b"}, "PATTERN_CHANGED", "PATTERN_CHANGED"),
    ("multipleOf removed", {**NUMBER, "multipleOf": 10}, NUMBER, None, "MULTIPLE_OF_ADDED"),
    ("multipleOf divided", {**NUMBER, "multipleOf": 10}, {**NUMBER, "multipleOf": 2}, None, "MULTIPLE_OF_EXPANDED"),
    (
        "multipleOf divided into fractions",
        {**NUMBER, "multipleOf": 1},
        {**NUMBER, "multipleOf": 0.1},
        None,
        "MULTIPLE_OF_EXPANDED",
    ),
    (
        "multipleOf changed",
        {**NUMBER, "multipleOf": 10},
        {**NUMBER, "multipleOf": 4},
        "MULTIPLE_OF_CHANGED",
        "MULTIPLE_OF_CHANGED",
    ),
    ("uniqueItems removed", {**ARRAY, "uniqueItems": True}, ARRAY, None, "UNIQUE_ITEMS_ADDED"),
    ("items removed", {**ARRAY, "items": STRING}, ARRAY, None, "SCHEMA_ADDED"),
    ("items widened", {**ARRAY, "items": INTEGER}, {**ARRAY, "items": NUMBER}, None, "TYPE_NARROWED"),
    (
        "tuple item added to closed model",
        {**ARRAY, "items": [STRING], "additionalItems": False},
        {**ARRAY, "items": [STRING, NUMBER], "additionalItems": False},
        None,
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    (
        "tuple item added to open model",
        {**ARRAY, "items": [STRING]},
        {**ARRAY, "items": [STRING, NUMBER]},
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
        None,
    ),
    ("dependency removed", {**opened(), "dependencies": {"a": ["b"]}}, opened(), None, "DEPENDENCY_ARRAY_ADDED"),
    (
        "dependency narrowed",
        {**opened(), "dependencies": {"a": ["b", "c"]}},
        {**opened(), "dependencies": {"a": ["b"]}},
        None,
        "DEPENDENCY_ARRAY_EXTENDED",
    ),
    (
        "dependency changed",
        {**opened(), "dependencies": {"a": ["b"]}},
        {**opened(), "dependencies": {"a": ["c"]}},
        "DEPENDENCY_ARRAY_CHANGED",
        "DEPENDENCY_ARRAY_CHANGED",
    ),
    (
        "dependent schema removed",
        {**opened(), "dependencies": {"a": opened()}},
        opened(),
        None,
        "DEPENDENCY_SCHEMA_ADDED",
    ),
    ("not narrowed", {"not": NUMBER}, {"not": INTEGER}, None, "NOT_TYPE_EXTENDED"),
    ("title changed", {**STRING, "title": "a"}, {**STRING, "title": "b"}, None, None),
    ("description and $id changed", {**STRING, "description": "a", "$id": "a"}, {**STRING, "$id": "b"}, None, None),
    ("default changed", opened(a=WITH_DEFAULT), opened(a={**STRING, "default": "y"}), None, None),
    (
        "moved to a $ref",
        opened(a=closed(b=STRING)),
        {**opened(a={"$ref": "#/definitions/A"}), "definitions": {"A": closed(b=STRING)}},
        None,
        None,
    ),
    (
        "condition loosened",
        {"if": {"minLength": 1}, "then": {**STRING, "maxLength": 2}},
        {"if": {"minLength": 1}, "then": {**STRING, "maxLength": 3}},
        None,
        "MAX_LENGTH_DECREASED",
    ),
]
"""What changes, the old and the new schema, and the rule that breaks backward and forward, if one does."""


def schema(value: Any) -> ParsedSchema:
    return parse("JSON", json.dumps(value))


def rules(
    level: CompatibilityLevel, new: Any, old: Any, policy: CompatibilityPolicy = CompatibilityPolicy.STRICT
) -> set[str]:
    return {finding.error_type for finding in check(level, schema(new), [schema(old)], policy=policy)}


@pytest.mark.parametrize(("old", "new", "backward", "forward"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_change_is_judged_in_both_directions(
    old: Any, new: Any, backward: str | None, forward: str | None
) -> None:
    assert rules(CompatibilityLevel.BACKWARD, new, old) == {backward} - {None}
    assert rules(CompatibilityLevel.FORWARD, new, old) == {forward} - {None}
    assert rules(CompatibilityLevel.FULL, new, old) == {backward, forward} - {None}
    assert rules(CompatibilityLevel.BACKWARD, old, new) == {forward} - {None}


LENIENT_ROWS = [
    ("add optional property, old open", opened(), opened(b=STRING), True, True),
    ("add required property, old open", opened(), required(opened(b=STRING), "b"), False, True),
    ("add required property with default, old open", opened(), required(opened(b=WITH_DEFAULT), "b"), True, True),
    ("remove property, new open", opened(a=STRING), opened(), True, True),
    ("remove property, new closed", closed(a=STRING), closed(), True, True),
    ("change a property's type", opened(a=STRING), opened(a=NUMBER), False, False),
]


@pytest.mark.parametrize(
    ("old", "new", "backward", "forward"), [row[1:] for row in LENIENT_ROWS], ids=[row[0] for row in LENIENT_ROWS]
)
def test_the_lenient_policy_forgives_changes_of_content_models(
    old: Any, new: Any, backward: bool, forward: bool
) -> None:
    lenient = CompatibilityPolicy.LENIENT
    assert (not rules(CompatibilityLevel.BACKWARD, new, old, lenient)) is backward
    assert (not rules(CompatibilityLevel.FORWARD, new, old, lenient)) is forward


DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def test_draft_2020_reads_prefix_items_and_dependent_required() -> None:
    def tuples(*items: Any) -> dict[str, Any]:
        return {"$schema": DRAFT_2020, "type": "array", "prefixItems": list(items), "items": False}

    assert rules(CompatibilityLevel.BACKWARD, tuples(STRING, NUMBER), tuples(STRING)) == set()
    assert rules(CompatibilityLevel.FORWARD, tuples(STRING, NUMBER), tuples(STRING)) == {
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"
    }
    needing = {"$schema": DRAFT_2020, "type": "object", "dependentRequired": {"a": ["b"]}}
    assert rules(CompatibilityLevel.BACKWARD, needing, {"$schema": DRAFT_2020, "type": "object"}) == {
        "DEPENDENCY_ARRAY_ADDED"
    }


def test_draft_2020_combines_a_ref_with_what_stands_beside_it() -> None:
    beside = {"$schema": DRAFT_2020, "$ref": "#/$defs/s", "maxLength": 3, "$defs": {"s": STRING}}
    alone = {"$schema": DRAFT_2020, "$ref": "#/$defs/s", "$defs": {"s": STRING}}
    assert rules(CompatibilityLevel.BACKWARD, alone, beside) == set()
    assert rules(CompatibilityLevel.FORWARD, alone, beside) == {"PRODUCT_TYPE_EXTENDED"}


def test_draft_4_says_exclusive_with_a_boolean() -> None:
    inclusive = {"$schema": DRAFT_4, "type": "number", "maximum": 5}
    exclusive = {**inclusive, "exclusiveMaximum": True}
    assert rules(CompatibilityLevel.BACKWARD, exclusive, inclusive) == {"EXCLUSIVE_MAXIMUM_ADDED"}


def test_a_message_names_path_rule_and_the_two_schemas() -> None:
    [finding] = check(CompatibilityLevel.BACKWARD, schema(opened(a=STRING, b=NUMBER)), [schema(opened(a=STRING))])
    assert finding.message == (
        '{errorType:"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", '
        "description:\"The property at path '#/properties/b' in the new schema is missing in the old schema, "
        'where a property of that name may be anything"}'
    )
    [finding] = check(CompatibilityLevel.FORWARD, schema(opened(a=STRING)), [schema(opened(a=NUMBER))])
    assert (
        finding.description
        == "The type at path '#/properties/a' is another one in the old schema than in the new schema"
    )


def test_recursive_schemas_are_compared_to_the_end() -> None:
    def tree(value: Any) -> dict[str, Any]:
        node = closed(value=value, left={"$ref": "#/definitions/node"}, right={"$ref": "#/definitions/node"})
        return {"$ref": "#/definitions/node", "definitions": {"node": node}}

    assert rules(CompatibilityLevel.FULL, tree(STRING), tree(STRING)) == set()
    assert rules(CompatibilityLevel.BACKWARD, tree(NUMBER), tree(INTEGER)) == set()
    assert rules(CompatibilityLevel.BACKWARD, tree(INTEGER), tree(NUMBER)) == {"TYPE_NARROWED"}


def test_a_hostile_pattern_does_not_stop_the_comparison() -> None:
    hostile = {**closed(), "patternProperties": {"^(a+)+$": NUMBER, "(?=look)ahead": NUMBER}}
    named = {**hostile, "properties": {"a" * 60 + "!": NUMBER}}
    assert rules(CompatibilityLevel.BACKWARD, named, hostile) == set()
