"""The rows of a query on their way to a client, in the formats of `/query`, `/query-stream` and `/ws/query`.

A `RowStream` is what a query gives: columns first, then rows, then perhaps a last word. A query that fails after its
first row tells so in the stream, because the HTTP status has left already. Start at `RowStream`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.core.errors import MoldauError
from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.formats.format import row_format
from moldau.formats.registry.protobuf_schemas import proto_text_of
from moldau.formats.row_serde import RowSerde
from moldau.formats.types import Row
from moldau.ksql.api.documents import generic_error
from moldau.ksql.api.errors import ErrorKind, RequestError
from moldau.ksql.api.row_json import row_writer, type_text

__all__ = [
    "DELIMITED",
    "JSON",
    "KSQL_JSON",
    "PROTOBUF",
    "ResultRow",
    "RowStream",
    "StreamEnd",
    "encode_stream",
    "stream_messages",
]

KSQL_JSON = "application/vnd.ksql.v1+json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
JSON = "application/json"
PROTOBUF = "application/vnd.ksql.v1+protobuf"
"""The elements of `/query`, with each row as a message in base64."""

_logger = logging.getLogger("moldau.ksql")


class ResultRow(NamedTuple):
    """One row; a tombstone has the key's columns only."""

    values: Row
    is_tombstone: bool = False


class StreamEnd(NamedTuple):
    """The last element of a stream that ends with a message, such as `Limit Reached`."""

    message: str


Elements = AsyncGenerator[ResultRow | StreamEnd, None]


@dataclass(frozen=True, slots=True)
class RowStream:
    """A running query; `rows` is closed when the client goes away."""

    query_id: str
    columns: tuple[Column, ...]
    rows: Elements
    key_names: frozenset[str] = frozenset()
    """The columns that the header marks as key, in pull queries on tables."""
    header_marks: Mapping[str, str] = field(default_factory=dict)
    """The columns that read headers, in the same queries; they are listed before the value's columns."""
    is_endless: bool = False
    is_short: bool = False
    """Whether all rows are there, and few."""

    @property
    def schema_text(self) -> str:
        """The columns as the header of `/query` lists them."""
        marks = dict.fromkeys(self.key_names, "KEY") | dict(self.header_marks)
        columns = self.columns
        if self.header_marks:
            columns = tuple(sorted(columns, key=lambda one: (one.name not in self.key_names, one.name not in marks)))
        return ", ".join(f"{one} {marks[one.name]}" if one.name in marks else str(one) for one in columns)


def encode_stream(stream: RowStream, media_type: str) -> AsyncGenerator[bytes, None]:
    """The stream's bytes in the negotiated format."""
    writers: dict[str, Callable[[RowStream], AsyncGenerator[bytes, None]]] = {
        DELIMITED: _delimited,
        JSON: _json_array,
        KSQL_JSON: _elements,
        PROTOBUF: _protobuf_elements,
    }
    return writers[media_type](stream)


def _elements(stream: RowStream) -> AsyncGenerator[bytes, None]:
    write = row_writer([column.type for column in stream.columns])
    header = {"queryId": stream.query_id, "schema": stream.schema_text}
    return _written_elements(stream, header, lambda row: f'"columns":{write(row)}')


def _protobuf_elements(stream: RowStream) -> AsyncGenerator[bytes, None]:
    try:
        schema = proto_text_of(stream.columns, full_name=None, nullable=None)
        serde = RowSerde(row_format("PROTOBUF_NOSR"), stream.columns)
    except FormatError as error:
        raise RequestError(f"The rows of this query cannot be Protobuf messages: {error}") from None
    header = {"queryId": stream.query_id, "schema": stream.schema_text, "protoSchema": schema}

    def write(row: Row) -> str:
        return f'"protobufBytes":"{base64.b64encode(serde.serialize("", row) or b"").decode()}"'

    return _written_elements(stream, header, write)


