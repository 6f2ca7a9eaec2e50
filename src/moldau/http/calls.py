"""A request as endpoints see it, and their answer: a handler is `async def (Call) -> Answer`. Start at `Call`."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope

from moldau.core.ids import INT32_MAX
from moldau.http.auth import ANONYMOUS, Principal
from moldau.http.errors import HttpError, MalformedBodyError
from moldau.http.json_stream import JsonObjectSplitter
from moldau.http.request_body import RequestBody

__all__ = ["Answer", "Call", "Pieces", "decode_json", "encode_json"]

DEFAULT_MAX_OBJECT_BYTES = 1024 * 1024
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

Pieces = AsyncIterator[bytes] | AsyncGenerator[bytes, None]
"""A body that is made while it is sent; a generator is closed when its client goes away."""


class Answer(NamedTuple):
    """What an endpoint gives back: a document that becomes JSON, content as it is, or a stream."""

    document: Any = None
    status: int = 200
    content: bytes | None = None
    media_type: str | None = None
    """Where it is not the negotiated one."""
    headers: Mapping[str, str] | None = None
    stream: Pieces | None = None
    """Sent piece by piece, each as soon as it is there; status and headers leave before the first.

    Whatever can be refused is therefore refused before the answer is returned. The next piece is asked for when the
    client has room for it. `http.streaming` makes streams of JSON lines and adds heartbeats.
    """
    is_endless: bool = False
    """Of a stream that would go on for ever: a server that stops ends it at once, rather than waiting for its end."""


class Call(Request):
    """Starlette's request with the parts of the path by name, and readers that refuse in the right way."""

    def __init__(
        self, scope: Scope, receive: Receive, headers: Headers, parts: Mapping[str, str], body: RequestBody
    ) -> None:
        super().__init__(scope, receive)
        self._headers = headers
        self.parts = parts
        self.principal: Principal = ANONYMOUS
        """Who calls, where the service authenticates."""
        self.media_type = ""
        """The content type that was negotiated for the answer."""
        self._pieces = body
        self._content: bytes | None = None

    def flag(self, name: str) -> bool:
        """A query parameter that is on only when it says `true`, in any case."""
        return self.query_params.get(name, "").lower() == "true" if self.scope["query_string"] else False

    def text(self, name: str, default: str = "") -> str:
        return self.query_params.get(name, default) if self.scope["query_string"] else default

    def texts(self, name: str) -> list[str]:
        return self.query_params.getlist(name)

    def number(self, name: str, default: int) -> int:
        """A query parameter that is a number; another text makes a resource that does not exist."""
        text = self.text(name)
        return default if not text else _number(text)

    def number_in_path(self, name: str) -> int:
        return _number(self.parts[name])

    async def content(self) -> bytes:
        """The body, read once and no further than its limit."""
        if self._content is not None:
            return self._content
        self._content = b"".join([piece async for piece in self._pieces.pieces()])
        return self._content

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, in pieces of any size; raises a 413, a 408 or `ClientGoneError` on the way.

        Only as much is read from the client as the handler asks for. Declare `Endpoint.is_stream` to use it.
        """
        async for piece in self._pieces.pieces():
            yield piece

    async def objects(self, *, max_object_bytes: int = DEFAULT_MAX_OBJECT_BYTES) -> AsyncGenerator[Any, None]:
        """The JSON objects of the body, each as soon as it is whole, with anything or nothing between them.

        Raises `MalformedBodyError`, or a 413 for an object over the limit, after the objects before it.
        """
        splitter = JsonObjectSplitter(max_object_bytes)
        async for piece in self._pieces.pieces():
            for content in splitter.feed(piece):
                yield decode_json(content)
        splitter.finish()

    @property
    def last_event_id(self) -> str | None:
        """Where a client of server-sent events left off, if it says."""
        return self.headers.get("last-event-id")

    async def document(self) -> Any:
        """The body as JSON; raises `MalformedBodyError`, or a 422 where there is none."""
        content = await self.content()
        if not content.strip():
            raise HttpError(422, "The request has no body")
        return decode_json(content)


def encode_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def decode_json(content: bytes) -> Any:
    """Strict JSON: no NaN, no half characters, no endless numbers; raises `MalformedBodyError`."""
    try:
        document = json.loads(content, parse_constant=_refuse_constant)
        if _SURROGATE.search(content):
            # Half of a surrogate pair is JSON, but no text that could ever be stored.
            encode_json(document)
    except RecursionError:
        raise MalformedBodyError("nested too deeply") from None
    except UnicodeError:
        raise MalformedBodyError("the text is not valid Unicode") from None
    except (json.JSONDecodeError, _ConstantError) as error:
        raise MalformedBodyError(str(error)) from None
    except ValueError:
        # Python's own text would tell a client which Python function to call.
        raise MalformedBodyError("a number has too many digits") from None
    return document


def _refuse_constant(name: str) -> None:
    raise _ConstantError(f"{name} is not a JSON number")


class _ConstantError(ValueError):
    """NaN or an infinity, which Python would take for numbers."""


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or not -INT32_MAX - 1 <= int(text) <= INT32_MAX:
        raise HttpError(404)
    return int(text)
