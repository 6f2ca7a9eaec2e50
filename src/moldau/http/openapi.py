"""A service's OpenAPI document, generated from its endpoints. Start at `openapi_document`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from moldau.http.endpoints import AnyEndpoint, Endpoint, Parameter, WebSocketEndpoint
from moldau.http.negotiation import MediaTypes

__all__ = ["openapi_document"]

_ANY_TEXT = {"type": "string", "minLength": 1}


def openapi_document(
    endpoints: Iterable[AnyEndpoint],
    *,
    title: str,
    version: str,
    description: str,
    schemas: Mapping[str, Any],
    error: Mapping[str, Any],
    media_types: MediaTypes,
) -> dict[str, Any]:
    """Describe all endpoints. `schemas` are the documents they refer to, `error` is the schema of every error.

    Endpoints that share a method and a path become one operation with the content types of all.
    """
    paths: dict[str, dict[str, Any]] = {}
    formats = _Formats(media_types, error)
    for endpoint in endpoints:
        path = paths.setdefault(endpoint.path, {})
        if isinstance(endpoint, WebSocketEndpoint):
            path.setdefault("get", _socket_operation(endpoint))
        elif endpoint.method.lower() in path:
            _merge(path[endpoint.method.lower()], formats.operation(endpoint))
        else:
            path[endpoint.method.lower()] = formats.operation(endpoint)
    return {
        "openapi": "3.0.3",
        "info": {"title": title, "version": version, "description": description},
        "paths": paths,
        "components": {"schemas": dict(schemas)},
    }


class _Formats:
    def __init__(self, media_types: MediaTypes, error: Mapping[str, Any]) -> None:
        self._media_types, self._error = media_types, error

    def operation(self, endpoint: Endpoint) -> dict[str, Any]:
        operation: dict[str, Any] = {
            "operationId": _operation_id(endpoint.method.lower(), endpoint.path),
            "summary": endpoint.summary,
            "parameters": [*_parts(endpoint), *(_parameter(one, "query") for one in endpoint.parameters)],
            "responses": self._responses(endpoint),
        }
        if endpoint.tag:
            operation["tags"] = [endpoint.tag]
        if endpoint.body is not None:
            content = {
                media_type: {"schema": endpoint.body}
                for media_type in _documented_body_types(endpoint.media_types or self._media_types)
            }
            operation["requestBody"] = {"required": True, "content": content}
        return operation

    def _responses(self, endpoint: Endpoint) -> dict[str, Any]:
        good: dict[str, Any] = {"description": HTTPStatus(endpoint.status).phrase}
        if endpoint.reply is not None:
            produced = (endpoint.media_types or self._media_types).produced
            good["content"] = {media_type: {"schema": endpoint.reply} for media_type in produced}
        responses = {str(endpoint.status): good}
        for status, reasons in sorted(endpoint.refusals.items()):
            content = {media_type: {"schema": self._error} for media_type in self._media_types.produced}
            responses[str(status)] = {"description": reasons, "content": content}
        return responses


def _documented_body_types(media_types: MediaTypes) -> list[str]:
    """Content types of bodies to document; octet streams are read as JSON too, but that is not documented."""
    return sorted(media_types.consumed - {"application/octet-stream"})


def _socket_operation(endpoint: WebSocketEndpoint) -> dict[str, Any]:
    return {
        "operationId": _operation_id("websocket", endpoint.path),
        "summary": f"{endpoint.summary} (WebSocket)",
        "parameters": [*_parts(endpoint), *(_parameter(one, "query") for one in endpoint.parameters)],
        "responses": {"101": {"description": HTTPStatus.SWITCHING_PROTOCOLS.phrase}},
        **({"tags": [endpoint.tag]} if endpoint.tag else {}),
    }


def _merge(operation: dict[str, Any], other: Mapping[str, Any]) -> None:
    """Add the content types of another row with the same method and path."""
    if "requestBody" in other:
        body = operation.setdefault("requestBody", {"required": True, "content": {}})
        body["content"] = {**other["requestBody"]["content"], **body["content"]}
    for status, response in other["responses"].items():
        had = operation["responses"].setdefault(status, response)
        if "content" in response:
            had["content"] = {**response["content"], **had.get("content", {})}
    names = {parameter["name"] for parameter in operation["parameters"]}
    operation["parameters"] += [parameter for parameter in other["parameters"] if parameter["name"] not in names]


def _parts(endpoint: AnyEndpoint) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)\}", endpoint.path)
    return [_parameter(endpoint.parts.get(name, Parameter(name, "", _ANY_TEXT)), "path") for name in names]


def _parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    schema = {"type": "array", "items": parameter.schema} if parameter.is_repeatable else parameter.schema
    described = {"name": parameter.name, "in": place, "description": parameter.description, "schema": schema}
    return {**described, "required": True} if place == "path" else described


def _operation_id(method: str, path: str) -> str:
    words = re.findall(r"\w+", path)
    return "_".join([method, *words]) if words else f"{method}_root"
