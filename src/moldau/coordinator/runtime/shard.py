"""A shard: one core and its partition of an internal topic.

A decision's records are appended as one batch, replayed into the core, and the replies are sent once they are
committed. Recovery replays the same records through the same core. Later decisions wait for the same commit, so no
reply reports something that a crash could still undo.

An append may be as slow as the disk. Until it has ended nothing else is decided: the core has not replayed the records
yet, and never will if the append fails. Requests and deadlines are queued meanwhile and decided in order afterwards.
Start at `Shard.ask`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from moldau.coordinator.runtime.outcome import CoordinatorRecord, Outcome, Producer, Ticket
from moldau.core.errors import ErrorCode, MoldauError

__all__ = ["CoordinatorCore", "RecordAppender", "Shard", "ShardState", "coordinator_error"]

log = logging.getLogger(__name__)

LATE_MS = 1000
"""An append that takes longer has delayed members' heartbeats."""
RESPITE_MS = 3000
"""No deadline fires for this long after a slow append: queued requests of members are handled first."""

_NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
_UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR

_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: _NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: _NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: _UNKNOWN,
    ErrorCode.RECORD_LIST_TOO_LARGE: _UNKNOWN,
    ErrorCode.INVALID_FETCH_SIZE: _UNKNOWN,
}


def coordinator_error(code: ErrorCode) -> ErrorCode:
    """The error code for a client whose records could not be appended."""
    return _ERRORS.get(code, code)


class CoordinatorCore(Protocol):
    """What a shard needs of a core; callers of `Shard.ask` know the core's request methods."""

    def replay(self, key: bytes, value: bytes | None, producer: Producer | None = None) -> None: ...
    def replay_marker(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None: ...
    def on_loaded(self, now_ms: int) -> None:
        """All records are replayed: start the deadlines of the restored state."""

    def next_deadline_ms(self) -> int | None: ...
    def on_time(self, now_ms: int) -> Outcome:
        """Act on one due deadline; the shard calls again while there are more."""
        ...


class RecordAppender(Protocol):
    """The partition, as a shard sees it."""

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: Producer | None,
        then: Callable[[MoldauError | None], None],
    ) -> None:
        """Append all as one batch or none, and call `then`, now or later, with `None` or the error."""

    def when_committed(self, then: Callable[[], None]) -> None:
        """Call `then` as soon as everything appended so far is committed, immediately if it already is."""


class ShardState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


Core = TypeVar("Core", bound=CoordinatorCore)
Answer = Callable[[Any], None]
Decide = Callable[[Core, Ticket, int], Outcome]
"""`(core, ticket, now_ms)`: what to do about a request."""


def _nothing() -> None:
    """The default callback: does nothing."""


