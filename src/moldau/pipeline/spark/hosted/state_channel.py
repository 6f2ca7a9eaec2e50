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

__all__ = ["Entry", "StateChannel", "StateError"]

Entry = tuple[str, bytes, bytes | None]
"""A map's name, a key, and its value; None removes the entry."""

Call = tuple[str, dict[str, Any]]
"""A map's name, and the arguments of the request."""

IN_FLIGHT = 100
"""Requests sent ahead. Their responses must fit into the socket's buffer, or both ends would deadlock."""

_FRAME = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
_PICKLE_PROTOCOL = 3
OK = 0


class StateError(MoldauError):
    """Spark refused to read or write state."""


class StateChannel:
    """The state of one group: maps by name, each of bytes to bytes."""

    def __init__(self, file: Any, messages: Any) -> None:
        """`file` is the connection to the state server, `messages` the module with its message classes."""
        self._file = file
        self._messages = messages

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
        messages, key = self._messages, _row(b"")
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
        read = self._messages.GetValue
        answers = self._answers((state, {"getValue": read(userKey=_row(key))}) for key in keys)
        return [pickle.loads(value)[0] if value else None for value in answers]

    def write(self, entries: Iterable[Entry]) -> None:
        """Put or remove every entry."""
        put, remove = self._messages.UpdateValue, self._messages.RemoveKey
        calls = (
            (state, {"removeKey": remove(userKey=_row(key))})
            if value is None
            else (state, {"updateValue": put(userKey=_row(key), value=_row(value))})
            for state, key, value in entries
        )
        for _ in self._answers(calls):
            pass

    def items(self, state: str) -> Iterator[tuple[bytes, bytes]]:
        """Every entry, in the order of the state store."""
        call = {"iterator": self._messages.Iterator(iteratorId=str(uuid.uuid4()))}
        is_open = True
        while is_open:
            self._send(state, call)
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
                answer = self._receive(self._messages.StateResponse())
                if answer.statusCode != OK:
                    raise StateError(f"Spark's state {state}: {answer.errorMessage}")
                yield answer.value

    def _send_some(self, calls: Iterator[Call]) -> list[str]:
        """Send requests; returns the names of their maps, in the order of the responses."""
        states: list[str] = []
        for state, call in islice(calls, IN_FLIGHT):
            self._send(state, call)
            states.append(state)
        self._file.flush()
        return states

    def _send(self, state: str, call: dict[str, Any]) -> None:
        request = self._request(state, call)
        self._file.write(_FRAME.pack(0, len(request)))
        self._file.write(request)

    def _request(self, state: str, call: dict[str, Any]) -> bytes:
        messages = self._messages
        map_call = messages.MapStateCall(stateName=state, **call)
        variable_call = messages.StateVariableRequest(mapStateCall=map_call)
        request: bytes = messages.StateRequest(stateVariableRequest=variable_call).SerializeToString()
        return request

    def _receive(self, answer: Any) -> Any:
        (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
        answer.ParseFromString(self._file.read(length))
        return answer


def _row(data: bytes) -> bytes:
    """A row with one binary column, as the state server reads it."""
    return pickle.dumps((data,), _PICKLE_PROTOCOL)
