"""A service as an ASGI app: finds the endpoint, negotiates, calls it, and words whatever goes wrong.

Endpoints raise their own errors; `word_error` is the one place where those become status and body. Mount the app
alone, beside others, or call it from a test. Start at `HttpApp`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from moldau.core.errors import MoldauError
from moldau.http.calls import Answer, Call, encode_json
from moldau.http.endpoints import Endpoint
from moldau.http.errors import HttpError
from moldau.http.kept_answers import KeptAnswer, KeptAnswers
from moldau.http.metrics import HttpMetrics
from moldau.http.negotiation import MediaTypes
from moldau.http.routing import Routes

__all__ = ["HttpApp", "WordError"]

WordError = Callable[[Exception], Answer]
"""Words an error the service raised; hands back `status` and a document. Unknown ones are passed too."""

DEFAULT_MAX_BODY_BYTES = 32 * 1024 * 1024

_logger = logging.getLogger("moldau.http")


class HttpApp:
    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        *,
        media_types: MediaTypes,
        word_error: WordError,
        metrics: HttpMetrics | None = None,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    ) -> None:
        self.endpoints = tuple(endpoints)
        self._routes = Routes(self.endpoints)
        self._media_types = media_types
        self._word_error = word_error
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes
        self._kept = KeptAnswers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _serve_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        method: str = scope["method"]
        try:
            answered = await self._answered(method, scope, receive)
        except asyncio.CancelledError:
            # The server stops and waits no longer. Whoever asked is told so, and can ask another instance.
            stopping = self._worded(HttpError(503, "The service is being stopped; ask again in a moment"))
            answered = KeptAnswer(None, "unknown", _response(stopping, self._media_types.chosen(None), is_head=False))
        if self._metrics is not None:
            seconds = time.perf_counter() - began
            self._metrics.count(method, answered.path, answered.response.status_code, seconds)
        await answered.response(scope, receive, send)

    async def _answered(self, method: str, scope: Scope, receive: Receive) -> KeptAnswer:
        media_type = self._media_types.chosen(None)
        path = "unknown"
        try:
            found = self._routes.find(method, _own_path(scope))
            endpoint, path = found.endpoint, found.endpoint.path
            call = Call(scope, receive, found.parts, self._max_body_bytes)
            media_type = self._negotiated(call, endpoint)
            if endpoint.moment is not None and method != "HEAD":
                return await self._kept_or_new(call, endpoint, media_type)
            answer = await endpoint.handle(call)
        except Exception as error:
            answer = self._worded(error)
        return KeptAnswer(None, path, _response(answer, media_type, is_head=method == "HEAD"))

    async def _kept_or_new(self, call: Call, endpoint: Endpoint, media_type: str | None) -> KeptAnswer:
        assert endpoint.moment is not None
        content = b"" if endpoint.body is None else await call.content()
        request = (call.method, _own_path(call.scope), call.scope["query_string"], media_type, content)
        moment = endpoint.moment()
        kept = self._kept.find(request)
        if kept is not None and kept.token == moment:
            return kept
        response = _response(await endpoint.handle(call), media_type, is_head=False)
        answered = KeptAnswer(moment, endpoint.path, response)
        if response.status_code == 200 and endpoint.moment() == moment:
            self._kept.keep(request, answered, len(content) + len(response.body))
        return answered

    def _negotiated(self, call: Call, endpoint: Endpoint) -> str | None:
        headers = call.headers
        if endpoint.body is not None and not self._media_types.understands(headers.get("content-type")):
            raise HttpError(415)
        if endpoint.media_types:
            return endpoint.media_types[0]
        chosen = self._media_types.chosen(headers.get("accept"))
        if chosen is None:
            raise HttpError(406)
        return chosen

    def _worded(self, error: Exception) -> Answer:
        if isinstance(error, HttpError):
            return self._word_error(error)._replace(headers=error.headers)
        answer = self._word_error(error)
        if answer.status >= 500:
            is_foreseen = isinstance(error, MoldauError)
            _logger.error("a request failed: %s", error, exc_info=None if is_foreseen else error)
        return answer


def _own_path(scope: Scope) -> bytes:
    """The path below where the app is mounted, as it was sent: still encoded."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    root = quote(scope.get("root_path", "")).encode()
    return raw.removeprefix(root) if root else raw


def _response(answer: Answer, media_type: str | None, *, is_head: bool) -> Response:
    content = answer.content
    if content is None:
        content = b"" if answer.status == 204 else encode_json(answer.document)
    headers = dict(answer.headers or {})
    if is_head:
        headers["content-length"] = str(len(content))
        content = b""
    has_type = answer.status != 204
    return Response(content, answer.status, headers, (answer.media_type or media_type) if has_type else None)


async def _serve_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
