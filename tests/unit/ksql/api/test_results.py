"""Streams of rows in their formats: what leaves when, and that every answer is whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from moldau.formats.columns import Column
from moldau.formats.types import BIGINT, STRING
from moldau.ksql.api.errors import ErrorKind, RequestError
from moldau.ksql.api.results import (
    DELIMITED,
    JSON,
    KSQL_JSON,
    ResultRow,
    RowStream,
    StreamEnd,
    encode_stream,
    stream_messages,
)

COLUMNS = (Column("K", STRING), Column("N", BIGINT))
ROWS = [ResultRow(("a", 1)), ResultRow(("b", None)), ResultRow(("a", None), is_tombstone=True)]


def stream_of(*elements: ResultRow | StreamEnd | Exception, is_endless: bool = False) -> RowStream:
    async def rows() -> AsyncGenerator[ResultRow | StreamEnd, None]:
        for element in elements:
            if isinstance(element, Exception):
                raise element
            yield element

    return RowStream("q1", COLUMNS, rows(), key_names=frozenset({"K"}), is_endless=is_endless)


def pieces(stream: AsyncGenerator[bytes, None]) -> list[bytes]:
    async def collect() -> list[bytes]:
        return [piece async for piece in stream]

    return asyncio.run(collect())


def document(stream: RowStream, media_type: str) -> Any:
    return json.loads(b"".join(pieces(encode_stream(stream, media_type))))


@pytest.mark.parametrize("is_endless", [False, True])
def test_elements_form_one_array(is_endless: bool) -> None:
    found = document(stream_of(*ROWS, StreamEnd("Limit Reached"), is_endless=is_endless), KSQL_JSON)
    assert found == [
        {"header": {"queryId": "q1", "schema": "`K` STRING KEY, `N` BIGINT"}},
        {"row": {"columns": ["a", 1]}},
        {"row": {"columns": ["b", None]}},
        {"row": {"columns": ["a", None], "tombstone": True}},
        {"finalMessage": "Limit Reached"},
    ]


def test_an_endless_stream_sends_each_element_with_its_comma_at_once() -> None:
    found = pieces(encode_stream(stream_of(ROWS[0], is_endless=True), KSQL_JSON))
    assert [piece.endswith(b",\n") for piece in found] == [True, True, False]
    assert json.loads(b"".join(found))[-1] == {"finalMessage": "Query Completed"}


def test_an_answer_without_rows_is_whole() -> None:
    assert len(document(stream_of(), KSQL_JSON)) == 1
    metadata = {"queryId": "q1", "columnNames": ["K", "N"], "columnTypes": ["STRING", "BIGINT"]}
    assert document(stream_of(), JSON) == [metadata]


def test_lines_and_arrays_leave_tombstones_out() -> None:
    lines = b"".join(pieces(encode_stream(stream_of(*ROWS), DELIMITED))).decode().splitlines()
    assert [json.loads(line) for line in lines[1:]] == [["a", 1], ["b", None]]
    assert document(stream_of(*ROWS), JSON)[1:] == [["a", 1], ["b", None]]


@pytest.mark.parametrize("media_type", [KSQL_JSON, JSON])
def test_a_failure_after_the_first_row_is_the_last_element(media_type: str) -> None:
    failing = stream_of(ROWS[0], RequestError("the topic is gone", ErrorKind.SERVER_ERROR))
    last = document(failing, media_type)[-1]
    error = last["errorMessage"] if media_type == KSQL_JSON else last
    assert (error["error_code"], error["message"]) == (50000, "the topic is gone")


def test_an_error_nobody_foresaw_does_not_show_itself(caplog: pytest.LogCaptureFixture) -> None:
    last = document(stream_of(ROWS[0], ValueError("secret")), KSQL_JSON)[-1]
    assert "secret" not in json.dumps(last)
    assert "secret" in caplog.text


def test_messages_of_a_socket_are_the_elements() -> None:
    found = [json.loads(piece) for piece in pieces(stream_messages(stream_of(ROWS[0], StreamEnd("Limit Reached"))))]
    assert [next(iter(one)) for one in found] == ["header", "row", "finalMessage"]
