"""Objects come out of a stream whole, however it is cut, and nothing that is sent costs more than its length."""

from __future__ import annotations

import json
import time
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.http.errors import HttpError, MalformedBodyError
from moldau.http.json_stream import JsonObjectSplitter

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\{}[]\n é\u2028'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(alphabet='k"\\}{'), values, max_size=3)


def decode(content: bytes) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise MalformedBodyError(str(error)) from None


def split(pieces: list[bytes], limit: int = 10_000) -> list[Any]:
    splitter = JsonObjectSplitter(limit)
    found = [json.loads(content) for piece in pieces for content in splitter.feed(piece)]
    splitter.finish()
    other = JsonObjectSplitter(limit)
    assert [document for piece in pieces for document in other.documents(piece, decode)] == found
    other.finish()
    return found


@settings(deadline=None)
@given(st.lists(objects, max_size=4), st.sampled_from(["", "\n", " \r\n\t", "\n\n"]), st.booleans(), st.data())
def test_objects_come_out_however_the_bytes_are_cut(sent: list[Any], gap: str, ascii_only: bool, data: Any) -> None:
    wire = (gap + gap.join(json.dumps(one, ensure_ascii=ascii_only) for one in sent) + gap).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=5)))
    pieces = [wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    assert split([wire]) == sent
    assert split(pieces) == sent
    assert split([wire[at : at + 1] for at in range(len(wire))]) == sent


@pytest.mark.parametrize("text", ["1", "[{}]", '"x"', "null", ",", "}", "\ufeff{}", "\x00"])
def test_only_objects_are_taken_and_those_before_are_given(text: str) -> None:
    found = []
    with pytest.raises(MalformedBodyError, match="expected an object"):
        found.extend(iter_all(b'{"a":1} ' + text.encode(), found))
    assert found == [b'{"a":1}']


def iter_all(content: bytes, found: list[bytes]) -> list[bytes]:
    for one in JsonObjectSplitter(100).feed(content):
        found.append(one)
    return []


@pytest.mark.parametrize("text", ['{"a', "{", '{"a":"\\', '{"a":[{}'])
def test_an_object_that_does_not_end_is_an_error_at_the_end(text: str) -> None:
    splitter = JsonObjectSplitter(100)
    assert list(splitter.feed(text.encode())) == []
    with pytest.raises(MalformedBodyError, match="in the middle of an object"):
        splitter.finish()


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_an_object_over_the_limit_ends_the_stream_before_it_is_whole(step: int) -> None:
    splitter = JsonObjectSplitter(50)
    wire = b'{"a":"' + b"x" * 1000
    pieces = (wire[at : at + step] for at in range(0, len(wire), step))
    with pytest.raises(HttpError) as caught:
        list(chain.from_iterable(map(splitter.feed, pieces)))
    assert caught.value.status == 413
    assert len(splitter._object) <= 50 + step


def test_a_limit_is_for_each_object_and_not_for_all() -> None:
    assert len(split([b'{"a":"' + b"x" * 40 + b'"}'] * 1000, limit=50)) == 1000


@pytest.mark.parametrize("wire", [b'{"a":"' + b"\\\\" * 100_000, b"{" * 200_000, b" " * 200_000, b'{"":"",' * 30_000])
def test_the_cost_is_linear_byte_by_byte(wire: bytes) -> None:
    began = time.process_time()
    splitter = JsonObjectSplitter(10**9)
    for at in range(len(wire)):
        assert list(splitter.feed(wire[at : at + 1])) == []
    # Quadratic work on this much input takes minutes.
    assert time.process_time() - began < 20
