"""A Python worker's access to Spark's state, with many requests in flight instead of one at a time.

PySpark's own client waits for the response to each `getValue` and `updateValue`, 60 to 200 µs. The state server
responds in order, so many requests can be sent before the first response is read; a request then costs a third.
Supports only maps of bytes to bytes. The protocol and its message classes are internals of PySpark: without them there
is no channel, and `state_access` uses PySpark's own client. Start at `StateChannel.of`.
"""

from __future__ import annotations

import pickle
import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Self

from moldau.core.errors import MoldauError
from moldau.pipeline.spark.hosted.state_requests import Library, StateRequests, framed, row

__all__ = ["Entry", "StateChannel", "StateError"]

Entry = tuple[str, bytes, bytes | None]
"""A map's name, a key, and its value; None removes the entry."""

Call = tuple[str, bytes]
"""A map's name, and the request with its frame."""

IN_FLIGHT = 100
"""Requests sent ahead. Their responses must fit into the socket's buffer, or both ends would deadlock."""

_LENGTH = struct.Struct(">i")
OK = 0


_by_hand: dict[str, StateRequests | None] = {}
"""Requests by a map's name, compared with PySpark's once in each worker; a channel is new with every batch."""


class StateError(MoldauError):
    """Spark refused to read or write state."""


class StateChannel:
    """The state of one group: maps by name, each of bytes to bytes."""

    def __init__(self, file: Any, messages: Any) -> None:
        """`file` is the connection to the state server, `messages` the module with its message classes."""
        self._file = file
        self._messages = messages
        self._by_state: dict[str, StateRequests | _LibraryRequests] = {}

    @classmethod
    def of(cls, handle: Any) -> Self | None:
        """The channel of a stateful processor; None if this PySpark lacks something that it needs."""
        try:
            import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

            channel = cls(handle._statefulProcessorApiClient.sockfile, messages)
            channel._try_all_requests()
        except (ImportError, AttributeError, TypeError, ValueError):
            return None
        return channel

    def _try_all_requests(self) -> None:
        """Build one request of each kind, without sending it; raises if a message class has changed."""
        messages, key = self._messages, row(b"")
        for call in (
            {"getValue": messages.GetValue(userKey=key)},
            {"updateValue": messages.UpdateValue(userKey=key, value=key)},
            {"removeKey": messages.RemoveKey(userKey=key)},
            {"iterator": messages.Iterator(iteratorId="")},
        ):
            self._request("", call)
        answer, entries = messages.StateResponse(), messages.StateResponseWithMapIterator()
        _ = answer.statusCode, answer.errorMessage, answer.value
        _ = entries.statusCode, entries.requireNextFetch, entries.kvPair

    def get(self, state: str, key: bytes) -> bytes | None:
        """One entry, or None."""
        return self.get_many(state, (key,))[0]

    def get_many(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of these keys, in their order."""
        request = self._requests(state).get
        answers = self._answers((state, request(key)) for key in keys)
        return [pickle.loads(value)[0] if value else None for value in answers]

    def write(self, entries: Iterable[Entry]) -> None:
        """Put or remove every entry."""
        of = self._requests
        calls = (
            (state, of(state).remove(key) if value is None else of(state).put(key, value))
            for state, key, value in entries
        )
        for _ in self._answers(calls):
            pass

    def items(self, state: str) -> Iterator[tuple[bytes, bytes]]:
        """Every entry, in the order of the state store."""
        call = self._request(state, {"iterator": self._messages.Iterator(iteratorId=str(uuid.uuid4()))})
        is_open = True
        while is_open:
            self._file.write(framed(call))
            self._file.flush()
            answer = self._receive(self._messages.StateResponseWithMapIterator())
            if answer.statusCode != OK:
                return
            is_open = answer.requireNextFetch
            for pair in answer.kvPair:
                yield pickle.loads(pair.key)[0], pickle.loads(pair.value)[0]

    def _answers(self, calls: Iterable[Call]) -> Iterator[bytes]:
        remaining = iter(calls)
        while states := self._send_some(remaining):
            for state in states:
                length = self._length()
                if not length:
                    yield b""  # All fields have their defaults: OK, and no value.
                    continue
                answer = self._parse(self._messages.StateResponse(), length)
                if answer.statusCode != OK:
                    raise StateError(f"Spark's state {state}: {answer.errorMessage}")
                yield answer.value

    def _send_some(self, calls: Iterator[Call]) -> list[str]:
        """Send requests; returns the names of their maps, in the order of the responses."""
        some = list(islice(calls, IN_FLIGHT))
        self._file.write(b"".join([request for _, request in some]))
        self._file.flush()
        return [state for state, _ in some]

    def _requests(self, state: str) -> StateRequests | _LibraryRequests:
        found = self._by_state.get(state)
        if found is None:
            if state not in _by_hand:
                _by_hand[state] = StateRequests.of(state, self._messages, self._request)
            found = self._by_state[state] = _by_hand[state] or self.library_requests(state)
        return found

    def library_requests(self, state: str) -> _LibraryRequests:
        """Requests made with PySpark's message classes."""
        return _LibraryRequests(state, self._messages, self._request)

    def _request(self, state: str, call: dict[str, Any]) -> bytes:
        messages = self._messages
        map_call = messages.MapStateCall(stateName=state, **call)
        variable_call = messages.StateVariableRequest(mapStateCall=map_call)
        request: bytes = messages.StateRequest(stateVariableRequest=variable_call).SerializeToString()
        return request

    def _receive(self, answer: Any) -> Any:
        return self._parse(answer, self._length())

    def _length(self) -> int:
        length: int = _LENGTH.unpack(self._file.read(4))[0]
        return length

    def _parse(self, answer: Any, length: int) -> Any:
        answer.ParseFromString(self._file.read(length))
        return answer


class _LibraryRequests:
    """The same as `StateRequests`, made with PySpark's message classes."""

    def __init__(self, state: str, messages: Any, request: Library) -> None:
        self._state = state
        self._messages = messages
        self._request = request

    def get(self, key: bytes) -> bytes:
        return self._call(getValue=self._messages.GetValue(userKey=row(key)))

    def put(self, key: bytes, value: bytes) -> bytes:
        return self._call(updateValue=self._messages.UpdateValue(userKey=row(key), value=row(value)))

    def remove(self, key: bytes) -> bytes:
        return self._call(removeKey=self._messages.RemoveKey(userKey=row(key)))

    def _call(self, **call: Any) -> bytes:
        return framed(self._request(self._state, call))
