"""Parsing of request documents: missing or mistyped fields are errors that name the field, unknown fields are ignored.

Clients send back documents they received, with fields that only responses have (`guid`, `ts`, `deleted`).

Start at `RegisterRequest.of`, `read_config_update` and `read_mode_update`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.core.ids import INT32_MAX
from moldau.registry.entities import AVRO, SchemaReference
from moldau.registry.errors import InvalidLevelError, InvalidModeError, UnreadableRequestError
from moldau.registry.metadata import Metadata, RuleSet, checked_metadata, checked_rule_set
from moldau.registry.records import CONFIG_FIELDS
from moldau.registry.scopes import LEVELS, MODES
from moldau.schemas.compatibility import CompatibilityPolicy

__all__ = ["POLICIES", "RegisterRequest", "TagRequest", "read_config_update", "read_mode_update"]

POLICIES: Final = tuple(policy.value for policy in CompatibilityPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterRequest:
    """A schema to register, look up or test."""

    schema: str = ""
    schema_type: str = AVRO
    references: tuple[SchemaReference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    version: int = 0
    """0 for the next version, -1 for the latest version if it is the same schema."""
    id: int | None = None

    @classmethod
    def of(cls, document: object) -> RegisterRequest:
        given = _object(document)
        schema_id = _number(given, "id")
        return cls(
            schema=_text(given, "schema") or "",
            schema_type=(_text(given, "schemaType") or AVRO),
            references=_references(given.get("references")),
            metadata=checked_metadata(given.get("metadata")),
            rule_set=checked_rule_set(given.get("ruleSet")),
            version=_number(given, "version") or 0,
            id=None if schema_id is None or schema_id < 0 else schema_id,
        )

    @property
    def is_empty(self) -> bool:
        return not self.schema.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRequest:
    """A request for a new version of a registered schema with different metadata or rules."""

    new_version: int = 0
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: frozenset[str] = frozenset()

    @classmethod
    def of(cls, document: object) -> TagRequest:
        given = _object(document)
        removed = given.get("rulesToRemove") or []
        if not isinstance(removed, list) or not all(isinstance(name, str) for name in removed):
            raise UnreadableRequestError("rulesToRemove must be a list of names")
        if given.get("tagsToAdd") or given.get("tagsToRemove"):
            raise UnreadableRequestError("tags inside a schema's text cannot be changed here; send the changed text")
        return cls(
            new_version=_number(given, "newVersion") or 0,
            metadata=checked_metadata(given.get("metadata")),
            rule_set=checked_rule_set(given.get("ruleSet")),
            rules_to_merge=checked_rule_set(given.get("rulesToMerge")),
            rules_to_remove=frozenset(removed),
        )


def read_config_update(document: object) -> dict[str, Any]:
    """The settings to change, by their stored names; `None` removes a setting."""
    given = dict(_object(document))
    if "compatibility" in given:
        given["compatibilityLevel"] = given.pop("compatibility")
    return {name: _checked_setting(name, given[name]) for name in CONFIG_FIELDS if name in given}


def read_mode_update(document: object) -> str:
    given = _object(document)
    mode = given.get("mode")
    if not isinstance(mode, str) or mode.upper() not in MODES:
        raise InvalidModeError(f"Invalid mode. Valid values are {', '.join(MODES)}")
    return mode.upper()


def _checked_setting(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "compatibilityLevel":
        if not isinstance(value, str) or value.upper() not in LEVELS:
            raise InvalidLevelError
        return value.upper()
    if name == "compatibilityPolicy":
        if not isinstance(value, str) or value.upper() not in POLICIES:
            raise UnreadableRequestError(f"compatibilityPolicy must be one of {', '.join(POLICIES)}")
        return value.upper()
    if name in ("alias", "compatibilityGroup"):
        if not isinstance(value, str):
            raise UnreadableRequestError(f"{name} must be a string")
        return value or None
    if name.endswith("Metadata"):
        return checked_metadata(value)
    if name.endswith("RuleSet"):
        return checked_rule_set(value)
    if not isinstance(value, bool):
        raise UnreadableRequestError(f"{name} must be true or false")
    return value


def _object(document: object, what: str = "the body") -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise UnreadableRequestError(f"{what} must be a JSON object")
    return document


def _text(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    if value is not None and not isinstance(value, str):
        raise UnreadableRequestError(f"{name} must be a string")
    return value


def _number(document: Mapping[str, Any], name: str) -> int | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not -INT32_MAX <= value <= INT32_MAX:
        raise UnreadableRequestError(f"{name} must be a whole number of 32 bits")
    return value


def _references(document: object) -> tuple[SchemaReference, ...]:
    if document is None:
        return ()
    if not isinstance(document, list):
        raise UnreadableRequestError("references must be a list")
    return tuple(_reference(entry) for entry in document)


def _reference(document: object) -> SchemaReference:
    given = _object(document, "a reference")
    name, subject, version = _text(given, "name"), _text(given, "subject"), _number(given, "version")
    if not name or not subject or version is None:
        raise UnreadableRequestError("a reference needs a name, a subject and a version")
    return SchemaReference(name, subject, version)
