"""Requests for Spark's state as bytes, written by hand: PySpark's message classes take five times as long.

A request is a message in a message in a message, each with its tag and length in front (Protocol Buffers), around keys
and values that are pickled tuples of one element. `StateRequests.of` compares what it writes with what PySpark's own
classes write; where that differs, those are used. Start there.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any, Self

__all__ = ["StateRequests", "row"]

_FRAME = struct.Struct(">ii")
_PICKLE_PROTOCOL = 3
_SAMPLES = tuple(bytes(size) for size in (0, 1, 100, 127, 128, 255, 256, 20_000))

Library = Callable[[str, dict[str, Any]], bytes]
"""Makes a request with PySpark's message classes, from a map's name and the arguments of the call."""


def row(data: bytes) -> bytes:
    """A row with one binary column, as the state server reads it."""
    size = len(data)
    if size < 256:
        return b"\x80\x03C" + _BYTES[size] + data + b"q\x00\x85q\x01."
    return pickle.dumps((data,), _PICKLE_PROTOCOL)


_BYTES = [bytes([number]) for number in range(256)]


def _varint(number: int) -> bytes:
    if number < 128:
        return _BYTES[number]
    if number < 16_384:
        return _BYTES[number & 127 | 128] + _BYTES[number >> 7]
    found = b""
    while number > 127:
        found += _BYTES[number & 127 | 128]
        number >>= 7
    return found + _BYTES[number]


class StateRequests:
    """Framed requests for entries of one map."""

    def __init__(self, state: str) -> None:
        name = state.encode()
        self._name = b"\n" + _varint(len(name)) + name

    @classmethod
    def of(cls, state: str, messages: Any, library: Library) -> Self | None:
        """Requests for a map; None if this PySpark writes its messages in another way."""
        requests = cls(state)
        for key in _SAMPLES:
            expected = [
                (requests.get(key), {"getValue": messages.GetValue(userKey=_pickle(key))}),
                (requests.remove(key), {"removeKey": messages.RemoveKey(userKey=_pickle(key))}),
                *(
                    (
                        requests.put(key, value),
                        {"updateValue": messages.UpdateValue(userKey=_pickle(key), value=_pickle(value))},
                    )
                    for value in _SAMPLES
                ),
            ]
            if any(found != framed(library(state, call)) for found, call in expected):
                return None
        return requests

    def get(self, key: bytes) -> bytes:
        """The request for a value."""
        return self._call(b"\x1a", _field(b"\n", row(key)))

    def put(self, key: bytes, value: bytes) -> bytes:
        """The request to set a value."""
        return self._call(b"*", _field(b"\n", row(key)) + _field(b"\x12", row(value)))

    def remove(self, key: bytes) -> bytes:
        """The request to remove an entry."""
        return self._call(b"J", _field(b"\n", row(key)))

    def _call(self, tag: bytes, arguments: bytes) -> bytes:
        call = self._name + tag + _varint(len(arguments)) + arguments
        return framed(_field(b"\x1a", _field(b"\x1a", call)))


def framed(request: bytes) -> bytes:
    """A request with its version and length."""
    return _FRAME.pack(0, len(request)) + request


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + _varint(len(content)) + content


def _pickle(data: bytes) -> bytes:
    return pickle.dumps((data,), _PICKLE_PROTOCOL)
