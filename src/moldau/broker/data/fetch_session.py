"""Fetch sessions: a reader sends its list of partitions once and from then on only changes (KIP-227).

Pure: sessions determine which partitions a request reads and which ones its reply contains; `broker.data.fetch` reads.
A fetch of a session reads only partitions that are ready: those that may have something to tell. A partition without
news is watched instead, until something happens to it, so a fetch costs what changed and not what its session knows.
Start at `FetchSessions.begin`.

    session id, epoch   meaning
    0, -1               one full fetch, no session
    0, 0                a full fetch that asks for a session
    id, -1              close the session, one full fetch
    id, 0               close the session, a full fetch that asks for a new one
    id, n               the next fetch of the session: partitions added, changed, forgotten
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from moldau.core.chance import CHANCE
from moldau.core.errors import ErrorCode
from moldau.core.ids import INT32_MAX
from moldau.protocol.fetch import FIRST_WITH_TOPIC_IDS, FetchPartition, FetchRequest

if TYPE_CHECKING:
    from moldau.broker.data.parked_fetches import ParkedFetch

__all__ = ["FetchContext", "FetchSession", "FetchSessions", "SessionError"]

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTABLE_AFTER_MS = 120_000
SWEEP_MS: Final = 5_000
"""How often a session reads all of its partitions, for what is not announced: log starts that move, disks that fail."""

Key = tuple[bytes, int]
Wanted = tuple[bytes, FetchPartition]
"""A partition to read: its topic's bytes and the requested offsets and limits."""


