"""A service as an ASGI app: finds the endpoint, authenticates, negotiates, calls it, and renders errors.

Endpoints raise their own errors; `render_error` is the one place where those become status and body. The app can
be mounted alone or beside others, or called from a test. Services are built by `service.build_app`; start there to
write one, at `HttpApp` to read how a request is served.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from moldau.core.errors import MoldauError
from moldau.http.answer_cache import AnswerCache, CachedAnswer
from moldau.http.auth import ANONYMOUS, Authenticate, Principal, parse_credentials
from moldau.http.calls import Answer, Call, encode_json
from moldau.http.endpoints import UNLIMITED, AnyEndpoint, Endpoint, Found, Routes
from moldau.http.errors import ClientGoneError, HttpError
from moldau.http.metrics import HttpMetrics
from moldau.http.negotiation import MediaTypes, negotiate
from moldau.http.request_body import RequestBody
from moldau.http.sockets import CLOSE_GOING_AWAY, Socket, check_origin, close_code
from moldau.http.streaming import send_stream, stopping_event

__all__ = ["HttpApp", "RenderError"]

RenderError = Callable[[Exception], Answer]
"""Renders an error that an endpoint or the kit raised as status and document. Also called for unexpected exceptions."""

DEFAULT_MAX_BODY_BYTES = 32 * 1024 * 1024
DEFAULT_BODY_IDLE_S = 60.0
UNKNOWN_PATH = "unknown"
"""The path in metrics of requests without an endpoint: arbitrary paths of clients must not create series."""
SWITCHING_PROTOCOLS = 101

_logger = logging.getLogger("moldau.http")


class HttpApp:
    def __init__(
        self,
        endpoints: Iterable[AnyEndpoint],
        *,
        media_types: MediaTypes,
        render_error: RenderError,
        authenticate: Authenticate | None = None,
        metrics: HttpMetrics | None = None,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        body_idle_s: float = DEFAULT_BODY_IDLE_S,
    ) -> None:
        """`max_body_bytes` and `body_idle_s` limit bodies that are not streams; an endpoint may override them."""
        self.endpoints = tuple(endpoints)
        self._routes = Routes(self.endpoints)
        self._media_types = media_types
        self._render_error = render_error
        self._authenticate = authenticate
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes
        self._body_idle_s = body_idle_s
        self._cache = AnswerCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await _Request(self, scope, receive, send).serve()
        elif scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
        else:
            await _serve_lifespan(receive, send)

    # HTTP

    async def answer(self, request: _Request) -> Answer | Response:
        """The answer of the request's endpoint; raises its errors."""
        found = await self._find_for_principal(request)
        chosen = negotiate(
            [endpoint.media_types or self._media_types for endpoint in found.endpoints],
            content_type=request.headers.get("content-type"),
            accept=request.headers.get("accept"),
            has_body=found.endpoints[0].has_body,
        )
        endpoint = found.endpoints[chosen.row]
        request.body = self._body(endpoint, request.receive)
        call = Call(request.scope, request.receive, request.headers, found.parts, request.body)
        call.principal, call.media_type = request.principal, chosen.media_type
        request.media_type = chosen.media_type
        if endpoint.state_token is not None and request.method != "HEAD":
            return await self._cached_or_new(call, endpoint, endpoint.state_token())
        return await endpoint.handle(call)

    async def _find_for_principal(self, request: _Request) -> Found:
        try:
            found = self._routes.find(request.method, request.own_path)
        except HttpError:
            # Unauthenticated clients must not learn which paths exist.
            await self._principal(request.headers)
            raise
        request.metrics_path = found.endpoints[0].path
        if not all(endpoint.is_public for endpoint in found.endpoints):
            request.principal = await self._principal(request.headers)
        return found

    async def _principal(self, headers: Headers) -> Principal:
        if self._authenticate is None:
            return ANONYMOUS
        return await self._authenticate(parse_credentials(headers.get("authorization")))

    def _body(self, endpoint: Endpoint, receive: Receive) -> RequestBody:
        max_bytes, idle_s = endpoint.max_body_bytes, endpoint.body_idle_s
        if not endpoint.is_stream:
            max_bytes, idle_s = max_bytes or self._max_body_bytes, idle_s or self._body_idle_s
        return RequestBody(receive, max_bytes=max_bytes or UNLIMITED, idle_s=idle_s, is_stream=endpoint.is_stream)

    async def _cached_or_new(self, call: Call, endpoint: Endpoint, state_token: Hashable) -> Answer | Response:
        assert endpoint.state_token is not None
        content = b"" if endpoint.body is None else await call.content()
        path, query = _own_path(call.scope), call.scope["query_string"]
        request = (call.method, path, query, call.media_type, call.principal, content)
        cached = self._cache.find(request, state_token)
        if cached is not None:
            return cached
        answer = await endpoint.handle(call)
        if answer.stream is not None:
            return answer
        response = _response(answer, call.media_type, is_head=False)
        if response.status_code == 200 and endpoint.state_token() == state_token:
            size = len(path) + len(query) + len(content) + len(response.body)
            self._cache.store(request, CachedAnswer(state_token, response), size)
        return response

    def error_answer(self, error: Exception) -> Answer:
        """An error in the service's format; server errors are logged."""
        answer = self._render_error(error)
        if isinstance(error, HttpError):
            return answer._replace(headers=error.headers)
        if answer.status >= 500:
            is_expected = isinstance(error, MoldauError)
            _logger.error("a request failed: %s", error, exc_info=None if is_expected else error)
        return answer

    def error_media_type(self, accept: str | None) -> str:
        return self._media_types.choose(accept) or self._media_types.default

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        if self._metrics is not None:
            self._metrics.count(method, path, status, seconds)

    # WebSockets

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, path = time.perf_counter(), UNKNOWN_PATH

        def count(status: int) -> None:
            self.count("WEBSOCKET", path, status, time.perf_counter() - began)

        socket = Socket(scope, receive, send, lambda: count(SWITCHING_PROTOCOLS))
        try:
            found = self._routes.find_socket(_own_path(scope))
            path, socket.parts = found.endpoint.path, found.parts
            check_origin(socket, found.endpoint.allowed_origins)
            if not found.endpoint.is_public:
                socket.principal = await self._principal(socket.headers)
            await _run_until_stopped(found.endpoint.handle(socket), scope)
            await socket.close_with(1000)
        except WebSocketDisconnect:
            pass  # the handler sent to a client that had disconnected
        except asyncio.CancelledError:
            await socket.close_with(CLOSE_GOING_AWAY, "The service is being stopped")
        except Exception as error:
            await self._end_socket(socket, error, count)

    async def _end_socket(self, socket: Socket, error: Exception, count: Callable[[int], None]) -> None:
        """Close a connection for an error, or refuse it if it was not accepted yet."""
        answer = self.error_answer(error)
        if socket.was_accepted:
            await socket.close_with(close_code(answer.status), str(error) if answer.status < 500 else "")
            return
        count(answer.status)
        if "websocket.http.response" in (socket.scope.get("extensions") or {}):
            media_type = self.error_media_type(socket.headers.get("accept"))
            await socket.send_denial_response(_response(answer, media_type, is_head=False))
        else:
            await socket.close(close_code(answer.status))


