"""Spark's state as a dictionary, in place of the channel to it. Start at `StateInMemory`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from moldau.pipeline.spark.hosted.state_channel import Entry

__all__ = ["StateInMemory"]


class StateInMemory:
    """The state of one group, as batches that succeed leave it; notes what it is asked for."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, bytes], bytes] = {}
        self.asked: list[list[bytes]] = []
        self.read_whole: list[str] = []

    def get(self, state: str, key: bytes) -> bytes | None:
        return self.get_many(state, [key])[0]

    def get_many(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        self.asked.append(list(keys))
        return [self.entries.get((state, key)) for key in keys]

    def write(self, entries: Iterable[Entry]) -> None:
        for state, key, value in entries:
            if value is None:
                self.entries.pop((state, key), None)
            else:
                self.entries[state, key] = value

    def items(self, state: str) -> Iterator[tuple[bytes, bytes]]:
        self.read_whole.append(state)
        return iter([(key, value) for (name, key), value in self.entries.items() if name == state])
