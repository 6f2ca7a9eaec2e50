"""Schema registries inside the process, for tests: `schema.registry.url=mock://any-name`.

Each is the real registry with an in-memory store: the same endpoints, compatibility checks and error codes, without a
port or a broker. The same URL in the same process is the same registry, as with Confluent's clients; its content is
lost when the process ends. `client.schema_registry` imports this module by name. Start at `mock_registry`.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from typing import Any
from urllib.parse import unquote, urlsplit

from moldau.client.registry_http import MEDIA_TYPE, read_answer
from moldau.registry.app import build_app
from moldau.registry.leadership import SoleLeadership
from moldau.registry.registry import Registry
from moldau.registry.settings import RegistrySettings
from moldau.registry.store import MemoryStore

__all__ = ["MockRegistry", "mock_registry"]

_HEADERS = [(b"accept", MEDIA_TYPE.encode()), (b"content-type", MEDIA_TYPE.encode())]


class MockRegistry:
    """An in-process registry that takes requests of the HTTP API. Thread-safe."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._app = build_app(Registry(RegistrySettings.of(), MemoryStore(), SoleLeadership(), workers=0))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The response's document; raises `RegistryRefusalError` with the registry's status and error code."""
        content = b"" if body is None else json.dumps(body).encode()
        status, answer = asyncio.run_coroutine_threadsafe(self._call(method, path, content), _loop()).result()
        return read_answer(self._url, status, answer)

    async def _call(self, method: str, path: str, content: bytes) -> tuple[int, bytes]:
        address = urlsplit(path)
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(address.path),
            "raw_path": address.path.encode(),
            "query_string": address.query.encode(),
            "headers": _HEADERS,
        }
        status, pieces = 0, []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            pieces.append(message.get("body", b""))

        await self._app(scope, receive, send)
        return status, b"".join(pieces)


_registries: dict[str, MockRegistry] = {}
_lock = threading.Lock()
_running_loop: asyncio.AbstractEventLoop | None = None


def mock_registry(url: str) -> MockRegistry:
    """The registry of this process for a `mock://` URL, created on first use."""
    with _lock:
        found = _registries.get(url)
        if found is None:
            found = _registries[url] = MockRegistry(url)
        return found


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all mock registries, in its own thread, since the caller may already run in an event loop."""
    global _running_loop
    with _lock:
        if _running_loop is None:
            _running_loop = asyncio.new_event_loop()
            threading.Thread(target=_running_loop.run_forever, name="mock-registries", daemon=True).start()
        return _running_loop


def _after_fork() -> None:
    """Reset in a forked child: threads are not forked, so it starts its own loop. It has a copy of the schemas."""
    global _running_loop, _lock
    _running_loop, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
