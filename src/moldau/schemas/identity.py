"""The identity of schemas: a digest of text, references, metadata and rules, and the guid made from it.

Every registry computes the same guid for the same schema, so that data can carry it from cluster to
cluster. Start at `digest`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

__all__ = ["SchemaReference", "digest", "guid"]


@dataclass(frozen=True, slots=True, order=True)
class SchemaReference:
    """A schema's name for another schema, with the subject and version under which a registry has it."""

    name: str
    """Avro: a full name. JSON Schema: the text of a `$ref`. Protobuf: the path of an import."""

    subject: str
    version: int


def digest(
    text: str,
    references: Iterable[SchemaReference] = (),
    metadata: Mapping[str, Any] | None = None,
    rule_set: Mapping[str, Any] | None = None,
) -> bytes:
    """Sixteen bytes that are equal for two schemas exactly if a registry should give them the same id.

    `metadata` and `rule_set` are the registry's JSON objects; `None` differs from an empty one.
    """
    hashed = hashlib.md5(text.encode(), usedforsecurity=False)
    for reference in references:
        hashed.update(reference.name.encode() + reference.subject.encode())
        hashed.update((reference.version & 0xFFFFFFFF).to_bytes(4, "big"))
    if metadata is not None:
        hashed.update(b"\x01" + "".join(_metadata_words(metadata)).encode())
    if rule_set is not None:
        hashed.update(b"\x01" + b"".join(_rule_bytes(rule) for rule in _rules(rule_set)))
    return hashed.digest()


def guid(digest: bytes) -> str:
    """The digest as a UUID's text, which identifies the schema in header transport."""
    return str(UUID(bytes=digest))


def _metadata_words(metadata: Mapping[str, Any]) -> Iterator[str]:
    for path, tags in sorted((metadata.get("tags") or {}).items()):
        yield path
        yield from sorted(set(tags))
    for key, value in sorted((metadata.get("properties") or {}).items()):
        yield f"{key}{value}"
    yield from sorted(set(metadata.get("sensitive") or ()))


def _rules(rule_set: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for kind in ("migrationRules", "domainRules", "encodingRules"):
        yield from rule_set.get(kind) or ()


def _rule_bytes(rule: Mapping[str, Any]) -> bytes:
    words = [rule.get("name"), rule.get("doc"), rule.get("kind") or "TRANSFORM", rule.get("mode") or "WRITEREAD"]
    words += [rule.get("type"), *sorted(set(rule.get("tags") or ()))]
    for key, value in sorted((rule.get("params") or {}).items()):
        words += [key, value]
    words += [rule.get("expr"), rule.get("onSuccess"), rule.get("onFailure")]
    text = "".join(word for word in words if word is not None)
    return text.encode() + (b"\x01" if rule.get("disabled") else b"")
