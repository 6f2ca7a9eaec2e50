"""Avro schemas from Connect's, as Connect's Avro converter writes them. Start at `avro_text`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from moldau.connect.api.schemas import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from moldau.formats.registry.data_schema import NO_DEFAULT, DataSchema, Kind
from moldau.formats.values import decimal_to_bytes

__all__ = ["avro_text"]

NAMESPACE: Final = "io.confluent.connect.avro"
DEFAULT_NAME: Final = f"{NAMESPACE}.ConnectDefault"
DEFAULT_PRECISION: Final = 64
PRIMITIVES: Final = {
    Kind.INT8: "int",
    Kind.INT16: "int",
    Kind.INT32: "int",
    Kind.INT64: "long",
    Kind.FLOAT32: "float",
    Kind.FLOAT64: "double",
    Kind.BOOLEAN: "boolean",
    Kind.STRING: "string",
    Kind.BYTES: "bytes",
}
LOGICAL: Final = {DATE_NAME: "date", TIME_NAME: "time-millis", TIMESTAMP_NAME: "timestamp-millis"}


def avro_text(schema: DataSchema, *, has_metadata: bool = True, scrubs: bool = False, has_docs: bool = True) -> str:
    """The Avro schema of a Connect schema."""
    return json.dumps(_Writer(has_metadata, scrubs, has_docs).with_null(schema))


class _Writer:
    def __init__(self, has_metadata: bool, scrubs: bool, has_docs: bool) -> None:
        self._has_metadata = has_metadata
        self._has_docs = has_docs
        self._name: Callable[[str], str] = _scrubbed if scrubs else str
        self._names: dict[str, int] = {}

    def with_null(self, schema: DataSchema) -> Any:
        made = self.of(schema)
        if not schema.is_optional:
            return made
        return [made, "null"] if self._has_default(schema) else ["null", made]

    def _has_default(self, schema: DataSchema) -> bool:
        return self._has_docs and schema.default is not NO_DEFAULT and schema.default is not None

    def of(self, schema: DataSchema) -> Any:
        match schema.kind:
            case Kind.STRUCT:
                made = self._record(schema)
            case Kind.ARRAY:
                made = {"type": "array", "items": self.with_null(schema.element)}
            case Kind.MAP:
                made = self._map(schema)
            case _:
                made = self._primitive(schema)
        self._add_metadata(schema, made)
        return made["type"] if len(made) == 1 else made

    def _primitive(self, schema: DataSchema) -> dict[str, Any]:
        made: dict[str, Any] = {"type": PRIMITIVES[schema.kind]}
        if schema.name == DECIMAL_NAME:
            made["scale"] = int(schema.parameters.get("scale", "0"))
            made["precision"] = int(schema.parameters.get("connect.decimal.precision", DEFAULT_PRECISION))
            made["logicalType"] = "decimal"
        elif schema.name in LOGICAL:
            made["logicalType"] = LOGICAL[schema.name]
        elif schema.kind in (Kind.INT8, Kind.INT16) and self._has_metadata:
            made["connect.type"] = schema.kind.value
        return made

    def _map(self, schema: DataSchema) -> dict[str, Any]:
        assert schema.key is not None
        if schema.key.kind is Kind.STRING and not schema.key.is_optional:
            return {"type": "map", "values": self.with_null(schema.element)}
        fields = [
            {"name": "key", "type": self.with_null(schema.key)},
            {"name": "value", "type": self.with_null(schema.element)},
        ]
        entry = {
            "type": "record",
            **_name_parts(self._unique(f"{NAMESPACE}.MapEntry")),
            "fields": fields,
            "connect.internal.type": "MapEntry",
        }
        return {"type": "array", "items": entry}

    def _record(self, schema: DataSchema) -> dict[str, Any]:
        name = self._unique(self._full_name(schema.name))
        fields = []
        for field in schema.fields:
            made: dict[str, Any] = {"name": self._name(field.name), "type": self.with_null(field.schema)}
            if field.schema.doc is not None and self._has_docs:
                made["doc"] = field.schema.doc
            if self._has_default(field.schema):
                made["default"] = _default(field.schema, field.schema.default)
            elif field.schema.is_optional:
                made["default"] = None
            fields.append(made)
        return {"type": "record", **_name_parts(name), "fields": fields}

    def _full_name(self, name: str | None) -> str:
        if name is None:
            return DEFAULT_NAME
        return ".".join(self._name(part) for part in name.split("."))

    def _unique(self, name: str) -> str:
        """Two structs of one name in one schema: the later ones get a number."""
        self._names[name] = self._names.get(name, 0) + 1
        return name if self._names[name] == 1 else f"{name}{self._names[name]}"

    def _add_metadata(self, schema: DataSchema, made: dict[str, Any]) -> None:
        if not self._has_metadata:
            return
        if schema.version is not None:
            made["connect.version"] = schema.version
        if schema.doc is not None and self._has_docs and schema.kind is Kind.STRUCT:
            made["doc"] = schema.doc
        if schema.parameters:
            made["connect.parameters"] = dict(schema.parameters)
        if schema.name is not None:
            made["connect.name"] = schema.name


def _name_parts(name: str) -> dict[str, str]:
    namespace, _, simple = name.rpartition(".")
    return {"name": simple, "namespace": namespace} if namespace else {"name": simple}


def _scrubbed(name: str) -> str:
    clean = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return clean if not clean[:1].isdigit() else f"_{clean}"


def _default(schema: DataSchema, value: Any) -> Any:
    match value:
        case Decimal():
            return decimal_to_bytes(value).decode("latin-1")
        case bytes():
            return value.decode("latin-1")
        case dict() if schema.kind is Kind.STRUCT:
            return {field.name: _default(field.schema, value.get(field.name)) for field in schema.fields}
        case dict():
            return {key: _default(schema.element, one) for key, one in value.items()}
        case list():
            return [_default(schema.element, one) for one in value]
    return value
