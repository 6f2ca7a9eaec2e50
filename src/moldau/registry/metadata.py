"""Metadata and rule sets of a schema: validation, canonical order and merging.

Both are stored as plain documents without empty parts, so that equal ones compare equal and print the same.
Start at `checked_metadata` and `checked_rule_set`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.registry.errors import InvalidRuleSetError, UnreadableRequestError

__all__ = [
    "RULE_KINDS",
    "RULE_MODES",
    "VERSION_PROPERTY",
    "Metadata",
    "RuleSet",
    "checked_metadata",
    "checked_rule_set",
    "merged_metadata",
    "merged_rule_sets",
    "property_of",
    "rule_set_without",
    "validate_rule_set",
    "with_version",
]

Metadata = Mapping[str, Any]
RuleSet = Mapping[str, Any]

VERSION_PROPERTY = "confluent:version"
RULE_KINDS: Final = ("TRANSFORM", "CONDITION")
RULE_MODES: Final = {
    "migrationRules": ("UPGRADE", "DOWNGRADE", "UPDOWN"),
    "domainRules": ("WRITE", "READ", "WRITEREAD"),
    "encodingRules": ("WRITE", "READ", "WRITEREAD"),
}
"""The modes allowed for the rules of each list."""

_RULE_TEXTS = ("name", "doc", "kind", "mode", "type", "expr", "onSuccess", "onFailure")
_RULE_FIELDS = ("name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure", "disabled")
_RULE_LISTS = tuple(RULE_MODES)


def checked_metadata(document: object) -> Metadata | None:
    """Metadata as it is stored: known parts only, sorted; raises `UnreadableRequestError` if it is malformed."""
    if document is None:
        return None
    given = _mapping(document, "metadata")
    tags = _mapping(given.get("tags") or {}, "metadata.tags")
    properties = _mapping(given.get("properties") or {}, "metadata.properties")
    return {
        name: part
        for name, part in (
            ("tags", {key: sorted(set(_texts(tags[key], "metadata.tags"))) for key in sorted(tags)}),
            ("properties", {key: _text(properties[key], "metadata.properties") for key in sorted(properties)}),
            ("sensitive", sorted(set(_texts(given.get("sensitive") or [], "metadata.sensitive")))),
        )
        if part
    }


def checked_rule_set(document: object) -> RuleSet | None:
    """A rule set as it is stored; raises `UnreadableRequestError` if it is malformed."""
    if document is None:
        return None
    given = _mapping(document, "ruleSet")
    checked: dict[str, Any] = {}
    for name in _RULE_LISTS:
        rules = given.get(name) or []
        if not isinstance(rules, list):
            raise UnreadableRequestError(f"ruleSet.{name} must be a list of rules")
        if rules:
            checked[name] = [_checked_rule(rule, f"ruleSet.{name}") for rule in rules]
    if given.get("enableAt"):
        checked["enableAt"] = _text(given["enableAt"], "ruleSet.enableAt")
    return checked


def validate_rule_set(rule_set: RuleSet | None) -> None:
    """Raise `InvalidRuleSetError` for a rule with an invalid or duplicate name, no type, or a wrong kind or mode."""
    for list_name in _RULE_LISTS:
        seen = set()
        for rule in (rule_set or {}).get(list_name, ()):
            name = rule.get("name", "")
            if not name.replace("_", "a").isalnum() or name[0].isdigit():
                raise InvalidRuleSetError(
                    f"A rule's name must be letters, digits and underscores, and not begin with a digit: '{name}'"
                )
            if name in seen:
                raise InvalidRuleSetError(f"Two rules have the name '{name}'")
            seen.add(name)
            if not rule.get("type"):
                raise InvalidRuleSetError(f"Rule '{name}' has no type")
            if rule["kind"] not in RULE_KINDS or rule["mode"] not in RULE_MODES[list_name]:
                allowed = ", ".join(sorted(RULE_MODES[list_name]))
                raise InvalidRuleSetError(
                    f"Rule '{name}' in {list_name}: the kind is TRANSFORM or CONDITION, the mode one of {allowed}"
                )


def merged_metadata(older: Metadata | None, newer: Metadata | None) -> Metadata | None:
    """Both merged; where they differ, the newer value is used."""
    if older is None or newer is None:
        return newer if older is None else older
    tags = {**older.get("tags", {}), **newer.get("tags", {})}
    properties = {**older.get("properties", {}), **newer.get("properties", {})}
    sensitive = [*older.get("sensitive", ()), *newer.get("sensitive", ())]
    return checked_metadata({"tags": tags, "properties": properties, "sensitive": sensitive})


def merged_rule_sets(older: RuleSet | None, newer: RuleSet | None) -> RuleSet | None:
    """Both merged; a newer rule replaces an older one of the same name."""
    if older is None or newer is None:
        return newer if older is None else older
    merged: dict[str, Any] = {}
    for name in _RULE_LISTS:
        added = newer.get(name, [])
        names = {rule.get("name") for rule in added}
        rules = [rule for rule in older.get(name, ()) if rule.get("name") not in names] + list(added)
        if rules:
            merged[name] = rules
    enable_at = newer.get("enableAt") or older.get("enableAt")
    return {**merged, "enableAt": enable_at} if enable_at else merged


def rule_set_without(rule_set: RuleSet | None, names: frozenset[str]) -> RuleSet | None:
    if rule_set is None:
        return None
    kept: dict[str, Any] = dict(rule_set)
    for name in _RULE_LISTS:
        kept[name] = [rule for rule in rule_set.get(name, ()) if rule.get("name") not in names]
    return {name: part for name, part in kept.items() if part}


def property_of(metadata: Metadata | None, name: str) -> str | None:
    value: str | None = (metadata or {}).get("properties", {}).get(name)
    return value


def with_version(metadata: Metadata | None, version: int) -> Metadata | None:
    return merged_metadata(metadata, {"properties": {VERSION_PROPERTY: str(version)}})


def _checked_rule(document: object, where: str) -> dict[str, Any]:
    given = _mapping(document, where)
    texts = {name: _text(given[name], f"{where}.{name}") for name in _RULE_TEXTS if given.get(name) is not None}
    rule: dict[str, Any] = {"kind": "TRANSFORM", "mode": "WRITEREAD", **texts}
    rule["tags"] = sorted(set(_texts(given.get("tags") or [], f"{where}.tags")))
    params = _mapping(given.get("params") or {}, f"{where}.params")
    rule["params"] = {key: _text(params[key], f"{where}.params") for key in sorted(params)}
    rule["disabled"] = _flag(given.get("disabled", False), f"{where}.disabled")
    return {name: rule[name] for name in _RULE_FIELDS if name in rule and rule[name] not in ([], {}, "")}


def _mapping(document: object, where: str) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise UnreadableRequestError(f"{where} must be an object")
    return document


def _text(document: object, where: str) -> str:
    if not isinstance(document, str):
        raise UnreadableRequestError(f"{where} must be a string")
    return document


def _flag(document: object, where: str) -> bool:
    if document is not None and not isinstance(document, bool):
        raise UnreadableRequestError(f"{where} must be true or false")
    return bool(document)


def _texts(document: object, where: str) -> list[str]:
    if not isinstance(document, list):
        raise UnreadableRequestError(f"{where} must be a list of texts")
    return [_text(text, where) for text in document]
