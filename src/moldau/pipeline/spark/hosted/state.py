"""A task's stores in Spark's state: reads are prefetched, writes are buffered until the end of the batch.

A `Backend` outlives the batch with its task; the channel to Spark does not, so each batch attaches a new one. Start at
`Backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice

from moldau.pipeline.spark.hosted.state_access import StateAccess
from moldau.pipeline.spark.hosted.state_channel import Entry

__all__ = ["Backend", "GroupState"]

READ_AHEAD = 20_000
"""How many keys of a batch are read at once."""


class GroupState:
    """Spark's state of one group in one batch, and the keys of the batch's records."""

    def __init__(self, channel: StateAccess, record_keys: Callable[[], Iterable[bytes]]) -> None:
        self.channel = channel
        self._find_record_keys = record_keys
        self._record_keys: dict[bytes, None] | None = None

    @property
    def record_keys(self) -> dict[bytes, None]:
        """The distinct keys, in the order of the records."""
        if self._record_keys is None:
            self._record_keys = dict.fromkeys(self._find_record_keys())
        return self._record_keys


class Backend:
    """The entries of one store; a `pipeline.cores.stores.backends.StateBackend`.

    A store that is read for the key of one record will be read for those of the others too. So the first such read
    prefetches the keys of all records, many at a time.
    """

    def __init__(self, state: str, prefix: bytes = b"", *, filled: Collection[bytes]) -> None:
        """`prefix` starts all keys of this store, if tasks share Spark's state; `filled` names the stores in use."""
        self.state = state
        self.identity = prefix + state.encode()
        self.is_new = self.identity not in filled
        self._prefix = prefix
        self._group: GroupState | None = None
        self._read_ahead: dict[bytes, bytes | None] = {}
        self._unread: dict[bytes, None] | None = None
        self._changes: dict[bytes, bytes | None] = {}

    def attach(self, group: GroupState) -> None:
        """Begin a batch with this group's state."""
        self._group = group
        self._read_ahead.clear()
        self._unread = None
        self._changes.clear()

    def get(self, key: bytes, /) -> bytes | None:
        if key in self._changes:
            return self._changes[key]
        if key in self._read_ahead:
            return self._read_ahead.pop(key)
        if self.is_new:
            return None
        group = self._group_state()
        if self._unread is None:
            self._unread = dict.fromkeys(group.record_keys)
        if key not in self._unread:
            return group.channel.get(self.state, self._prefix + key)
        keys = [key, *islice((other for other in self._unread if other != key), READ_AHEAD)]
        for read in keys:
            del self._unread[read]
        found = group.channel.get_many(self.state, [self._prefix + read for read in keys])
        self._read_ahead.update(zip(keys, found, strict=True))
        return self._read_ahead.pop(key)

    def put(self, key: bytes, value: bytes, /) -> None:
        self._changes[key] = value
        self._read_ahead.pop(key, None)

    def delete(self, key: bytes, /) -> None:
        self._changes[key] = None
        self._read_ahead.pop(key, None)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        changes = dict(self._changes)
        prefix, length = self._prefix, len(self._prefix)
        stored = () if self.is_new else self._group_state().channel.items(self.state)
        for key, value in stored:
            if key.startswith(prefix) and key[length:] not in changes:
                yield key[length:], value
        for key, changed in changes.items():
            if changed is not None:
                yield key, changed

    def drain_changes(self) -> dict[bytes, bytes | None]:
        """The entries that were put or deleted (None) since the batch began; the caller writes them."""
        changes, self._changes = self._changes, {}
        self._read_ahead.clear()
        self.is_new = self.is_new and not changes
        return changes

    def entries(self, changes: dict[bytes, bytes | None]) -> Iterator[Entry]:
        """Changes as entries of Spark's state."""
        for key, value in changes.items():
            yield self.state, self._prefix + key, value

    def _group_state(self) -> GroupState:
        assert self._group is not None, "no batch is running"
        return self._group
