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
"""A body that is produced while it is sent; a generator is closed when its client disconnects."""


class Answer(NamedTuple):
    """The result of an endpoint: a document that becomes JSON, raw content, or a stream."""

    document: Any = None
    status: int = 200
    content: bytes | None = None
    media_type: str | None = None
    """Overrides the negotiated one."""
    headers: Mapping[str, str] | None = None
    stream: Pieces | None = None
    """Sent piece by piece, each as soon as it is available; status and headers are sent before the first.

    Errors must therefore be raised before the answer is returned. The next piece is requested when the client can
    receive it. `http.streaming` makes streams of JSON lines and adds heartbeats.
    """
    is_endless: bool = False
    """Whether the stream never ends by itself: a stopping server ends it at once instead of draining it."""


class Call(Request):
    """Starlette's request with path parameters by name, and readers that raise the right errors."""

    def __init__(
        self, scope: Scope, receive: Receive, headers: Headers, parts: Mapping[str, str], body: RequestBody
    ) -> None:
        super().__init__(scope, receive)
        self._headers = headers
        self.parts = parts
        self.principal: Principal = ANONYMOUS
        """The caller, if the service authenticates."""
        self.media_type = ""
        """The content type that was negotiated for the answer."""
        self._pieces = body
        self._content: bytes | None = None

    def flag(self, name: str) -> bool:
        """A boolean query parameter: true only for `true`, in upper or lower case."""
        return self.query_params.get(name, "").lower() == "true" if self.scope["query_string"] else False

    def text(self, name: str, default: str = "") -> str:
        return self.query_params.get(name, default) if self.scope["query_string"] else default

    def texts(self, name: str) -> list[str]:
        return self.query_params.getlist(name)

    def number(self, name: str, default: int) -> int:
        """A numeric query parameter; any other text raises a 404."""
        text = self.text(name)
        return default if not text else _number(text)

    def number_in_path(self, name: str) -> int:
        return _number(self.parts[name])

    async def content(self) -> bytes:
        """The body, read once and only up to its limit."""
        if self._content is not None:
            return self._content
        self._content = b"".join([piece async for piece in self._pieces.pieces()])
        return self._content

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, in pieces of any size; raises a 413, a 408 or `ClientGoneError` on the way.

        Reads from the client only as fast as the handler consumes. Declare `Endpoint.is_stream` to use it.
        """
        async for piece in self._pieces.pieces():
            yield piece

    async def objects(self, *, max_object_bytes: int = DEFAULT_MAX_OBJECT_BYTES) -> AsyncGenerator[Any, None]:
        """The JSON objects of the body, each as soon as it is complete, with anything or nothing between them.

        Raises `MalformedBodyError`, or a 413 for an object over the limit, after the objects before it.
        """
        splitter = JsonObjectSplitter(max_object_bytes)
        async for piece in self._pieces.pieces():
            for document in splitter.documents(piece, decode_json):
                yield document
        splitter.finish()

    @property
    def last_event_id(self) -> str | None:
        """The id of the last event that a reconnecting client of server-sent events has seen."""
        return self.headers.get("last-event-id")

    async def document(self) -> Any:
        """The body as JSON; raises `MalformedBodyError`, or a 422 where there is none."""
        content = await self.content()
        if not content.strip():
            raise HttpError(422, "The request has no body")
        return decode_json(content)


def _refuse_constant(name: str) -> None:
    raise _ConstantError(f"{name} is not a JSON number")


class _ConstantError(ValueError):
    """NaN or an infinity, which Python would accept as numbers."""


# `json.dumps` and `json.loads` would make an encoder and a decoder for each call.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode_json(document: Any) -> bytes:
    return _ENCODER.encode(document).encode()


def decode_json(content: bytes) -> Any:
    """Decode strict JSON: no NaN, no lone surrogates, no huge numbers; raises `MalformedBodyError`."""
    try:
        document = _DECODER.decode(content.decode(json.detect_encoding(content), "surrogatepass"))
        if _SURROGATE.search(content):
            # A lone surrogate is valid JSON, but cannot be encoded in UTF-8.
            encode_json(document)
    except RecursionError:
        raise MalformedBodyError("nested too deeply") from None
    except UnicodeError:
        raise MalformedBodyError("the text is not valid Unicode") from None
    except (json.JSONDecodeError, _ConstantError) as error:
        raise MalformedBodyError(str(error)) from None
    except ValueError:
        # Python's own message suggests a Python function, which is of no use to a client.
        raise MalformedBodyError("a number has too many digits") from None
    return document


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or not -INT32_MAX - 1 <= int(text) <= INT32_MAX:
        raise HttpError(404)
    return int(text)
