"""The schema registry of a case, with ids as the case gives them: in memory, or the real one behind `mock://`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from moldau.formats.format import format_named
from moldau.pipeline.ksql.trial.registry import MemoryRegistry as CaseRegistry
from moldau.registry.mock import mock_registry

__all__ = ["CaseRegistry", "register_schemas"]


def register_schemas(url: str, topic: Mapping[str, Any]) -> None:
    """Register the schemas of a topic's keys and values in a registry of this process, under the case's ids."""
    registry = mock_registry(url)
    for part in ("key", "value"):
        if f"{part}Schema" not in topic:
            continue
        schema_type = _schema_type(topic.get(f"{part}Format"))
        references = []
        for one in topic.get(f"{part}SchemaReferences", ()):
            body = {"schema": _text(one["schema"]), "schemaType": schema_type}
            registry.ask("POST", f"/subjects/{one['name']}/versions", body)
            references.append({"name": one["name"], "subject": one["name"], "version": 1})
        body = {"schema": _text(topic[f"{part}Schema"]), "schemaType": schema_type, "references": references}
        subject = f"{topic['name']}-{part}"
        schema_id = topic.get(f"{part}SchemaId")
        if schema_id is not None:
            registry.ask("PUT", f"/mode/{subject}?force=true", {"mode": "IMPORT"})
            body |= {"id": int(schema_id), "version": 1}
        registry.ask("POST", f"/subjects/{subject}/versions", body)
        if schema_id is not None:
            registry.ask("PUT", f"/mode/{subject}", {"mode": "READWRITE"})


def _text(schema: Any) -> str:
    """Protobuf is given as text, the others as JSON; an Avro primitive is given by its bare name."""
    if isinstance(schema, str):
        is_proto = "message" in schema or "syntax" in schema
        return schema if is_proto or schema.startswith(("{", "[", '"')) else json.dumps(schema)
    return json.dumps(schema, default=float)


def _schema_type(name: Any) -> str:
    if name is None:
        return "AVRO"
    found = format_named(str(name)).schema_type
    # Some cases call JSON_SR by the registry's own name for the type.
    return "JSON" if found is None else str(found)
