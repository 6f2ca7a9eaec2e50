"""Compatibility of a schema with earlier versions of its subject, with error messages. Start at `incompatibilities`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moldau.registry.decisions.candidates import Candidate, build_candidate
from moldau.registry.entities import SchemaVersion
from moldau.registry.errors import MAX_SHOWN_CHARACTERS, InvalidSchemaTextError, VersionNotFoundError
from moldau.registry.metadata import Metadata, property_of
from moldau.registry.parsing.parser import Parser
from moldau.registry.requests import RegisterRequest
from moldau.registry.scopes import effective_config, scope_of
from moldau.registry.state import State
from moldau.schemas.compatibility import CompatibilityLevel, CompatibilityPolicy
from moldau.schemas.errors import SchemaError

__all__ = ["check_version", "incompatibilities"]

MAX_MESSAGES = 200
RESERVED_PROPERTY = "confluent:reserved"


def incompatibilities(
    state: State, parser: Parser, new: Candidate, previous: Sequence[SchemaVersion], config: Mapping[str, Any]
) -> tuple[str, ...]:
    """Why `new` is incompatible with `previous` (newest first) at the configured level; empty if it is compatible."""
    level = CompatibilityLevel.of(config["compatibilityLevel"])
    validates = bool(config.get("validateFields"))
    messages = list(_reserved_fields(new, previous)) if validates else []
    compared = _comparable(new, previous, config.get("compatibilityGroup"))
    policy = CompatibilityPolicy(config.get("compatibilityPolicy", "STRICT"))
    try:
        found = parser.check(state, new.parsed, new.as_version(0, 0), compared, level=level, policy=policy)
    except SchemaError as error:
        raise InvalidSchemaTextError(str(error)) from error
    messages += [finding.message for finding in found[:MAX_MESSAGES]]
    if len(found) > MAX_MESSAGES:
        messages.append(f"{{omitted: {len(found) - MAX_MESSAGES} more incompatibilities}}")
    if found:
        old = compared[found[0].against]
        messages.append(f"{{oldSchemaVersion: {old.version}}}")
        messages.append(f"{{oldSchema: '{old.schema[:MAX_SHOWN_CHARACTERS]}'}}")
    if messages:
        messages.append(f"{{validateFields: '{str(validates).lower()}', compatibility: '{level}'}}")
    return tuple(messages)


def check_version(
    state: State,
    parser: Parser,
    subject: str,
    request: RegisterRequest,
    version: int | None,
    *,
    defaults: Mapping[str, Any],
    normalize: bool = False,
) -> tuple[str, ...]:
    """The same check without registering: against one version (-1: the latest), or (`None`) as when registering."""
    config = effective_config(state, scope_of(subject), defaults)
    live = state.live_versions(subject)[::-1]
    if version is not None:
        live = live[:1] if version == -1 else [schema for schema in live if schema.version == version]
        if not live and version != -1:
            raise VersionNotFoundError(version)
    new = build_candidate(state, parser, subject, request, config, normalize=normalize, is_new=True)
    return incompatibilities(state, parser, new, live, config)


def _comparable(new: Candidate, previous: Sequence[SchemaVersion], group: str | None) -> list[SchemaVersion]:
    """The versions of the same compatibility group (same value of the configured property), or all without groups."""
    if group is None:
        return list(previous)
    wanted = property_of(new.metadata, group)
    return [old for old in previous if property_of(old.metadata, group) == wanted]


def _reserved_fields(new: Candidate, previous: Sequence[SchemaVersion]) -> list[str]:
    """Violations of reserved names in the metadata: they must stay reserved, and no field may use them."""
    reserved = _reserved_names(new.metadata)
    dropped = sorted(_reserved_names(previous[0].metadata) - reserved) if previous else []
    messages = [f"The reserved field {name} of the version before is not reserved any more" for name in dropped]
    used = sorted(reserved & new.parsed.top_level_fields)
    return messages + [f"The field {name} has a reserved name" for name in used]


def _reserved_names(metadata: Metadata | None) -> frozenset[str]:
    listed = property_of(metadata, RESERVED_PROPERTY) or ""
    return frozenset(name.strip() for name in listed.split(",") if name.strip())
