"""Builds a service in one call: its own endpoints, and those that every service has.

    app = build_app([Endpoint(method="GET", path="/greeting", handle=greet, summary="A greeting.")], title="greeter")
    server = HttpServer(port=8080)
    await server.start(app)

`/healthz`, `/readyz`, `/metrics` and `/openapi.json` are included. docs/http-kit.md shows a service with
streams, events, WebSockets and authentication. Start at `build_app`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import moldau
from moldau.core import prometheus
from moldau.http.app import DEFAULT_MAX_BODY_BYTES, HttpApp, RenderError
from moldau.http.auth import Authenticate
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import AnyEndpoint, Endpoint
from moldau.http.errors import HttpError
from moldau.http.metrics import HttpMetrics
from moldau.http.negotiation import JSON, MediaTypes
from moldau.http.openapi import openapi_document

__all__ = ["Health", "build_app", "health_endpoint", "metrics_endpoint", "openapi_endpoint", "render_error_code"]

Health = Callable[[], Mapping[str, Any]]
"""Facts for `/healthz`; `"healthy": False` makes the status 503."""

ERROR_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"error_code": {"type": "integer"}, "message": {"type": "string"}},
    "required": ["error_code", "message"],
}
OBJECT_SCHEMA: Mapping[str, Any] = {"type": "object"}


def build_app(
    endpoints: Iterable[AnyEndpoint],
    *,
    title: str,
    description: str = "",
    media_types: MediaTypes = JSON,
    render_error: RenderError | None = None,
    authenticate: Authenticate | None = None,
    health: Health | None = None,
    metrics: HttpMetrics | None = None,
    schemas: Mapping[str, Any] | None = None,
    error_schema: Mapping[str, Any] = ERROR_SCHEMA,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
) -> HttpApp:
    """The service as an ASGI app. A row of `endpoints` for `/healthz` or the like replaces the common one; `/readyz`
    answers as `/healthz` does unless a service tells the two apart.

    `media_types` hold for endpoints without their own; `render_error` renders every error (`render_error_code` unless
    given); `authenticate` is called for every endpoint that is not public; `schemas` are what OpenAPI rows refer to.
    """
    metrics = metrics or HttpMetrics("moldau")
    own = list(endpoints)
    taken = {endpoint.path for endpoint in own}
    common = [
        health_endpoint(health or _is_up),
        health_endpoint(health or _is_up, path="/readyz", summary="Whether the service takes requests now."),
        metrics_endpoint(metrics),
    ]
    rows = own + [row for row in common if row.path not in taken]
    document = openapi_document(
        rows,
        title=title,
        version=moldau.__version__,
        description=description,
        schemas=schemas or {},
        error=error_schema,
        media_types=media_types,
    )
    if "/openapi.json" not in taken:
        rows.append(openapi_endpoint(document))
    return HttpApp(
        rows,
        media_types=media_types,
        render_error=render_error or render_error_code,
        authenticate=authenticate,
        metrics=metrics,
        max_body_bytes=max_body_bytes,
    )


def render_error_code(error: Exception) -> Answer:
    """`{"error_code": 404, "message": "..."}`: the error format of Connect and most services of this family."""
    if isinstance(error, HttpError):
        return Answer({"error_code": error.status, "message": str(error)}, status=error.status)
    return Answer({"error_code": 500, "message": "Internal server error, see the service's log"}, status=500)


def health_endpoint(
    health: Health, tag: str = "", *, path: str = "/healthz", summary: str = "Whether the service can do its work."
) -> Endpoint:
    async def show(_call: Call) -> Answer:
        facts = health()
        return Answer(dict(facts), status=200 if facts.get("healthy", True) else 503)

    return Endpoint(
        method="GET",
        path=path,
        handle=show,
        summary=summary,
        reply=OBJECT_SCHEMA,
        media_types=MediaTypes.always("application/json"),
        refusals={503: "It cannot."},
        is_public=True,
        tag=tag,
    )


def metrics_endpoint(metrics: HttpMetrics, tag: str = "") -> Endpoint:
    async def show(_call: Call) -> Answer:
        return Answer(content=metrics.render().encode(errors="replace"))

    return Endpoint(
        method="GET",
        path="/metrics",
        handle=show,
        summary="Numbers for Prometheus.",
        reply={"type": "string"},
        media_types=MediaTypes.always(prometheus.CONTENT_TYPE),
        tag=tag,
    )


def openapi_endpoint(document: Mapping[str, Any], refusals: Mapping[int, str] | None = None) -> Endpoint:
    async def show(_call: Call) -> Answer:
        return Answer(document)

    return Endpoint(
        method="GET",
        path="/openapi.json",
        handle=show,
        summary="This description.",
        reply=OBJECT_SCHEMA,
        media_types=MediaTypes.always("application/json"),
        refusals=refusals or {},
    )


def _is_up() -> Mapping[str, Any]:
    return {"healthy": True}
