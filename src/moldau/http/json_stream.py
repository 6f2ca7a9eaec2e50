"""Splits a stream of bytes into JSON objects: `{"a":1} {"a":2}` in pieces of any size becomes one object after another.

Pure. Objects follow each other with any whitespace between them, or none. Newline-delimited JSON is what most clients
send, so a line is first taken for an object. Otherwise only the current object is buffered, and every byte is examined
once, however the stream is cut. Start at `JsonObjectSplitter.documents`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from moldau.http.errors import HttpError, MalformedBodyError

__all__ = ["JsonObjectSplitter"]

_WHITESPACE = b" \t\r\n"
_NOT_WHITESPACE = re.compile(rb"[^ \t\r\n]")
_OUTSIDE_STRING = re.compile(rb'["{}\[\]]')
_OPENING = b"{["
_BRACE = b"{"[0]


class JsonObjectSplitter:
    def __init__(self, max_object_bytes: int) -> None:
        self._max_object_bytes = max_object_bytes
        self._object = bytearray()
        """The beginning of the current object."""
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False

    def documents(self, piece: bytes, decode: Callable[[bytes], Any]) -> Iterator[Any]:
        """As `feed`, with the objects decoded; raises what `decode` raises for an object that is malformed."""
        position = tried = 0
        while position < len(piece):
            if not self._depth and piece[position] != _BRACE:
                found = _NOT_WHITESPACE.search(piece, position)
                if found is None:
                    return
                position = found.start()
            # A line that is no object was tried once: many objects on a long line must not be decoded again and again.
            line = self._line(piece, position) if position >= tried else None
            if line is not None:
                tried = position + len(line) + 1
                try:
                    document = decode(line)
                except MalformedBodyError:
                    document = None  # several objects, a part of one, or really malformed
                if isinstance(document, dict):
                    yield document
                    position = tried
                    continue
            content, position = self._next(piece, position)
            if content is not None:
                yield decode(content)

    def _line(self, piece: bytes, position: int) -> bytes | None:
        """The line at `position` if it may be an object."""
        if self._depth or piece[position] != _BRACE:
            return None
        end = piece.find(b"\n", position, position + self._max_object_bytes)
        return None if end < 0 else piece[position:end]

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield every object that ends in `piece`; exhaust the iterator before the next call.

        Raises `MalformedBodyError` for anything that is not an object, and a 413 for an object over the limit, in both
        cases after the objects before it. The splitter is unusable after that.
        """
        position = 0
        while position < len(piece):
            content, position = self._next(piece, position)
            if content is not None:
                yield content

    def _next(self, piece: bytes, position: int) -> tuple[bytes | None, int]:
        """The object that ends next, `None` at the end of `piece`, and the position behind it."""
        if not self._depth:
            start = _NOT_WHITESPACE.search(piece, position)
            if start is None:
                return None, len(piece)
            position = start.start()
            if piece[position] != _BRACE:
                raise MalformedBodyError(f"expected an object, found {_quote(piece[position : position + 1])}")
        end = self._end_of_object(piece, position)
        self._object += piece[position : len(piece) if end is None else end]
        if len(self._object) > self._max_object_bytes:
            raise HttpError(413, f"An object is larger than {self._max_object_bytes} bytes")
        if end is None:
            return None, len(piece)
        whole = bytes(self._object)
        self._object.clear()
        return whole, end

    def finish(self) -> None:
        """Raise `MalformedBodyError` if the stream ended in the middle of an object."""
        if self._depth:
            raise MalformedBodyError("the stream ended in the middle of an object")

    def _end_of_object(self, piece: bytes, position: int) -> int | None:
        """Where the current object ends, or `None` if it continues after `piece`."""
        if self._is_escaped:
            self._is_escaped = False
            position += 1
        size, quote = len(piece), -1
        while True:
            if self._is_in_string:
                # `find` is many times faster than an expression, and most strings have no escapes.
                if quote < position:
                    quote = piece.find(b'"', position)
                    quote = size if quote < 0 else quote
                escape = piece.find(b"\\", position, quote)
                if escape < 0:
                    if quote == size:
                        return None
                    self._is_in_string, position = False, quote + 1
                elif escape + 1 == size:
                    self._is_escaped = True
                    return None
                else:
                    position = escape + 2
                continue
            found = _OUTSIDE_STRING.search(piece, position)
            if found is None:
                return None
            position, mark = found.end(), found.group()
            if mark == b'"':
                self._is_in_string = True
            elif mark in _OPENING:
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    return position


def _quote(byte: bytes) -> str:
    return repr(byte.decode("latin-1"))
