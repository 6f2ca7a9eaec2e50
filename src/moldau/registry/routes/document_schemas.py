"""JSON schemas of requests and responses, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

from moldau.registry.entities import SCHEMA_TYPES
from moldau.registry.metadata import RULE_KINDS, RULE_MODES
from moldau.registry.requests import POLICIES
from moldau.registry.scopes import LEVELS, MODES

__all__ = [
    "ANYTHING",
    "COMPATIBILITY",
    "CONFIG",
    "CONFIG_UPDATE",
    "CONTEXT_IDS",
    "DEFINITIONS",
    "EMPTY_OBJECT",
    "ERROR",
    "MODE",
    "NAMES",
    "NUMBER",
    "NUMBERS",
    "REGISTER_REQUEST",
    "REGISTER_RESPONSE",
    "SCHEMA",
    "SCHEMAS",
    "SCHEMA_STRING",
    "SUBJECT_VERSIONS",
    "TAG_REQUEST",
]

Document = dict[str, Any]

TEXT: Final[Document] = {"type": "string"}
NUMBER: Final[Document] = {"type": "integer", "format": "int32"}
FLAG: Final[Document] = {"type": "boolean"}
ANYTHING: Final[Document] = {}
EMPTY_OBJECT: Final[Document] = {"type": "object"}


def _list_of(items: Document) -> Document:
    return {"type": "array", "items": items}


def _one_of(words: Iterable[str]) -> Document:
    return {"type": "string", "enum": list(words)}


def _by_name(values: Document) -> Document:
    return {"type": "object", "additionalProperties": values}


def _reference_to(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: tuple[str, ...] = (), /, **properties: Document) -> Document:
    document: Document = {"type": "object", "properties": properties}
    return {**document, "required": list(required)} if required else document


NAMES: Final = _list_of(TEXT)
NUMBERS: Final = _list_of(NUMBER)
ERROR: Final = _reference_to("Error")
SCHEMA: Final = _reference_to("Schema")
SCHEMAS: Final = _list_of(SCHEMA)
SCHEMA_STRING: Final = _reference_to("SchemaString")
REGISTER_REQUEST: Final = _reference_to("RegisterRequest")
REGISTER_RESPONSE: Final = _reference_to("RegisterResponse")
TAG_REQUEST: Final = _reference_to("TagRequest")
CONFIG: Final = _reference_to("Config")
CONFIG_UPDATE: Final = _reference_to("ConfigUpdate")
MODE: Final = _reference_to("Mode")
COMPATIBILITY: Final = _reference_to("CompatibilityResult")
SUBJECT_VERSIONS: Final = _list_of(_reference_to("SubjectVersion"))
CONTEXT_IDS: Final = _list_of(_reference_to("ContextId"))

_METADATA, _RULE_SET, _RULES = _reference_to("Metadata"), _reference_to("RuleSet"), _list_of(_reference_to("Rule"))
_LEVEL: Final = _one_of(LEVELS)
_SETTINGS: Final[dict[str, Document]] = {
    "alias": TEXT,
    "normalize": FLAG,
    "validateFields": FLAG,
    "validateNewSchemas": FLAG,
    "validateRules": FLAG,
    "compatibilityPolicy": _one_of(POLICIES),
    "compatibilityGroup": TEXT,
    "defaultMetadata": _METADATA,
    "overrideMetadata": _METADATA,
    "defaultRuleSet": _RULE_SET,
    "overrideRuleSet": _RULE_SET,
}
_EXTRAS: Final[dict[str, Document]] = {
    "guid": TEXT,
    "schemaType": TEXT,
    "references": _list_of(_reference_to("SchemaReference")),
    "metadata": _METADATA,
    "ruleSet": _RULE_SET,
    "schema": TEXT,
    "ts": {"type": "integer", "format": "int64"},
    "deleted": FLAG,
}

_PARTS: Final[dict[str, Document]] = {
    "Error": _object(("error_code", "message"), error_code=NUMBER, message=TEXT),
    "SchemaReference": _object(("name", "subject", "version"), name=TEXT, subject=TEXT, version=NUMBER),
    "Metadata": _object(tags=_by_name(NAMES), properties=_by_name(TEXT), sensitive=NAMES),
    "Rule": _object(
        ("name", "type"),
        name=TEXT,
        doc=TEXT,
        kind=_one_of(RULE_KINDS),
        mode=_one_of(dict.fromkeys(chain.from_iterable(RULE_MODES.values()))),
        type=TEXT,
        tags=NAMES,
        params=_by_name(TEXT),
        expr=TEXT,
        onSuccess=TEXT,
        onFailure=TEXT,
        disabled=FLAG,
    ),
    "RuleSet": _object(migrationRules=_RULES, domainRules=_RULES, encodingRules=_RULES, enableAt=TEXT),
}
_OF_SCHEMAS: Final[dict[str, Document]] = {
    "RegisterRequest": _object(
        schema=TEXT,
        schemaType=_one_of(sorted(SCHEMA_TYPES)),
        references=_EXTRAS["references"],
        metadata=_METADATA,
        ruleSet=_RULE_SET,
        version=NUMBER,
        id=NUMBER,
    ),
    "RegisterResponse": _object(("id",), id=NUMBER, version=NUMBER, **_EXTRAS),
    "Schema": _object(
        ("subject", "version", "id", "schema"),
        subject=TEXT,
        version=NUMBER,
        id=NUMBER,
        aliases=NAMES,
        **_EXTRAS,
    ),
    "SchemaString": _object(("schema",), subject=TEXT, version=NUMBER, maxId=NUMBER, **_EXTRAS),
    "TagRequest": _object(
        newVersion=NUMBER,
        metadata=_METADATA,
        ruleSet=_RULE_SET,
        rulesToMerge=_RULE_SET,
        rulesToRemove=NAMES,
    ),
}
_OF_SETTINGS: Final[dict[str, Document]] = {
    "Config": _object(compatibilityLevel=_LEVEL, **_SETTINGS),
    "ConfigUpdate": _object(compatibility=_LEVEL, **_SETTINGS),
    "Mode": _object(("mode",), mode=_one_of(MODES)),
}
_OF_FINDINGS: Final[dict[str, Document]] = {
    "CompatibilityResult": _object(("is_compatible",), is_compatible=FLAG, messages=NAMES),
    "SubjectVersion": _object(("subject", "version"), subject=TEXT, version=NUMBER),
    "ContextId": _object(("context", "id"), context=TEXT, id=NUMBER),
}
DEFINITIONS: Final[dict[str, Document]] = {**_PARTS, **_OF_SCHEMAS, **_OF_SETTINGS, **_OF_FINDINGS}
"""All named schemas that endpoints refer to."""
