"""Compares arrays: the schemas of every item, of the first items, and of the rest. Start at `compare_arrays`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.schemas.findings import NOTHING, Findings, join_findings
from moldau.schemas.json_schema.places import Place
from moldau.schemas.json_schema.shapes import Array, is_nothing

if TYPE_CHECKING:
    from moldau.schemas.json_schema.compatibility import Comparison

__all__ = ["compare_arrays"]


def compare_arrays(comparison: Comparison, old: Array, new: Array, path: str) -> Findings:
    """Return the incompatible changes between two schemas of arrays."""
    found = (
        comparison.compare(old.each, new.each, f"{path}/items")
        + _leading(comparison, old, new, path)
        + _additional(comparison, old, new, f"{path}/additionalItems")
        + comparison.compare(old.contains, new.contains, f"{path}/contains")
        + comparison.bounds(old.bounds, new.bounds, path)
    )
    if new.is_unique and not old.is_unique:
        found += comparison.finding("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems")
    return found


def _leading(comparison: Comparison, old: Array, new: Array, path: str) -> Findings:
    comparison.effort.spend(len(old.leading) + len(new.leading))
    both = min(len(old.leading), len(new.leading))
    found: list[Findings] = []
    for index in range(both):
        found.append(comparison.compare(old.leading[index], new.leading[index], f"{path}/items/{index}"))
    for index, item in enumerate(old.leading[both:], both):
        found.append(_item_removed(comparison, item, new, f"{path}/items/{index}"))
    for index, item in enumerate(new.leading[both:], both):
        found.append(_item_added(comparison, old, item, f"{path}/items/{index}"))
    return join_findings(found)


def _item_removed(comparison: Comparison, item: Place, new: Array, path: str) -> Findings:
    if new.is_open:
        return NOTHING
    if new.additional is not None:
        found = comparison.compare(item, new.additional, path)
        rule = "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        return comparison.finding(rule, path) if found else NOTHING
    return NOTHING if is_nothing(item) else comparison.finding("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _item_added(comparison: Comparison, old: Array, item: Place, path: str) -> Findings:
    if old.is_open:
        return (
            NOTHING if comparison.is_everything(item) else comparison.finding("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", path)
        )
    if old.additional is not None and comparison.compare(old.additional, item, path):
        return comparison.finding("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    return NOTHING


def _additional(comparison: Comparison, old: Array, new: Array, path: str) -> Findings:
    if not new.allows_additional:
        return comparison.finding("ADDITIONAL_ITEMS_REMOVED", path) if old.allows_additional else NOTHING
    if new.additional is None or not old.allows_additional:
        return NOTHING
    if old.additional is None:
        return comparison.finding("ADDITIONAL_ITEMS_NARROWED", path)
    return comparison.compare(old.additional, new.additional, path)
