"""Requests for state that are written by hand are those that PySpark's classes write."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

import pytest

from moldau.pipeline.spark.hosted.state_channel import StateChannel, StateError
from moldau.pipeline.spark.hosted.state_requests import StateRequests, row

messages: Any = pytest.importorskip("pyspark.sql.streaming.proto.StateMessage_pb2")


class Wire:
    """A connection on which all responses are there already."""

    def __init__(self, *responses: Any) -> None:
        self.sent = io.BytesIO()
        data = [response.SerializeToString() for response in responses]
        self._received = io.BytesIO(b"".join(struct.pack(">i", len(one)) + one for one in data))

    def write(self, data: bytes) -> None:
        self.sent.write(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def read(self, size: int) -> bytes:
        return self._received.read(size)


def test_this_pyspark_takes_requests_written_by_hand() -> None:
    channel = StateChannel(Wire(), messages)
    assert StateRequests.of("a store", messages, channel._request) is not None


def test_other_messages_are_noticed() -> None:
    channel = StateChannel(Wire(), messages)
    assert StateRequests.of("a store", messages, lambda state, call: channel._request(state + "!", call)) is None


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_a_row_is_a_pickled_tuple(size: int) -> None:
    assert pickle.loads(row(bytes(size))) == (bytes(size),)


def test_values_are_read_in_order_and_missing_ones_are_none() -> None:
    found = messages.StateResponse(value=pickle.dumps((b"1",)))
    channel = StateChannel(Wire(found, messages.StateResponse(), found), messages)
    assert channel.get_many("s", [b"a", b"b", b"c"]) == [b"1", None, b"1"]


def test_both_ways_send_the_same() -> None:
    ways = []
    for by_hand in (True, False):
        wire = Wire(*[messages.StateResponse()] * 3)
        channel = StateChannel(wire, messages)
        if not by_hand:
            channel._by_state["s"] = channel.library_requests("s")
        channel.write([("s", b"a", b"1"), ("s", b"b" * 300, b"2" * 200), ("s", b"c", None)])
        ways.append(wire.sent.getvalue())
    assert ways[0] == ways[1]


def test_a_refusal_is_raised() -> None:
    refused = messages.StateResponse(statusCode=1, errorMessage="no such map")
    with pytest.raises(StateError, match="Spark's state s: no such map"):
        StateChannel(Wire(refused), messages).write([("s", b"a", b"1")])
