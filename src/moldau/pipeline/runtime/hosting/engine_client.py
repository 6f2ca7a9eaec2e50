"""Asks an engine process over its control channel. Methods block; start at `EngineClient`."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote

from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.hosting.engine_files import EngineAddress
from moldau.pipeline.runtime.hosting.host import PipelineSpec

__all__ = ["EngineClient", "EngineError", "EngineUnreachableError"]

TIMEOUT_S = 90.0
"""Stopping a pipeline waits for the batch under way, and for brokers."""


class EngineError(MoldauError):
    """The engine refused a request."""


class EngineUnreachableError(EngineError):
    """The engine does not answer: it starts, has ended or was killed."""


class EngineClient:
    def __init__(self, address: EngineAddress, *, timeout_s: float = TIMEOUT_S) -> None:
        self.address = address
        self._timeout_s = timeout_s

    def pipelines(self) -> list[dict[str, Any]]:
        """All pipelines with their states."""
        found: list[dict[str, Any]] = self._ask("GET", "/pipelines")
        return found

    def pipeline(self, name: str) -> dict[str, Any]:
        """One pipeline, with its metrics."""
        found: dict[str, Any] = self._ask("GET", f"/pipelines/{quote(name, safe='')}")
        return found

    def put(self, spec: PipelineSpec) -> None:
        """Run this pipeline; no effect if it runs like this already."""
        document = {"kind": spec.kind, "definition": dict(spec.definition), "isPaused": spec.is_paused}
        self._ask("PUT", f"/pipelines/{quote(spec.name, safe='')}", document)

    def remove(self, name: str, *, delete_state: bool = False) -> bool:
        """Stop a pipeline; False if there was none."""
        query = "?state=delete" if delete_state else ""
        return bool(self._ask("DELETE", f"/pipelines/{quote(name, safe='')}{query}")["wasThere"])

    def explain(self, name: str) -> str:
        """How a pipeline runs on Spark."""
        return str(self._ask("GET", f"/pipelines/{quote(name, safe='')}/explanation")["explanation"])

    def _ask(self, method: str, target: str, document: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.address.port, timeout=self._timeout_s)
        headers = {"Authorization": f"Bearer {self.address.token}", "Accept": "application/json"}
        body = None
        if document is not None:
            body = json.dumps(document)
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, target, body=body, headers=headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise EngineUnreachableError(f"the engine process {self.address.pid} does not answer: {error}") from None
        finally:
            connection.close()
        return _document(response.status, content)


def _document(status: int, content: bytes) -> Any:
    try:
        document = json.loads(content)
    except ValueError:
        raise EngineError(f"the engine answered with status {status} and no JSON") from None
    if status >= 300:
        raise EngineError(str(document.get("message", document)) if isinstance(document, dict) else str(document))
    return document
