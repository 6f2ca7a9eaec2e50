"""Requests to a running registry, in few words. Start at `Http`."""

from __future__ import annotations

import json
from typing import Any

import httpx

__all__ = ["Http"]


class Http:
    """Calls that answer with status and document; of a refusal the numeric code alone."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=30)

    def __enter__(self) -> Http:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def register(self, subject: str, schema: Any, **fields: Any) -> Any:
        """Register something that must be accepted; the answer."""
        status, answer = self.call("POST", f"/subjects/{subject}/versions", {"schema": _text(schema), **fields})
        assert status == 200, answer
        return answer

    def post(self, path: str, schema: Any, **fields: Any) -> tuple[int, Any]:
        return self.call("POST", path, {"schema": _text(schema), **fields})

    def get(self, path: str) -> tuple[int, Any]:
        return self.call("GET", path)

    def put(self, path: str, document: Any) -> tuple[int, Any]:
        return self.call("PUT", path, document)

    def delete(self, path: str) -> tuple[int, Any]:
        return self.call("DELETE", path)

    def call(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        answer = self._client.request(method, path, json=document)
        content = answer.json() if answer.content else None
        return answer.status_code, content["error_code"] if answer.status_code >= 400 else content


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)
