"""The fetch session of a follower with one leader: each request names only what changed since the one before.

Pure, and the counterpart of the leader's `broker.data.fetch_session` (KIP-227). So a fetch costs what changed, however
many partitions are followed. Start at `FollowerSession.next_request`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from moldau.core.ids import INT32_MAX
from moldau.protocol.fetch import FetchPartition

__all__ = ["FollowerSession", "SessionRequest"]

Key = tuple[bytes, int]
"""Topic id and partition number."""

NO_SESSION: Final = 0
NEW_SESSION: Final = 0
"""The epoch of a full fetch that asks for a session."""


class SessionRequest(NamedTuple):
    """What a request says of its session: see the table in `broker.data.fetch_session`."""

    session_id: int
    session_epoch: int
    topics: list[tuple[bytes, list[FetchPartition]]]
    forgotten: list[tuple[bytes, list[int]]]


class FollowerSession:
    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = NEW_SESSION
        self._told: dict[Key, FetchPartition] = {}
        """What the leader knows that this follower wants."""
        self._touched: dict[Key, None] = {}
        """Partitions that may have changed since the last request."""

    def __len__(self) -> int:
        """How many partitions the leader is asked for."""
        return len(self._told)

    def touch(self, keys: Iterable[Key]) -> None:
        """These partitions may be wanted differently from now on, or no longer."""
        self._touched.update(dict.fromkeys(keys))

    def start_over(self, keys: Iterable[Key]) -> None:
        """Forget the session; the next request names all of these partitions."""
        self._session_id, self._epoch = NO_SESSION, NEW_SESSION
        self._told.clear()
        self._touched = dict.fromkeys(keys)

    def next_request(self, wanted: Callable[[Key], FetchPartition | None]) -> SessionRequest | None:
        """The next request; `None` if nothing is wanted. `wanted` gives a partition's position, or `None` if it is
        not to be fetched now."""
        topics: dict[bytes, list[FetchPartition]] = {}
        forgotten: dict[bytes, list[int]] = {}
        for key in self._touched:
            position = wanted(key)
            if position is None:
                if self._told.pop(key, None) is not None:
                    forgotten.setdefault(key[0], []).append(key[1])
            elif self._told.get(key) != position:
                self._told[key] = position
                topics.setdefault(key[0], []).append(position)
        self._touched.clear()
        if not self._told:
            # A session without partitions ends at the leader too.
            self.start_over(())
            return None
        if self._session_id == NO_SESSION:
            return SessionRequest(NO_SESSION, NEW_SESSION, _by_topic(self._told), [])
        return SessionRequest(self._session_id, self._epoch, list(topics.items()), list(forgotten.items()))

    def on_response(self, session_id: int, answered: Iterable[Key]) -> None:
        """The leader answered. Without a session (it has no room for one) each request is a full one."""
        if session_id == NO_SESSION:
            self.start_over(list(self._told))
            return
        self._epoch = (
            1 if self._epoch in (NEW_SESSION, INT32_MAX) or session_id != self._session_id else self._epoch + 1
        )
        self._session_id = session_id
        self.touch(answered)


def _by_topic(told: dict[Key, FetchPartition]) -> list[tuple[bytes, list[FetchPartition]]]:
    topics: dict[bytes, list[FetchPartition]] = {}
    for (topic_id, _), position in told.items():
        topics.setdefault(topic_id, []).append(position)
    return list(topics.items())
