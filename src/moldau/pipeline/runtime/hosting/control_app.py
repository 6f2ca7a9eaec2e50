"""The control channel of an engine process: HTTP on a port of this machine, with a token that only its owner can read.

A process that wants pipelines puts them, and asks how they do. The documents are those of `host.PipelineHost`. Start at
`build_app`.
"""

from __future__ import annotations

import asyncio
import hmac
from typing import Any

from moldau.core.errors import MoldauError
from moldau.http import service
from moldau.http.app import HttpApp
from moldau.http.auth import BearerCredentials, Credentials, Principal, UnauthenticatedError
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.errors import HttpError
from moldau.http.metrics import HttpMetrics
from moldau.pipeline.runtime.hosting.host import PipelineHost, PipelineSpec, UnknownPipelineError

__all__ = ["build_app"]

PIPELINE_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "state": {"type": "string"}}}


def build_app(host: PipelineHost, token: str) -> HttpApp:
    """The control channel as an ASGI app; requests must carry the token."""
    pipelines = _Pipelines(host)

    async def authenticate(credentials: Credentials) -> Principal:
        if isinstance(credentials, BearerCredentials) and hmac.compare_digest(credentials.token, token):
            return Principal("engine-owner")
        raise UnauthenticatedError("The request must carry the token of this engine")

    return service.build_app(
        pipelines.endpoints(),
        title="moldau engine",
        description="The pipelines of this process: what runs, how it does, and how to change that.",
        render_error=_render_error,
        authenticate=authenticate,
        metrics=HttpMetrics("moldau_engine", lambda: {"pipelines": len(host.statuses())}),
    )


def _render_error(error: Exception) -> Answer:
    if isinstance(error, UnknownPipelineError):
        return service.render_error_code(HttpError(404, str(error)))
    if isinstance(error, MoldauError) and not isinstance(error, HttpError):
        return service.render_error_code(HttpError(409, str(error)))
    return service.render_error_code(error)


class _Pipelines:
    """The endpoints. What may wait for brokers or Spark runs in threads, so that the channel answers meanwhile."""

    def __init__(self, host: PipelineHost) -> None:
        self._host = host

    def endpoints(self) -> list[Endpoint]:
        one = "/pipelines/{name}"
        return [
            Endpoint(
                method="GET",
                path="/pipelines",
                handle=self.show_all,
                summary="All pipelines.",
                reply={"type": "array", "items": PIPELINE_SCHEMA},
            ),
            Endpoint(
                method="GET",
                path=one,
                handle=self.show,
                summary="One pipeline, with its metrics.",
                reply=PIPELINE_SCHEMA,
            ),
            Endpoint(
                method="PUT",
                path=one,
                handle=self.put,
                summary="Run this pipeline; no effect if it runs like this already.",
                body={"type": "object"},
                reply={"type": "object"},
            ),
            Endpoint(
                method="DELETE",
                path=one,
                handle=self.remove,
                summary="Stop a pipeline; with state=delete, forget its state.",
                reply={"type": "object"},
            ),
            Endpoint(
                method="GET",
                path=one + "/explanation",
                handle=self.explain,
                summary="How it runs on Spark.",
                reply={"type": "object"},
            ),
        ]

    async def show_all(self, _call: Call) -> Answer:
        return Answer(self._host.statuses())

    async def show(self, call: Call) -> Answer:
        return Answer(await asyncio.to_thread(self._host.status, call.parts["name"]))

    async def put(self, call: Call) -> Answer:
        spec = _spec(call.parts["name"], await call.document())
        await asyncio.to_thread(self._host.put, spec)
        return Answer({})

    async def remove(self, call: Call) -> Answer:
        deletes = call.text("state") == "delete"
        name = call.parts["name"]
        return Answer({"wasThere": await asyncio.to_thread(self._host.remove, name, delete_state=deletes)})

    async def explain(self, call: Call) -> Answer:
        return Answer({"explanation": await asyncio.to_thread(self._host.explain, call.parts["name"])})


def _spec(name: str, document: Any) -> PipelineSpec:
    if not isinstance(document, dict):
        raise HttpError(400, "A pipeline must be a JSON object with kind and definition")
    kind, definition, is_paused = document.get("kind"), document.get("definition"), document.get("isPaused", False)
    if not isinstance(kind, str) or not isinstance(definition, dict) or not isinstance(is_paused, bool):
        raise HttpError(
            400,
            "A pipeline needs kind (a string) and definition (an object); isPaused, if given, must be true or false",
        )
    return PipelineSpec(name=name, kind=kind, definition=definition, is_paused=is_paused)
