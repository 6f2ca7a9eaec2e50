"""A registry that says what a test tells it to, over real HTTP. Start at `StubRegistry`."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

__all__ = ["NOT_FOUND", "StubRegistry"]

NOT_FOUND = 404, {"error_code": 40403, "message": "Schema not found"}


class StubRegistry:
    """`answers` are statuses and documents by path; every other path is an unknown schema."""

    def __init__(self, answers: Mapping[str, tuple[int, Any]] | None = None) -> None:
        self.answers = dict(answers or {})
        self.requests: list[tuple[str, dict[str, str]]] = []
        self._open: list[socket.socket] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                stub.requests.append((self.path, dict(self.headers)))
                status, document = stub.answers.get(self.path, NOT_FOUND)
                content = document if isinstance(document, bytes) else json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: object) -> None:
                """Nobody reads along."""

        class Server(ThreadingHTTPServer):
            def process_request(self, request: Any, client_address: Any) -> None:
                stub._open.append(request)
                super().process_request(request, client_address)

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def connections(self) -> int:
        """How many there have been."""
        return len(self._open)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def __enter__(self) -> StubRegistry:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Cut every connection and answer no more."""
        self._server.shutdown()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join()
