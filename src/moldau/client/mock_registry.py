"""A schema registry inside the process, for tests: `schema.registry.url=mock://any-name`.

Whoever gives the same name in the same process meets the same registry, as with Confluent's clients. It answers what
serdes ask, judges compatibility (backward) and forgets everything with the process. Real ones are `moldau.registry`
and `moldau.testing.SchemaRegistry`. Start at `MockRegistry.ask`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from moldau.client.registry_http import RegistryRefusalError
from moldau.schemas.compatibility import CompatibilityLevel, check
from moldau.schemas.errors import SchemaError
from moldau.schemas.schema import ParsedSchema, parse

__all__ = ["MockRegistry", "mock_registry"]

_SUBJECT_NOT_FOUND, _VERSION_NOT_FOUND, _SCHEMA_NOT_FOUND = 40401, 40402, 40403
_INCOMPATIBLE, _INVALID = 40901, 42201

_Identity = tuple[str, str, str]
"""Type, canonical text and references: schemas that are alike in these have one id."""


@dataclass(frozen=True, slots=True)
class _Registered:
    document: Mapping[str, Any]
    parsed: ParsedSchema


@dataclass
class MockRegistry:
    """Schemas by id and by subject; the requests are those of the HTTP API. May be used by any thread."""

    _by_id: list[_Registered] = field(default_factory=list)
    _ids: dict[_Identity, int] = field(default_factory=dict)
    _versions: dict[str, list[int]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request; raises `RegistryRefusalError` with the number that a registry gives."""
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        with self._lock:
            match method, parts:
                case "GET", ["subjects"]:
                    return sorted(self._versions)
                case "GET", ["schemas", "ids", number]:
                    return self._schema(int(number))
                case "GET", ["subjects", subject, "versions", version]:
                    return self._version(subject, version)
                case "POST", ["subjects", subject, "versions"]:
                    return self._register(subject, body)
                case "POST", ["subjects", subject]:
                    return self._look_up(subject, body)
        raise RegistryRefusalError(f"a mock:// registry does not answer {method} {path}", 404, 404)

    def _schema(self, number: int) -> Mapping[str, Any]:
        if not 0 < number <= len(self._by_id):
            raise _refusal(f"Schema {number} not found", _SCHEMA_NOT_FOUND)
        return self._by_id[number - 1].document

    def _version(self, subject: str, version: str) -> Mapping[str, Any]:
        ids = self._versions_of(subject)
        number = len(ids) if version == "latest" else int(version)
        if not 0 < number <= len(ids):
            raise _refusal(f"Version {version} not found", _VERSION_NOT_FOUND)
        return {**self._by_id[ids[number - 1] - 1].document, "id": ids[number - 1], "version": number}

    def _register(self, subject: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        parsed = self._parsed(body)
        identity = _identity(parsed, body)
        ids = self._versions.get(subject, [])
        if (known := self._ids.get(identity)) is not None and known in ids:
            return {"id": known}
        previous = [self._by_id[number - 1].parsed for number in reversed(ids)]
        if found := check(CompatibilityLevel.BACKWARD, parsed, previous):
            details = ", ".join(map(str, found))
            raise _refusal(
                f'Schema being registered is incompatible with an earlier one of subject "{subject}": {details}',
                _INCOMPATIBLE,
            )
        if known is None:
            known = self._ids[identity] = len(self._by_id) + 1
            document = {**body, "schemaType": parsed.schema_type.value, "schema": parsed.canonical}
            self._by_id.append(_Registered(document, parsed))
        self._versions.setdefault(subject, []).append(known)
        return {"id": known}

    def _look_up(self, subject: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        ids = self._versions_of(subject)
        known = self._ids.get(_identity(self._parsed(body), body))
        if known not in ids:
            raise _refusal("Schema not found", _SCHEMA_NOT_FOUND)
        return {"id": known}

    def _versions_of(self, subject: str) -> list[int]:
        if subject not in self._versions:
            raise _refusal(f"Subject '{subject}' not found.", _SUBJECT_NOT_FOUND)
        return self._versions[subject]

    def _parsed(self, body: Mapping[str, Any]) -> ParsedSchema:
        try:
            return parse(body.get("schemaType"), body["schema"], self._resolved(body.get("references") or ()))
        except SchemaError as error:
            raise _refusal(f"Invalid schema: {error}", _INVALID) from None

    def _resolved(self, references: Any) -> dict[str, ParsedSchema | str]:
        found: dict[str, ParsedSchema | str] = {}
        for one in references:
            document = self._version(one["subject"], "latest" if one["version"] == -1 else str(one["version"]))
            found = {**found, **self._resolved(document.get("references") or ()), one["name"]: document["schema"]}
        return found


_registries: dict[str, MockRegistry] = {}
_registries_lock = threading.Lock()


def mock_registry(url: str) -> MockRegistry:
    """The registry of this process that a `mock://` URL names."""
    with _registries_lock:
        return _registries.setdefault(url, MockRegistry())


def _identity(parsed: ParsedSchema, body: Mapping[str, Any]) -> _Identity:
    return parsed.schema_type.value, parsed.canonical, repr(body.get("references") or ())


def _refusal(message: str, code: int) -> RegistryRefusalError:
    return RegistryRefusalError(f"{message} (schema registry, error code {code})", code // 100, code)
