"""A request as endpoints see it, and the answer they give. Start at `Call`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.types import Receive, Scope

from moldau.core.ids import INT32_MAX
from moldau.http.errors import HttpError, MalformedBodyError

__all__ = ["Answer", "Call", "encode_json"]

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Answer(NamedTuple):
    """What an endpoint gives back: a document that becomes JSON, or content as it is."""

    document: Any = None
    status: int = 200
    content: bytes | None = None
    media_type: str | None = None
    """Where it is not the negotiated one."""
    headers: Mapping[str, str] | None = None


class Call(Request):
    """Starlette's request with the parts of the path by name, and readers that refuse in the right way."""

    def __init__(self, scope: Scope, receive: Receive, parts: Mapping[str, str], max_body_bytes: int) -> None:
        super().__init__(scope, receive)
        self.parts = parts
        self._max_body_bytes = max_body_bytes
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
        pieces, size = [], 0
        async for piece in self.stream():
            size += len(piece)
            if size > self._max_body_bytes:
                raise HttpError(413, f"The body is larger than {self._max_body_bytes} bytes")
            pieces.append(piece)
        self._content = b"".join(pieces)
        return self._content

    async def document(self) -> Any:
        """The body as JSON; raises `MalformedBodyError`, or a 422 where there is none."""
        content = await self.content()
        if not content.strip():
            raise HttpError(422, "The request has no body")
        return _decoded(content)


def encode_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _decoded(content: bytes) -> Any:
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
