"""Compares objects: added and removed properties, required ones, and constraints on properties not named.

What may be added or removed depends on the content model: open (further properties may be anything), closed
(there are none) or partially open (a pattern or a schema constrains them). Start at `compare_objects`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.schemas.findings import NOTHING, Findings, join_findings
from moldau.schemas.json_schema.places import Place
from moldau.schemas.json_schema.shapes import Object, is_nothing

if TYPE_CHECKING:
    from moldau.schemas.json_schema.compatibility import Comparison

__all__ = ["compare_objects"]


def compare_objects(comparison: Comparison, old: Object, new: Object, path: str) -> Findings:
    """Return the incompatible changes between two schemas of objects."""
    comparison.effort.spend(len(old.properties) + len(new.properties) + len(new.patterns))
    comparison.effort.spend(len(new.needed_together) + len(new.dependent_schemas))
    return (
        _compare_required(comparison, old, new, f"{path}/required")
        + _properties(comparison, old, new, f"{path}/properties")
        + _dependencies(comparison, old, new, f"{path}/dependencies")
        + _patterns(comparison, old, new, f"{path}/patternProperties")
        + _additional(comparison, old, new, f"{path}/additionalProperties")
        + comparison.compare(old.property_names, new.property_names, f"{path}/propertyNames")
        + comparison.bounds(old.bounds, new.bounds, path)
    )


def _compare_required(comparison: Comparison, old: Object, new: Object, path: str) -> Findings:
    found: list[Findings] = []
    for name, schema in new.properties.items():
        became_required = name in new.required and name not in old.required
        if became_required and name in old.properties and not _has_default(comparison, schema):
            found.append(comparison.finding("REQUIRED_ATTRIBUTE_ADDED", f"{path}/{name}"))
    return join_findings(found)


def _properties(comparison: Comparison, old: Object, new: Object, path: str) -> Findings:
    found: list[Findings] = []
    for name, schema in old.properties.items():
        if name in new.properties:
            found.append(comparison.compare(schema, new.properties[name], f"{path}/{name}"))
        else:
            found.append(_property_removed(comparison, schema, new, f"{path}/{name}", name))
    for name, schema in new.properties.items():
        if name not in old.properties:
            found.append(
                _property_added(comparison, old, schema, f"{path}/{name}", name, is_required=name in new.required)
            )
    return join_findings(found)


def _property_removed(comparison: Comparison, schema: Place, new: Object, path: str, name: str) -> Findings:
    if new.is_open:
        return NOTHING
    covering = _covering(comparison, new, name)
    if covering is not None:
        found = comparison.compare(schema, covering, path)
        rule = "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        return comparison.finding(rule, path) if found else NOTHING
    if new.allows_additional or is_nothing(schema):
        return NOTHING
    return comparison.finding("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _property_added(
    comparison: Comparison, old: Object, schema: Place, path: str, name: str, *, is_required: bool
) -> Findings:
    model = "OPEN" if old.is_open else "UNOPEN"
    if is_required and not _has_default(comparison, schema):
        return comparison.finding(f"REQUIRED_PROPERTY_ADDED_TO_{model}_CONTENT_MODEL", path)
    if old.is_open:
        if comparison.is_everything(schema):
            return NOTHING
        kind = "REQUIRED_PROPERTY_WITH_DEFAULT" if is_required else "OPTIONAL_PROPERTY"
        return comparison.finding(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL", path)
    covering = _covering(comparison, old, name)
    if covering is not None and comparison.compare(covering, schema, path):
        return comparison.finding("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    return NOTHING


def _covering(comparison: Comparison, shape: Object, name: str) -> Place | None:
    """The schema that a partially open object has for a property it does not name."""
    for pattern, schema in shape.patterns.items():
        if comparison.patterns.match(pattern, name):
            return schema
    return shape.additional


def _dependencies(comparison: Comparison, old: Object, new: Object, path: str) -> Findings:
    found: list[Findings] = []
    for name, needed in new.needed_together.items():
        before = old.needed_together.get(name)
        if before is None:
            found.append(comparison.finding("DEPENDENCY_ARRAY_ADDED", f"{path}/{name}"))
        elif not needed <= before:
            rule = "DEPENDENCY_ARRAY_EXTENDED" if needed > before else "DEPENDENCY_ARRAY_CHANGED"
            found.append(comparison.finding(rule, f"{path}/{name}"))
    for name, schema in new.dependent_schemas.items():
        if name not in old.dependent_schemas:
            found.append(comparison.finding("DEPENDENCY_SCHEMA_ADDED", f"{path}/{name}"))
        else:
            found.append(comparison.compare(old.dependent_schemas[name], schema, f"{path}/{name}"))
    return join_findings(found)


def _patterns(comparison: Comparison, old: Object, new: Object, path: str) -> Findings:
    """Compare the patterns in both like properties; the content model covers added and removed ones."""
    found: list[Findings] = []
    for pattern, schema in new.patterns.items():
        if pattern in old.patterns:
            found.append(comparison.compare(old.patterns[pattern], schema, f"{path}/{pattern}"))
    return join_findings(found)


def _additional(comparison: Comparison, old: Object, new: Object, path: str) -> Findings:
    if not new.allows_additional:
        return comparison.finding("ADDITIONAL_PROPERTIES_REMOVED", path) if old.allows_additional else NOTHING
    if new.additional is None or not old.allows_additional:
        return NOTHING
    if old.additional is None:
        return comparison.finding("ADDITIONAL_PROPERTIES_NARROWED", path)
    return comparison.compare(old.additional, new.additional, path)


def _has_default(comparison: Comparison, schema: Place) -> bool:
    """Whether a property has a default, in its own schema or where its reference points."""
    if isinstance(schema.raw, dict) and "default" in schema.raw:
        return True
    settled = comparison.resolve(schema)
    return isinstance(settled.raw, dict) and "default" in settled.raw
