"""A Python worker's access to Spark's state: through PySpark's own map objects, or faster where PySpark allows it.

`StateMaps` uses nothing but PySpark's public classes and waits for the response to each request. `StateChannel` of
`state_channel` sends many requests at once, and needs classes that PySpark does not promise to keep; where they are
missing, state is accessed the public way. Start at `opened_state`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from moldau.pipeline.spark.hosted.state_channel import Entry, StateChannel

__all__ = ["StateAccess", "StateMaps", "opened_state"]

_BYTES = StructType([StructField("bytes", BinaryType())])
"""Schema of all keys and values of state. A schema as text would be sent to Spark for parsing, four times per store."""


class StateAccess(Protocol):
    """The state of one group: maps by name, each of bytes to bytes."""

    def get(self, state: str, key: bytes) -> bytes | None:
        """One entry, or None."""

    def get_many(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of these keys, in their order."""

    def write(self, entries: Iterable[Entry]) -> None:
        """Put or remove every entry."""

    def items(self, state: str) -> Iterator[tuple[bytes, bytes]]:
        """Every entry, in the order of the state store."""


def opened_state(handle: StatefulProcessorHandle, names: Sequence[str], *, public_only: bool = False) -> StateAccess:
    """Declare these maps, and return the fastest access that this PySpark offers."""
    maps = {name: handle.getMapState(name, _BYTES, _BYTES) for name in names}
    channel = None if public_only else StateChannel.of(handle)
    return StateMaps(maps) if channel is None else channel


class StateMaps:
    """Access through PySpark's map objects."""

    def __init__(self, maps: Mapping[str, MapState | Any]) -> None:
        self._maps = maps

    def get(self, state: str, key: bytes) -> bytes | None:
        found = self._maps[state].getValue((key,))
        return None if found is None else bytes(found[0])

    def get_many(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(state, key) for key in keys]

    def write(self, entries: Iterable[Entry]) -> None:
        for state, key, value in entries:
            if value is None:
                self._maps[state].removeKey((key,))
            else:
                self._maps[state].updateValue((key,), (value,))

    def items(self, state: str) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._maps[state].iterator():
            yield bytes(key[0]), bytes(value[0])
