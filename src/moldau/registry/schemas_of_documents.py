"""JSON schemas of what is sent and received, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "ANYTHING",
    "COMPATIBILITY",
    "CONFIG",
    "CONFIG_UPDATE",
    "CONTEXT_IDS",
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
    "definitions",
]

Document = dict[str, Any]

TEXT: Final[Document] = {"type": "string"}
NUMBER: Final[Document] = {"type": "integer", "format": "int32"}
FLAG: Final[Document] = {"type": "boolean"}
ANYTHING: Final[Document] = {}
EMPTY_OBJECT: Final[Document] = {"type": "object"}


def _list_of(items: Document) -> Document:
    return {"type": "array", "items": items}


def _named(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: tuple[str, ...] = (), /, **properties: Document) -> Document:
    document: Document = {"type": "object", "properties": properties}
    return {**document, "required": list(required)} if required else document


def _closed(document: Document) -> Document:
    return {**document, "additionalProperties": False}


NAMES: Final = _list_of(TEXT)
NUMBERS: Final = _list_of(NUMBER)
ERROR: Final = _named("Error")
SCHEMA: Final = _named("Schema")
SCHEMAS: Final = _list_of(SCHEMA)
SCHEMA_STRING: Final = _named("SchemaString")
REGISTER_REQUEST: Final = _named("RegisterRequest")
REGISTER_RESPONSE: Final = _named("RegisterResponse")
TAG_REQUEST: Final = _named("TagRequest")
CONFIG: Final = _named("Config")
CONFIG_UPDATE: Final = _named("ConfigUpdate")
MODE: Final = _named("Mode")
COMPATIBILITY: Final = _named("CompatibilityResult")
SUBJECT_VERSIONS: Final = _list_of(_named("SubjectVersion"))
CONTEXT_IDS: Final = _list_of(_named("ContextId"))

_LEVEL: Final[Document] = {
    "type": "string",
    "enum": [
        "NONE",
        "BACKWARD",
        "BACKWARD_TRANSITIVE",
        "FORWARD",
        "FORWARD_TRANSITIVE",
        "FULL",
        "FULL_TRANSITIVE",
    ],
}
_SETTINGS: Final[dict[str, Document]] = {
    "alias": TEXT,
    "normalize": FLAG,
    "validateFields": FLAG,
    "validateNewSchemas": FLAG,
    "validateRules": FLAG,
    "compatibilityPolicy": {"type": "string", "enum": ["STRICT", "LENIENT", "LOGICAL"]},
    "compatibilityGroup": TEXT,
    "defaultMetadata": _named("Metadata"),
    "overrideMetadata": _named("Metadata"),
    "defaultRuleSet": _named("RuleSet"),
    "overrideRuleSet": _named("RuleSet"),
}
_EXTRAS: Final[dict[str, Document]] = {
    "guid": TEXT,
    "schemaType": TEXT,
    "references": _list_of(_named("SchemaReference")),
    "metadata": _named("Metadata"),
    "ruleSet": _named("RuleSet"),
    "schema": TEXT,
    "ts": {"type": "integer", "format": "int64"},
    "deleted": FLAG,
}


def definitions() -> dict[str, Document]:
    """The documents that endpoints name."""
    rule = _object(
        ("name", "type"),
        name=TEXT,
        doc=TEXT,
        kind={"type": "string", "enum": ["TRANSFORM", "CONDITION"]},
        mode={"type": "string", "enum": ["UPGRADE", "DOWNGRADE", "UPDOWN", "WRITE", "READ", "WRITEREAD"]},
        type=TEXT,
        tags=NAMES,
        params={"type": "object", "additionalProperties": TEXT},
        expr=TEXT,
        onSuccess=TEXT,
        onFailure=TEXT,
        disabled=FLAG,
    )
    rules = _list_of(_named("Rule"))
    return {
        "Error": _object(("error_code", "message"), error_code=NUMBER, message=TEXT),
        "SchemaReference": _closed(_object(("name", "subject", "version"), name=TEXT, subject=TEXT, version=NUMBER)),
        "Metadata": _object(
            tags={"type": "object", "additionalProperties": NAMES},
            properties={"type": "object", "additionalProperties": TEXT},
            sensitive=NAMES,
        ),
        "Rule": rule,
        "RuleSet": _object(migrationRules=rules, domainRules=rules, encodingRules=rules, enableAt=TEXT),
        "RegisterRequest": _closed(
            _object(
                schema=TEXT,
                schemaType={"type": "string", "enum": ["AVRO", "JSON", "PROTOBUF"]},
                references=_EXTRAS["references"],
                metadata=_named("Metadata"),
                ruleSet=_named("RuleSet"),
                version=NUMBER,
                id=NUMBER,
            )
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
        "TagRequest": _closed(
            _object(
                newVersion=NUMBER,
                metadata=_named("Metadata"),
                ruleSet=_named("RuleSet"),
                rulesToMerge=_named("RuleSet"),
                rulesToRemove=NAMES,
            )
        ),
        "Config": _object(compatibilityLevel=_LEVEL, **_SETTINGS),
        "ConfigUpdate": _closed(_object(compatibility=_LEVEL, **_SETTINGS)),
        "Mode": _closed(
            _object(
                ("mode",),
                mode={"type": "string", "enum": ["READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"]},
            )
        ),
        "CompatibilityResult": _object(("is_compatible",), is_compatible=FLAG, messages=NAMES),
        "SubjectVersion": _object(("subject", "version"), subject=TEXT, version=NUMBER),
        "ContextId": _object(("context", "id"), context=TEXT, id=NUMBER),
    }