class _Request:
    """One HTTP request on its way through an app."""

    def __init__(self, app: HttpApp, scope: Scope, receive: Receive, send: Send) -> None:
        self._app = app
        self.scope, self.receive, self._send = scope, receive, send
        self.method: str = scope["method"]
        self.headers = Headers(scope=scope)
        self.own_path = _own_path(scope)
        self.metrics_path = UNKNOWN_PATH
        self.principal = ANONYMOUS
        self.media_type: str | None = None
        self.body: RequestBody | None = None
        self._began = time.perf_counter()

    async def serve(self) -> None:
        try:
            answer = await self._app.answer(self)
        except ClientGoneError as error:
            self._count(error.status)
            return
        except asyncio.CancelledError:
            # The server is stopping and its drain time is over: the client gets a 503 and can retry elsewhere.
            answer = self._error_answer(HttpError(503, "The service is being stopped; try again in a moment"))
        except Exception as error:
            answer = self._error_answer(error)
        if isinstance(answer, Answer) and answer.stream is not None and self.body is not None:
            await self._send_stream(answer, self.body)
            return
        is_head = self.method == "HEAD"
        response = answer if isinstance(answer, Response) else _response(answer, self.media_type, is_head=is_head)
        self._count(response.status_code)
        await response(self.scope, self.receive, self._send)

    def _error_answer(self, error: Exception) -> Answer:
        # An endpoint may have a content type in which errors cannot be rendered, such as a stream of events.
        self.media_type = self._app.error_media_type(self.headers.get("accept"))
        return self._app.error_answer(error)

    async def _send_stream(self, answer: Answer, body: RequestBody) -> None:
        assert answer.stream is not None
        self._count(answer.status)
        head = Response(b"", answer.status, answer.headers, answer.media_type or self.media_type)
        headers = [header for header in head.raw_headers if header[0] != b"content-length"]
        await self._send({"type": "http.response.start", "status": answer.status, "headers": headers})
        if self.method == "HEAD":
            await self._send({"type": "http.response.body", "body": b""})
            return
        try:
            await send_stream(answer.stream, is_endless=answer.is_endless, body=body, scope=self.scope, send=self._send)
        except asyncio.CancelledError:
            _logger.warning("the streamed response of %s ended early: the service is stopping", self.metrics_path)

    def _count(self, status: int) -> None:
        self._app.count(self.method, self.metrics_path, status, time.perf_counter() - self._began)


def _own_path(scope: Scope) -> bytes:
    """The path below the app's mount point, still percent-encoded."""
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


async def _run_until_stopped(handling: Awaitable[None], scope: Scope) -> None:
    """Await a WebSocket's handler; cancel it when the server begins to stop, and raise `CancelledError` then."""
    task = asyncio.ensure_future(handling)
    stopping = stopping_event(scope)
    waiting = [task] if stopping is None else [task, asyncio.ensure_future(stopping.wait())]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
        await asyncio.wait(waiting)
    if task.cancelled():
        raise asyncio.CancelledError
    task.result()


async def _serve_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