class Shard(Generic[Core]):
    def __init__(
        self,
        core: Core,
        appender: RecordAppender,
        *,
        on_deadline: Callable[[int], None],
        clock: Callable[[], int],
    ) -> None:
        self.core = core
        self.state = ShardState.LOADING
        self._appender = appender
        self._on_deadline = on_deadline
        """Called with the core's next deadline after each decision."""
        self._clock = clock
        """The clock in milliseconds, as in `ask`: for decisions made later than they were requested."""
        self._is_appending = False
        self._line: deque[Callable[[], None]] = deque()
        """What is decided once the current append has ended."""
        self._is_going_on = False
        self._respite_ends_ms = 0
        self._waiting: dict[Ticket, Answer] = {}
        self._last_ticket = 0

    @property
    def is_active(self) -> bool:
        return self.state is ShardState.ACTIVE

    @property
    def is_loading(self) -> bool:
        return self.state is ShardState.LOADING

    @property
    def waiting(self) -> int:
        """Gauge: requests that are not answered yet."""
        return len(self._waiting)

    def ask(self, decide: Decide[Core], answer: Answer, now_ms: int) -> Ticket:
        """Decide a request; `answer` is called once, now or later, with the reply or an `ErrorCode`."""
        self._last_ticket = ticket = self._last_ticket + 1
        if self.state is not ShardState.ACTIVE:
            answer(self._unavailable)
            return ticket
        self._waiting[ticket] = answer
        if self._has_to_wait:
            self._line.append(lambda: self._decide_late(decide, ticket))
            return ticket
        try:
            outcome = decide(self.core, ticket, now_ms)
        except BaseException:
            del self._waiting[ticket]
            raise
        self.carry_out(outcome)
        self.on_time(now_ms)
        return ticket

    def act(self, decide: Callable[[Core, int], Outcome], done: Callable[[], None] = _nothing) -> None:
        """Run a decision, `(core, now_ms)`, that no request asked for.

        `done` is called when it was appended and replayed, or when the append failed.
        """
        if self.state is not ShardState.ACTIVE:
            return
        if self._has_to_wait:
            self._line.append(lambda: self.carry_out(decide(self.core, self._clock()), done))
        else:
            self.carry_out(decide(self.core, self._clock()), done)

    @property
    def _has_to_wait(self) -> bool:
        return self._is_appending or bool(self._line)

    def _decide_late(self, decide: Decide[Core], ticket: Ticket) -> None:
        try:
            outcome = decide(self.core, ticket, self._clock())
        except Exception:
            self._give([(ticket, _UNKNOWN)])
            raise
        self.carry_out(outcome)

    def forget(self, ticket: Ticket) -> None:
        """The client has disconnected: drop its reply; the decision remains in effect."""
        self._waiting.pop(ticket, None)

    def carry_out(self, outcome: Outcome, done: Callable[[], None] = _nothing) -> None:
        """Append, replay, and reply once committed. Only for a decision made just now, with no append in progress."""
        if not outcome.records:
            self._finish(outcome, done)
            return
        began_ms = self._clock()
        self._is_appending = True

        def appended(error: MoldauError | None) -> None:
            self._is_appending = False
            now_ms = self._clock()
            if now_ms - began_ms > LATE_MS:
                self._respite_ends_ms = now_ms + RESPITE_MS
            try:
                self._on_appended(outcome, error, done)
            except Exception:
                self._give([(ticket, _UNKNOWN) for ticket, _ in outcome.replies])
                raise
            finally:
                self._go_on()

        try:
            self._appender.append(outcome.records, outcome.producer, appended)
        except Exception:
            if not self._is_appending:
                raise  # the code after the append has failed
            self._is_appending = False
            log.exception("a coordinator's decision could not be appended")
            self._refuse(outcome, _UNKNOWN)
            done()
            self._go_on()

    def _on_appended(self, outcome: Outcome, error: MoldauError | None, done: Callable[[], None]) -> None:
        if self.state is ShardState.CLOSED:
            return  # all requests were answered NOT_COORDINATOR, and the next leader replays the log
        if error is not None:
            log.warning("a coordinator's decision could not be appended: %s", error)
            self._refuse(outcome, error.code)
            done()
            return
        for key, value in outcome.records:
            self.core.replay(key, value, outcome.producer)
        self._finish(outcome, done)

    def _finish(self, outcome: Outcome, done: Callable[[], None]) -> None:
        if outcome.then is not None:
            outcome.then()
        if outcome.replies:
            self._appender.when_committed(lambda: self._give(outcome.replies))
        done()

    def _go_on(self) -> None:
        """Decide what was queued, up to the next append that does not complete at once."""
        if not self._line or self._is_going_on:
            return
        self._is_going_on = True
        while self._line and not self._is_appending:
            decide = self._line.popleft()
            try:
                decide()
            except Exception:
                log.exception("a coordinator request that had waited for an append failed")
        self._is_going_on = False
        self.on_time(self._clock())

    def _refuse(self, outcome: Outcome, code: ErrorCode) -> None:
        self._give([(ticket, coordinator_error(code)) for ticket, _ in outcome.replies])

    def on_time(self, now_ms: int) -> None:
        """Let the core act on every due deadline, and schedule the next wake-up."""
        if self.state is not ShardState.ACTIVE:
            return
        if self._has_to_wait:
            self._look_at_deadlines_later()
            return
        while (deadline_ms := self.core.next_deadline_ms()) is not None:
            if now_ms < max(deadline_ms, self._respite_ends_ms):
                self._on_deadline(max(deadline_ms, self._respite_ends_ms))
                return
            self.carry_out(self.core.on_time(now_ms))
            if self._is_appending:
                self._look_at_deadlines_later()
                return

    def _look_at_deadlines_later(self) -> None:
        """Deadlines are checked when the queue is empty, so queue one entry if there is none."""
        if not self._line:
            self._line.append(_nothing)

    def marker_appended(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        """A transaction marker was appended to this shard's partition by the transaction coordinator."""
        if self.state is ShardState.ACTIVE:
            self.core.replay_marker(producer_id, producer_epoch, is_commit)

    def activate(self, now_ms: int) -> None:
        """All records are replayed: answer requests from now on."""
        self.state = ShardState.ACTIVE
        self.core.on_loaded(now_ms)
        self.on_time(now_ms)

    def close(self) -> None:
        """This broker is no longer the coordinator."""
        self.state = ShardState.CLOSED
        self._line.clear()
        self._give([(ticket, ErrorCode.NOT_COORDINATOR) for ticket in list(self._waiting)])

    @property
    def _unavailable(self) -> ErrorCode:
        is_loading = self.state is ShardState.LOADING
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR

    def _give(self, replies: Sequence[tuple[Ticket, Any]]) -> None:
        for ticket, reply in replies:
            answer = self._waiting.pop(ticket, None)
            if answer is not None:
                answer(reply)