class Answered(Protocol):
    """The fields of an answered partition that a session uses."""

    @property
    def partition(self) -> int: ...
    @property
    def error_code(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def preferred_read_replica(self) -> int: ...
    @property
    def diverging_epoch(self) -> tuple[int, int] | None: ...
    @property
    def records_length(self) -> int: ...


A = TypeVar("A", bound=Answered)


class Watched(Protocol):
    """A partition, as far as a session watches it."""

    @property
    def waiting(self) -> set[Any]: ...


class SessionError(NamedTuple):
    """The request does not fit its session; the reader starts over with a full fetch."""

    code: ErrorCode


class _Known(NamedTuple):
    """The values last sent to the reader for a partition."""

    wanted: FetchPartition
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1


class FetchSession:
    __slots__ = (
        "_watched",
        "created_ms",
        "is_privileged",
        "known",
        "last_used_ms",
        "next_epoch",
        "parked",
        "ready",
        "session_id",
        "swept_ms",
        "uses_topic_ids",
    )

    def __init__(self, session_id: int, *, is_privileged: bool, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.is_privileged = is_privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.last_used_ms = self.swept_ms = now_ms
        self.next_epoch = 1
        self.known: dict[Key, _Known] = {}
        self.ready: dict[Key, None] = {}
        """Which to read, in the order in which they are served; one that returned records moves to the end."""
        self._watched: dict[Watched, Key] = {}
        self.parked: set[ParkedFetch] = set()
        """Its fetches that wait; one, unless the reader is odd."""

    def wanted(self) -> list[Wanted]:
        return [(key[0], self.known[key].wanted) for key in self.ready]

    def update(self, request: FetchRequest) -> None:
        for topic, forgotten in request.forgotten:
            for index in forgotten:
                self.known.pop((topic, index), None)
                self.ready.pop((topic, index), None)
        for topic, partitions in request.topics:
            for wanted in partitions:
                key = (topic, wanted.partition)
                known = self.known.get(key)
                self.known[key] = _Known(wanted) if known is None else known._replace(wanted=wanted)
                self.ready[key] = None

    def sweep(self, now_ms: int) -> None:
        if now_ms - self.swept_ms >= SWEEP_MS:
            self.swept_ms = now_ms
            self.ready.update(dict.fromkeys(self.known))

    def remember(self, topic: bytes, answered: Answered) -> bool:
        """Store the values to be sent for a partition; return whether the reply must include it."""
        key = (topic, answered.partition)
        known = self.known.get(key)
        if known is None:
            return True
        has_records = answered.records_length > 0
        has_error = answered.error_code != ErrorCode.NONE
        self.known[key] = news = known._replace(
            # After an error the stored value is reset, so that the next reply without an error is always sent.
            high_watermark=-1 if has_error else answered.high_watermark,
            last_stable_offset=answered.last_stable_offset,
            log_start_offset=answered.log_start_offset,
        )
        if has_records:
            self.ready.pop(key, None)
            self.ready[key] = None
        return (
            has_records
            or has_error
            or news != known
            or answered.preferred_read_replica >= 0
            or answered.diverging_epoch is not None
        )

    # --- watching ---------------------------------------------------------------------------------------

    def watch(self, topic: bytes, index: int, partition: Watched) -> None:
        """Do not read a partition again until something happens to it: it has nothing to tell."""
        key = (topic, index)
        if key in self.known:
            self.ready.pop(key, None)
            self._watched[partition] = key
            partition.waiting.add(self)

    def on_mark(self, partition: Watched, woken: dict[ParkedFetch, None]) -> None:
        """Something happened to a watched partition: read it again, and at once if a fetch waits."""
        partition.waiting.discard(self)
        key = self._watched.pop(partition, None)
        if key in self.known:
            self.ready[key] = None
            woken.update(dict.fromkeys(self.parked))

    def end(self) -> None:
        for partition in self._watched:
            partition.waiting.discard(self)
        self._watched.clear()


class FetchContext:
    """One request, with or without a session."""

    __slots__ = ("_keys", "_on_answer", "session", "session_id", "wanted")

    def __init__(
        self,
        wanted: list[Wanted],
        session: FetchSession | None = None,
        on_answer: Callable[[], FetchSession | None] | None = None,
    ) -> None:
        self.wanted = wanted
        self.session = session
        self.session_id = NO_SESSION if session is None else session.session_id
        self._keys: set[Key] = set() if session is None else set(session.ready)
        self._on_answer = on_answer

    def newly_ready(self) -> list[Wanted]:
        """The partitions of the session that have become ready since the request; from now on they are part of it."""
        if self.session is None:
            return []
        added = [key for key in self.session.ready if key not in self._keys]
        self._keys.update(added)
        return [(key[0], self.session.known[key].wanted) for key in added]

    def answer(self, answered: Sequence[tuple[bytes, A]]) -> Sequence[tuple[bytes, A]]:
        """Return the partitions to send. Call it once, with every partition that was read, just before sending."""
        if self.session is not None:
            session = self.session
            return [(topic, partition) for topic, partition in answered if session.remember(topic, partition)]
        if self._on_answer is not None:
            created = self.session = self._on_answer()
            if created is not None:
                self.session_id = created.session_id
                for topic, partition in answered:
                    created.remember(topic, partition)
        return answered


class FetchSessions:
    """The sessions of one broker, up to the number of slots."""

    def __init__(self, slots: int = 1000, random_id: Callable[[], int] | None = None) -> None:
        self._slots = slots
        self._random_id = random_id or (lambda: CHANCE.randint(1, INT32_MAX))
        self._sessions: dict[int, FetchSession] = {}
        """Least recently used first."""
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FetchSession]:
        return iter(self._sessions.values())

    @property
    def partitions(self) -> int:
        return sum(len(session.known) for session in self._sessions.values())

    def begin(self, request: FetchRequest, version: int, now_ms: int) -> FetchContext | SessionError:
        """Determine which partitions a request reads."""
        if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._continue(request, version, now_ms)
        if request.session_id != NO_SESSION:
            self._end(request.session_id)
        wanted = [(topic, partition) for topic, partitions in request.topics for partition in partitions]
        if request.session_epoch == FINAL_EPOCH or not wanted:
            return FetchContext(wanted)
        return FetchContext(wanted, on_answer=lambda: self._create(request, version, now_ms))

    def _continue(self, request: FetchRequest, version: int, now_ms: int) -> FetchContext | SessionError:
        session = self._sessions.get(request.session_id)
        if session is None:
            return SessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != session.next_epoch:
            return SessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != (version >= FIRST_WITH_TOPIC_IDS):
            return SessionError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request)
        if not session.known:
            self._end(session.session_id)
            return FetchContext([])
        session.next_epoch = 1 if session.next_epoch == INT32_MAX else session.next_epoch + 1
        session.last_used_ms = now_ms
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)
        session.sweep(now_ms)
        return FetchContext(session.wanted(), session)

    def _create(self, request: FetchRequest, version: int, now_ms: int) -> FetchSession | None:
        """Open a session if a slot is free or another session can be evicted."""
        size = sum(len(partitions) for _, partitions in request.topics)
        is_privileged = request.replica_id >= 0
        if len(self._sessions) >= self._slots and not self._make_room(is_privileged, size, now_ms):
            return None
        session_id = self._random_id()
        while session_id in self._sessions:
            session_id = self._random_id()
        session = FetchSession(
            session_id,
            is_privileged=is_privileged,
            uses_topic_ids=version >= FIRST_WITH_TOPIC_IDS,
            now_ms=now_ms,
        )
        session.update(request)
        self._sessions[session_id] = session
        return session

    def _make_room(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        """Evict a session unused for long or of lower priority: a consumer's for a follower's, or a smaller old one."""
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms <= EVICTABLE_AFTER_MS:
            candidates = [
                session
                for session in self._sessions.values()
                if (is_privileged and not session.is_privileged)
                or (
                    session.is_privileged <= is_privileged
                    and len(session.known) < size
                    and now_ms - session.created_ms > EVICTABLE_AFTER_MS
                )
            ]
            if not candidates:
                return False
            oldest = min(candidates, key=lambda session: (session.is_privileged, len(session.known)))
        self._end(oldest.session_id)
        self.evictions += 1
        return True

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.end()
