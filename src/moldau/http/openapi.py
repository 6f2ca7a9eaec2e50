"""A service's OpenAPI document, made of its endpoints. Start at `openapi_document`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from moldau.http.endpoints import Endpoint, Parameter

__all__ = ["openapi_document"]

_ANY_TEXT = {"type": "string", "minLength": 1}


def openapi_document(
    endpoints: Iterable[Endpoint],
    *,
    title: str,
    version: str,
    description: str,
    schemas: Mapping[str, Any],
    error: Mapping[str, Any],
    produced: Iterable[str],
    consumed: Iterable[str],
) -> dict[str, Any]:
    """Describe all endpoints. `schemas` are the documents they name, `error` is what every refusal looks like."""
    paths: dict[str, dict[str, Any]] = {}
    formats = _Formats(tuple(produced), tuple(consumed), error)
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = formats.operation(endpoint)
    return {
        "openapi": "3.0.3",
        "info": {"title": title, "version": version, "description": description},
        "paths": paths,
        "components": {"schemas": dict(schemas)},
    }


class _Formats:
    def __init__(self, produced: tuple[str, ...], consumed: tuple[str, ...], error: Mapping[str, Any]) -> None:
        self._produced, self._consumed, self._error = produced, consumed, error

    def operation(self, endpoint: Endpoint) -> dict[str, Any]:
        operation: dict[str, Any] = {
            "operationId": _operation_id(endpoint),
            "summary": endpoint.summary,
            "parameters": [*_parts(endpoint), *(_parameter(one, "query") for one in endpoint.parameters)],
            "responses": self._responses(endpoint),
        }
        if endpoint.tag:
            operation["tags"] = [endpoint.tag]
        if endpoint.body is not None:
            content = {media_type: {"schema": endpoint.body} for media_type in self._consumed}
            operation["requestBody"] = {"required": True, "content": content}
        return operation

    def _responses(self, endpoint: Endpoint) -> dict[str, Any]:
        good: dict[str, Any] = {"description": HTTPStatus(endpoint.status).phrase}
        if endpoint.reply is not None:
            media_types = endpoint.media_types or self._produced
            good["content"] = {media_type: {"schema": endpoint.reply} for media_type in media_types}
        responses = {str(endpoint.status): good}
        for status, reasons in sorted(endpoint.refusals.items()):
            content = {media_type: {"schema": self._error} for media_type in self._produced}
            responses[str(status)] = {"description": reasons, "content": content}
        return responses


def _parts(endpoint: Endpoint) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)\}", endpoint.path)
    return [_parameter(endpoint.parts.get(name, Parameter(name, "", _ANY_TEXT)), "path") for name in names]


def _parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    schema = {"type": "array", "items": parameter.schema} if parameter.is_repeatable else parameter.schema
    described = {"name": parameter.name, "in": place, "description": parameter.description, "schema": schema}
    return {**described, "required": True} if place == "path" else described


def _operation_id(endpoint: Endpoint) -> str:
    words = re.findall(r"\w+", endpoint.path)
    return "_".join([endpoint.method.lower(), *words]) if words else f"{endpoint.method.lower()}_root"
