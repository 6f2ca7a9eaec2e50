"""Requests and responses in one shape per API, for all versions.

kio provides the schemas: a class per message and version. Each is compiled once, on first use, to a field table for
moldau's own reader (kio's trusts every length, so it must not read untrusted bytes) and to the steps that fill kio's
class for its writer. No kio module is imported before its API and version is needed. Produce and Fetch have their own
codecs.

Names are Kafka's in snake case. Times are integer milliseconds in fields that end in `_ms`, error codes
are numbers, arrays lists, nested structs messages, and a uuid of zeros is `None`.
Start at `Message`, `decode_request` and `encode_response`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar, Final, NamedTuple

from moldau.protocol.api import APIS, ApiKey, MalformedRequestError, MalformedResponseError
from moldau.protocol.field_reader import DAMAGE, NO_LIMIT, Cursor, Read, struct_reader
from moldau.protocol.fields import Struct, default_of
from moldau.protocol.kio_schemas import Kind, Write, entity_writer, table_of

__all__ = [
    "MAX_REQUEST_ELEMENTS",
    "EncodedResponse",
    "MalformedRequestError",
    "MalformedResponseError",
    "Message",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]

MAX_REQUEST_ELEMENTS: Final = 250_000
"""Array elements in one request. More than any client sends, few enough to be decoded in a second or two."""


class Message(SimpleNamespace):
    """A request, a response or a struct within one; two are equal when their fields are.

    A decoded message also has the fields that its version lacks: with the default of the newest version that has
    them.
    """

    _origin: ClassVar[tuple[int, Kind, tuple[str, ...]] | None] = None
    """In decoded messages: API key, kind, and the path of fields from the top."""

    def __getattr__(self, name: str) -> Any:
        if self._origin is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no field {name}")
        default = _default_elsewhere(*self._origin, name)
        return list(default) if isinstance(default, list) else default


class EncodedResponse(NamedTuple):
    """A response whose body is encoded already."""

    body: bytes
    error_codes: Sequence[int]
    """Every error within it."""


def decode_request(api_key: int, version: int, body: bytes | bytearray | memoryview) -> Message:
    """Decode a request's body. Bytes after its end are tolerated, as in Kafka."""
    try:
        return _decode(api_key, version, "request", body, MAX_REQUEST_ELEMENTS)
    except DAMAGE as error:
        raise MalformedRequestError(f"{_api_label(api_key, version)}: {error}") from None


def decode_response(api_key: int, version: int, body: bytes | bytearray | memoryview) -> Message:
    """Decode a response's body, for clients."""
    try:
        return _decode(api_key, version, "response", body, NO_LIMIT)
    except DAMAGE as error:
        raise MalformedResponseError(f"{_api_label(api_key, version)}: {error}") from None


def encode_response(api_key: int, version: int, response: Message) -> bytes:
    """Encode a response's body. Fields that the version lacks are omitted, missing fields are defaults."""
    return _encode(api_key, version, "response", response)


def encode_request(api_key: int, version: int, request: Message) -> bytes:
    """Encode a request's body, for clients."""
    return _encode(api_key, version, "request", request)


def _decode(api_key: int, version: int, kind: Kind, body: bytes | bytearray | memoryview, limit: int) -> Message:
    read = _reader(api_key, version, kind)
    message: Message = read(Cursor(bytes(body), 0, limit))
    return message


def _encode(api_key: int, version: int, kind: Kind, message: Message) -> bytes:
    output = io.BytesIO()
    _writer(api_key, version, kind)(output, message)
    return output.getvalue()


def _api_label(api_key: int, version: int) -> str:
    return f"{ApiKey(api_key).display_name} v{version}"


@cache
def _reader(api_key: int, version: int, kind: Kind) -> Read:
    return struct_reader(_table(api_key, version, kind))


@cache
def _writer(api_key: int, version: int, kind: Kind) -> Write:
    _check_known(api_key, version)
    return entity_writer(ApiKey(api_key).name.lower(), version, kind)


@cache
def _table(api_key: int, version: int, kind: Kind) -> Struct:
    _check_known(api_key, version)

    def shape(name: str, path: tuple[str, ...]) -> type[Message]:
        return type(name, (Message,), {"_origin": (api_key, kind, path)})

    return table_of(ApiKey(api_key).name.lower(), version, kind, shape)


def _check_known(api_key: int, version: int) -> None:
    known = APIS.get(api_key)
    if known is None or not known.first <= version <= known.last:
        raise LookupError(f"no schema for api key {api_key}, version {version}")


@cache
def _default_elsewhere(api_key: int, kind: Kind, path: tuple[str, ...], name: str) -> Any:
    """Look for the field in other versions, newest first."""
    known = APIS[api_key]
    for version in range(known.last, known.first - 1, -1):
        struct: Struct | None = _table(api_key, version, kind)
        for step in path:
            inner = struct and _type_of(struct, step)
            struct = inner if isinstance(inner, Struct) else None
        for field in struct.fields if struct else ():
            if field.name == name:
                return default_of(field)
    where = ".".join((ApiKey(api_key).display_name, kind, *path))
    raise AttributeError(f"{where} has no field {name} in any version")


def _type_of(struct: Struct, name: str) -> str | Struct | None:
    return next((field.type for field in struct.fields if field.name == name), None)
