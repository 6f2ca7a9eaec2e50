from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from starlette.datastructures import Headers

from moldau.http.calls import Answer, Call
from moldau.http.forwarding import Forwarding, ForwardingFailedError
from moldau.http.request_body import RequestBody


class Leader(BaseHTTPRequestHandler):
    received: list[tuple[str, dict[str, str], bytes]]

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.received.append((f"{self.command} {self.path}", headers, body))
        self.send_response(409)
        for name, text in (("content-type", "application/x"), ("x-offset", "7"), ("x-secret", "1")):
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(b"no")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def leader() -> Iterator[str]:
    Leader.received = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Leader) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def forward(url: str) -> Answer:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    scope = {
        "type": "http",
        "method": "PUT",
        "path": "/a/b c",
        "raw_path": b"/a/b%20c",
        "query_string": b"x=1",
        "headers": [(b"content-type", b"application/json"), (b"authorization", b"Basic x"), (b"cookie", b"c")],
    }
    forwarding = Forwarding(
        hop_header="X-Hop",
        connect_timeout_ms=10_000,
        read_timeout_ms=10_000,
        headers=["Authorization"],
        answer_headers=["x-offset"],
    )

    async def send_on() -> Answer:
        body = RequestBody(receive, max_bytes=1000, idle_s=None, is_stream=False)
        return await forwarding(Call(scope, receive, Headers(scope=scope), {}, body), url)

    return asyncio.run(send_on())


def test_the_same_request_reaches_the_leader_with_a_mark(leader: str) -> None:
    answer = forward(leader)
    ((request, headers, body),) = Leader.received
    assert (request, body) == ("PUT /a/b%20c?x=1", b"{}")
    assert headers["x-hop"] == "true"
    assert headers["content-type"] == "application/json"
    assert headers["authorization"] == "Basic x"
    assert "cookie" not in headers
    assert (answer.status, answer.content, answer.media_type) == (409, b"no", "application/x")
    assert answer.headers == {"x-offset": "7"}


def test_a_leader_that_is_gone_is_an_error_of_its_own() -> None:
    with pytest.raises(ForwardingFailedError, match=r"The leader at http://127\.0\.0\.1:1 could not be reached"):
        forward("http://127.0.0.1:1")
