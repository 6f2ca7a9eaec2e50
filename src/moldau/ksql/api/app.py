"""The server's HTTP app: ksqlDB's endpoints, its content types, and the one place where errors become answers.

What is behind an endpoint is a `KsqlService`; `server` is the real one. Start at `build_app`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Protocol

from moldau.core.graphs import Graph
from moldau.http import service
from moldau.http.app import HttpApp
from moldau.http.auth import Authenticate
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import AnyEndpoint, Endpoint, WebSocketEndpoint
from moldau.http.errors import HttpError, MalformedBodyError
from moldau.http.forwarding import Forwarding, ForwardingFailedError
from moldau.http.metrics import HttpMetrics
from moldau.http.negotiation import MediaTypes
from moldau.http.pipelines import pipeline_endpoints
from moldau.http.sockets import Socket
from moldau.http.streaming import with_heartbeats
from moldau.ksql.api.documents import Document, generic_error, statement_error
from moldau.ksql.api.errors import ErrorKind, NotHereError, RequestError, StatementError
from moldau.ksql.api.requests import QueryRequest, StatementRequest, checked_properties
from moldau.ksql.api.results import DELIMITED, JSON, KSQL_JSON, PROTOBUF, RowStream, encode_stream, stream_messages
from moldau.ksql.settings import is_query_property
from moldau.ksql.statements.commands import CommandError, CommandId

__all__ = ["KsqlService", "build_app"]

MEDIA_TYPES = MediaTypes({KSQL_JSON: 1.0, JSON: 0.9}, frozenset({"*/*"}))
QUERY_TYPES = MediaTypes({KSQL_JSON: 1.0, JSON: 0.9, PROTOBUF: 0.8}, frozenset({"*/*"}))
STREAM_TYPES = MediaTypes({DELIMITED: 1.0, JSON: 0.9, KSQL_JSON: 0.8, PROTOBUF: 0.7}, frozenset({"*/*"}))
INSERT_TYPES = MediaTypes({DELIMITED: 1.0, JSON: 0.9}, frozenset({"*/*"}))
HEARTBEAT_S = 5.0
"""How often a stream without rows sends a newline, so that closed connections are noticed."""
REST_OF_REQUEST_S = 1.0
"""How long the rest of a refused request is read."""
HOP_HEADER = "x-moldau-ksql-forwarded"
"""Marks a request that another server has forwarded: it is not forwarded again."""
FORWARD_CONNECT_MS, FORWARD_READ_MS = 1_000, 15_000
OBJECT = {"type": "object"}
ARRAY = {"type": "array", "items": OBJECT}

TextStream = AsyncGenerator[bytes, None]
"""Lines of PRINT."""


class KsqlService(Protocol):
    """What the endpoints need of the server."""

    def info(self) -> Document: ...

    def health(self) -> Document: ...

    def metadata_id(self) -> Document: ...

    def cluster_status(self) -> Document:
        """Blocks."""

    def note_heartbeat(self, document: Mapping[str, Any]) -> None: ...

    def note_lags(self, document: Mapping[str, Any]) -> None: ...

    def command_statuses(self) -> Document: ...

    def command_status(self, command: CommandId) -> Document | None: ...

    async def run_statements(self, request: StatementRequest) -> list[Document]: ...

    async def open_query(self, request: QueryRequest, *, may_forward: bool = False) -> RowStream | TextStream: ...

    def close_query(self, query_id: str) -> bool: ...

    async def insert_rows(
        self, target: str, properties: Mapping[str, Any], rows: AsyncIterator[Mapping[str, Any]]
    ) -> AsyncGenerator[Document, None]: ...

    def query_ids(self) -> Iterable[str]: ...

    def query_graph(self, query_id: str) -> Graph: ...

    async def query_progress(self, query_id: str) -> Document: ...

    async def terminate_cluster(self, topic_patterns: list[str]) -> list[Document]: ...


def build_app(
    ksql: KsqlService, metrics: HttpMetrics | None = None, authenticate: Authenticate | None = None
) -> HttpApp:
    """The server as an ASGI app; `authenticate` checks logins."""
    return service.build_app(
        _Endpoints(ksql).table(),
        title="moldau ksql",
        description="Streaming SQL over topics: statements, push and pull queries, as ksqlDB's clients expect them.",
        media_types=MEDIA_TYPES,
        render_error=_render_error,
        health=lambda: {"healthy": ksql.health()["isHealthy"]},
        authenticate=authenticate,
        metrics=metrics or HttpMetrics("moldau_ksql"),
    )


def _render_error(error: Exception) -> Answer:
    if isinstance(error, StatementError):
        document = statement_error(error.kind, str(error), error.statement, error.entities)
        return Answer(document, status=error.kind // 100)
    if isinstance(error, RequestError):
        return Answer(generic_error(error.kind, str(error)), status=error.kind // 100)
    if isinstance(error, MalformedBodyError):
        return Answer(generic_error(ErrorKind.BAD_REQUEST, f"Invalid JSON in request: {error}"), status=400)
    if isinstance(error, HttpError):
        if error.status == 422:  # no body at all
            return Answer(generic_error(ErrorKind.BAD_REQUEST, f"Invalid JSON in request: {error}"), status=400)
        if error.status == 404:
            return Answer(content=b"Not Found", status=404, media_type="text/plain")
        return Answer(generic_error(error.status * 100, str(error)), status=error.status)
    message = "The server failed, see its log"
    return Answer(generic_error(ErrorKind.SERVER_ERROR, message), status=500)


class _Endpoints:
    def __init__(self, ksql: KsqlService) -> None:
        self._ksql = ksql
        self._forward = Forwarding(
            hop_header=HOP_HEADER,
            connect_timeout_ms=FORWARD_CONNECT_MS,
            read_timeout_ms=FORWARD_READ_MS,
            headers=["authorization"],
        )

    def table(self) -> list[AnyEndpoint]:
        """All endpoints; those between servers are at the end."""
        ksql = self._ksql
        return [
            *self._about_the_server(),
            *self._for_statements(),
            *self._for_queries(),
            *pipeline_endpoints(ksql.query_ids, ksql.query_graph, ksql.query_progress),
            *self._between_servers(),
        ]

    def _about_the_server(self) -> list[AnyEndpoint]:
        ksql = self._ksql

        def get(path: str, summary: str, document: Any) -> Endpoint:
            async def show(_call: Call) -> Answer:
                return Answer(document())

            return Endpoint(method="GET", path=path, handle=show, summary=summary, reply=OBJECT)

        async def to_info(_call: Call) -> Answer:
            return Answer(content=b"", status=307, headers={"location": "/info"})

        return [
            Endpoint(method="GET", path="/", handle=to_info, summary="Redirects to /info."),
            get("/info", "The server.", ksql.info),
            get("/healthcheck", "Whether the server can do its work, part by part.", ksql.health),
            get("/chc/live", "Whether the process lives.", lambda: {}),
            get("/chc/ready", "Whether the server is ready.", lambda: {}),
            get("/v1/metadata", "The ids of the clusters.", ksql.metadata_id),
            get("/v1/metadata/id", "The ids of the clusters.", ksql.metadata_id),
        ]

    def _for_statements(self) -> list[AnyEndpoint]:
        return [
            Endpoint(
                method="POST",
                path="/ksql",
                handle=self.run_statements,
                summary="Runs statements; all are checked before the first one runs.",
                body=OBJECT,
                reply=ARRAY,
            ),
            Endpoint(
                method="POST",
                path="/ksql/terminate",
                handle=self.terminate,
                summary="Ends all queries and the cluster of servers.",
                body=OBJECT,
                reply=ARRAY,
            ),
            Endpoint(method="GET", path="/status", handle=self.show_statuses, summary="All commands.", reply=OBJECT),
            Endpoint(
                method="GET",
                path="/status/{type}/{entity}/{action}",
                handle=self.show_status,
                summary="One command.",
                reply=OBJECT,
            ),
            Endpoint(
                method="GET",
                path="/is_valid_property/{name}",
                handle=self.check_property,
                summary="Whether a session may set a property.",
                reply={"type": "boolean"},
            ),
        ]

    def _for_queries(self) -> list[AnyEndpoint]:
        return [
            Endpoint(
                method="POST",
                path="/query",
                handle=self.query,
                summary="Rows of a query.",
                body=OBJECT,
                reply=ARRAY,
                media_types=QUERY_TYPES,
            ),
            Endpoint(
                method="POST",
                path="/query-stream",
                handle=self.query_stream,
                summary="Rows of a query.",
                body=OBJECT,
                reply=ARRAY,
                media_types=STREAM_TYPES,
            ),
            Endpoint(
                method="POST",
                path="/inserts-stream",
                handle=self.insert,
                summary="Inserts rows as they arrive, and acknowledges each.",
                is_stream=True,
                reply=ARRAY,
                media_types=INSERT_TYPES,
            ),
            Endpoint(
                method="POST",
                path="/close-query",
                handle=self.close_query,
                summary="Ends a push query.",
                body=OBJECT,
                reply=OBJECT,
            ),
            WebSocketEndpoint(path="/ws/query", handle=self.query_socket, summary="Rows of a query, one a message."),
        ]

    def _between_servers(self) -> list[AnyEndpoint]:
        ksql = self._ksql

        def post(path: str, summary: str, note: Callable[[Mapping[str, Any]], None]) -> Endpoint:
            async def take(call: Call) -> Answer:
                try:
                    note(await call.document())
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    raise RequestError(
                        f"{path} is for requests between ksql servers, and this request is not one: {error}"
                    ) from None
                return Answer({"isOk": True})

            return Endpoint(method="POST", path=path, handle=take, summary=summary, body=OBJECT, reply=OBJECT)

        async def show_cluster(_call: Call) -> Answer:
            return Answer(await asyncio.to_thread(ksql.cluster_status))

        return [
            Endpoint(
                method="GET",
                path="/clusterStatus",
                handle=show_cluster,
                summary="The servers with this service id, their queries, and how late their tables are.",
                reply=OBJECT,
            ),
            post("/heartbeat", "Another server is alive.", ksql.note_heartbeat),
            post("/lag", "How late the tables of another server are.", ksql.note_lags),
        ]

    # Statements

    async def run_statements(self, call: Call) -> Answer:
        return Answer(await self._ksql.run_statements(StatementRequest.of(await call.document())))

    async def terminate(self, call: Call) -> Answer:
        body = await call.document()
        patterns = body.get("deleteTopicList", []) if isinstance(body, dict) else None
        if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
            raise RequestError("deleteTopicList must be a list of names or patterns")
        return Answer(await self._ksql.terminate_cluster(patterns))

    async def show_statuses(self, _call: Call) -> Answer:
        return Answer(self._ksql.command_statuses())

    async def show_status(self, call: Call) -> Answer:
        try:
            command = CommandId(call.parts["type"], call.parts["entity"], call.parts["action"])
        except CommandError:
            raise RequestError("Command not found", ErrorKind.NOT_FOUND) from None
        status = self._ksql.command_status(command)
        if status is None:
            raise RequestError("Command not found", ErrorKind.NOT_FOUND)
        return Answer(status)

    async def check_property(self, call: Call) -> Answer:
        name = call.parts["name"]
        if not is_query_property(name):
            raise RequestError(
                f"One or more properties overrides set locally are prohibited by the KSQL server: [{name}]"
            )
        return Answer(document=True)

    # Queries

    async def query(self, call: Call) -> Answer:
        request = QueryRequest.of(await call.document(), text_member="ksql", properties_member="streamsProperties")
        return await self._answer_query(call, request, PROTOBUF if call.media_type == PROTOBUF else KSQL_JSON)

    async def query_stream(self, call: Call) -> Answer:
        request = QueryRequest.of(await call.document(), text_member="sql", properties_member="properties")
        return await self._answer_query(call, request, call.media_type)

    async def _answer_query(self, call: Call, request: QueryRequest, media_type: str) -> Answer:
        """The rows; those of a table that only another server holds come from there."""
        try:
            stream = await self._ksql.open_query(request, may_forward=HOP_HEADER not in call.headers)
        except NotHereError as elsewhere:
            try:
                return await self._forward(call, elsewhere.url)
            except ForwardingFailedError:
                stream = await self._ksql.open_query(request)
        if isinstance(stream, RowStream) and stream.is_short:
            pieces = [piece async for piece in encode_stream(stream, media_type)]
            return Answer(content=b"".join(pieces), media_type=media_type)
        return self._stream_answer(stream, media_type)

    @staticmethod
    def _stream_answer(stream: RowStream | TextStream, media_type: str) -> Answer:
        if isinstance(stream, RowStream):
            pieces, is_endless = encode_stream(stream, media_type), stream.is_endless
        else:
            pieces, is_endless = stream, True
        if is_endless:
            pieces = with_heartbeats(pieces, b"\n", every_s=HEARTBEAT_S)
        return Answer(stream=pieces, media_type=media_type, is_endless=is_endless)

    async def close_query(self, call: Call) -> Answer:
        body = await call.document()
        query_id = body.get("queryId") if isinstance(body, dict) else None
        if not isinstance(query_id, str):
            raise RequestError('Invalid JSON in request: "queryId" must be a text')
        if not self._ksql.close_query(query_id):
            raise RequestError(f"No query with id {query_id}")
        return Answer(content=b"")

    async def query_socket(self, socket: Socket) -> None:
        """The elements of `/query`, one a message; the request is JSON in the parameter `request`."""
        try:
            document = json.loads(socket.query_params.get("request", ""))
        except ValueError as error:
            raise RequestError(f"Invalid JSON in request: {error}") from None
        request = QueryRequest.of(document, text_member="ksql", properties_member="streamsProperties")
        stream = await self._ksql.open_query(request)
        await socket.accept()
        pieces = stream_messages(stream) if isinstance(stream, RowStream) else stream
        await socket.send_all(piece.decode().rstrip("\n") async for piece in pieces)

    # Inserts

    async def insert(self, call: Call) -> Answer:
        rows = aiter(call.objects())
        try:
            acknowledgements = await self._acknowledgements(rows)
        except (RequestError, MalformedBodyError):
            # Over HTTP/2, an answer that overtakes its request breaks the connection.
            with contextlib.suppress(TimeoutError, MalformedBodyError):
                await asyncio.wait_for(_read_to_end(rows), REST_OF_REQUEST_S)
            raise
        encode = _acknowledged_lines if call.media_type == DELIMITED else _acknowledged_array
        return Answer(stream=encode(acknowledgements))

    async def _acknowledgements(self, rows: AsyncIterator[Any]) -> AsyncGenerator[Document, None]:
        head = await anext(rows, None)
        if not isinstance(head, dict) or not isinstance(head.get("target"), str):
            raise RequestError('The first line must be an object with "target", the stream to insert into')
        return await self._ksql.insert_rows(head["target"], checked_properties(head.get("properties")), rows)


async def _read_to_end(rows: AsyncIterator[Any]) -> None:
    async for _ in rows:
        pass


async def _acknowledged_lines(documents: AsyncGenerator[Document, None]) -> AsyncGenerator[bytes, None]:
    async for document in documents:
        yield json.dumps(document).encode() + b"\n"


async def _acknowledged_array(documents: AsyncGenerator[Document, None]) -> AsyncGenerator[bytes, None]:
    separator = b"["
    async for document in documents:
        yield separator + json.dumps(document).encode()
        separator = b",\n"
    yield b"]" if separator != b"[" else b"[]"