async def _written_elements(
    stream: RowStream, header: Mapping[str, str], write: Callable[[Row], str]
) -> AsyncGenerator[bytes, None]:
    """A JSON array of header, rows and last word, an element a line: the format of `/query`.

    The comma after an element is on its line, so that a client can read line by line. In a stream that may wait for its
    next row an element leaves at once, which is why such a stream always has a last word.
    """
    waiting = b"[" + _line({"header": header})
    if stream.is_endless:
        yield waiting + b",\n"
        waiting = b""
    async for element in _with_last_word(stream):
        if waiting:
            yield waiting + b",\n"
        waiting = _element(element, write)
        if stream.is_endless and isinstance(element, ResultRow):
            yield waiting + b",\n"
            waiting = b""
    yield waiting + b"]\n"


async def stream_messages(stream: RowStream) -> AsyncGenerator[bytes, None]:
    """The elements of `/query` one by one: the messages of `/ws/query`."""
    write = row_writer([column.type for column in stream.columns])
    yield _line({"header": {"queryId": stream.query_id, "schema": stream.schema_text}})
    async for element in _with_last_word(stream):
        yield _element(element, lambda row: f'"columns":{write(row)}')


def _element(element: ResultRow | StreamEnd | RequestError, write: Callable[[Row], str]) -> bytes:
    match element:
        case ResultRow(values=values, is_tombstone=is_tombstone):
            mark = ',"tombstone":true' if is_tombstone else ""
            return f'{{"row":{{{write(values)}{mark}}}}}'.encode()
        case StreamEnd(message=message):
            return _line({"finalMessage": message})
        case RequestError():
            return _line({"errorMessage": generic_error(element.kind, str(element))})


async def _with_last_word(stream: RowStream) -> AsyncIterator[ResultRow | StreamEnd | RequestError]:
    last: ResultRow | StreamEnd | RequestError | None = None
    async for last in _with_error(stream):
        yield last
    if stream.is_endless and (last is None or isinstance(last, ResultRow)):
        yield StreamEnd("Query Completed")


async def _delimited(stream: RowStream) -> AsyncGenerator[bytes, None]:
    """The columns on the first line, then a row a line; tombstones have no form here and are left out."""
    write = row_writer([column.type for column in stream.columns])
    yield _line(_metadata(stream)) + b"\n"
    async for element in _with_error(stream):
        if isinstance(element, ResultRow) and not element.is_tombstone:
            yield write(element.values).encode() + b"\n"
        elif isinstance(element, RequestError):
            yield _line(generic_error(element.kind, str(element))) + b"\n"


async def _json_array(stream: RowStream) -> AsyncGenerator[bytes, None]:
    """The same as one JSON array."""
    write = row_writer([column.type for column in stream.columns])
    yield b"[" + _line(_metadata(stream))
    async for element in _with_error(stream):
        if isinstance(element, ResultRow) and not element.is_tombstone:
            yield b",\n" + write(element.values).encode()
        elif isinstance(element, RequestError):
            yield b",\n" + _line(generic_error(element.kind, str(element)))
    yield b"]\n"


async def _with_error(stream: RowStream) -> AsyncIterator[ResultRow | StreamEnd | RequestError]:
    async with contextlib.aclosing(stream.rows) as rows:
        try:
            async for element in rows:
                yield element
        except RequestError as error:
            yield error
        except MoldauError as error:
            yield RequestError(str(error), ErrorKind.SERVER_ERROR)
        except Exception:
            _logger.exception("query %s failed", stream.query_id)
            yield RequestError("The query failed, see the server's log", ErrorKind.SERVER_ERROR)


def _metadata(stream: RowStream) -> dict[str, object]:
    return {
        "queryId": stream.query_id,
        "columnNames": [column.name for column in stream.columns],
        "columnTypes": [type_text(column.type) for column in stream.columns],
    }


def _line(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
