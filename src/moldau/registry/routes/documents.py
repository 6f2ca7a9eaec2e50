"""Response documents in the configured dialect, without empty fields. Pure functions.

Start at `schema_document`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.registry.entities import AVRO, SchemaVersion
from moldau.registry.records import CONFIG_FIELDS
from moldau.registry.settings import Dialect
from moldau.registry.subjects import context_of, in_context

__all__ = [
    "config_document",
    "config_update_document",
    "register_document",
    "schema_document",
    "schema_string_document",
    "without_empty",
]


def schema_document(
    schema: SchemaVersion,
    dialect: Dialect,
    *,
    text: str | None = None,
    qualifies: bool = False,
    aliases: list[str] | None = None,
) -> dict[str, Any]:
    """A complete version. `text` replaces the stored text, `qualifies` adds the context to references."""
    common = _common(schema, dialect, text=text, qualifies=qualifies)
    return without_empty(
        {"subject": schema.subject, "version": schema.version, "id": schema.id, **common, "aliases": aliases}
    )


def schema_string_document(
    schema: SchemaVersion,
    dialect: Dialect,
    *,
    text: str | None = None,
    qualifies: bool = False,
    max_id: int | None = None,
    names_subject: bool = True,
) -> dict[str, Any]:
    """A schema found by id or guid; the 7.x dialect has no subject and version here."""
    common = _common(schema, dialect, text=text, qualifies=qualifies)
    place = {"subject": schema.subject, "version": schema.version}
    shows_place = dialect is Dialect.V8 and names_subject
    return without_empty({**(place if shows_place else {}), **common, "maxId": max_id})


def register_document(schema: SchemaVersion, dialect: Dialect, *, text: str | None = None) -> dict[str, Any]:
    if dialect is Dialect.V7:
        return {"id": schema.id}
    return without_empty(
        {"id": schema.id, "version": schema.version, **_common(schema, dialect, text=text, qualifies=False)}
    )


def config_document(config: Mapping[str, Any]) -> dict[str, Any]:
    return without_empty({name: config.get(name) for name in CONFIG_FIELDS})


def config_update_document(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with the level under its name in requests (`compatibility`)."""
    return {
        "compatibility" if name == "compatibilityLevel" else name: value
        for name, value in config_document(config).items()
    }


def without_empty(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without `None` and empty fields; `False` and 0 are kept."""
    return {name: value for name, value in document.items() if value is not None and value not in ("", [], {}, ())}


def _common(schema: SchemaVersion, dialect: Dialect, *, text: str | None, qualifies: bool) -> dict[str, Any]:
    is_new = dialect is Dialect.V8
    return {
        "guid": schema.guid if is_new else None,
        "schemaType": schema.schema_type if is_new or schema.schema_type != AVRO else None,
        "references": _references(schema, qualifies=qualifies),
        "metadata": schema.metadata,
        "ruleSet": schema.rule_set,
        "schema": schema.schema if text is None else text,
        "ts": schema.timestamp_ms if is_new else None,
        "deleted": schema.is_deleted if is_new else None,
    }


def _references(schema: SchemaVersion, *, qualifies: bool) -> list[dict[str, Any]]:
    context = context_of(schema.subject)
    return [
        {
            "name": reference.name,
            "subject": in_context(context, reference.subject) if qualifies else reference.subject,
            "version": reference.version,
        }
        for reference in schema.references
    ]
