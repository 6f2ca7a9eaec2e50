"""A shard: one core and its partition of an internal topic.

A decision's records are appended as one batch, replayed into the core, and only when they are committed does anybody
hear of it. Recovery replays the same records through the same core. Whatever was decided on the way to a commit waits
behind it too, so no reply tells of something that a crash could still take back.

An append may take as long as a disk does. Until it is over nothing else is decided: the core does not know the records
yet, and will never know them if the append fails. Requests, deadlines and the rest stand in line meanwhile, and are
decided in their order afterwards. Start at `Shard.ask`.
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
"""An append that takes longer has kept members from being heard."""
RESPITE_MS = 3000
"""After such an append no deadline counts for this long: members whose requests waited for it are heard first."""

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
    """What a client of the coordinator is told when its records could not be appended."""
    return _ERRORS.get(code, code)


class CoordinatorCore(Protocol):
    """What a shard needs of a core; its request methods are known to whoever asks."""

    def replay(self, key: bytes, value: bytes | None, producer: Producer | None = None) -> None: ...
    def replay_marker(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None: ...
    def on_loaded(self, now_ms: int) -> None:
        """Everything was replayed: start timers for what came back."""

    def next_deadline_ms(self) -> int | None: ...
    def on_time(self, now_ms: int) -> Outcome:
        """Act on one deadline that has come; the shard asks again while there are more."""
        ...


class RecordAppender(Protocol):
    """The partition, as a shard sees it."""

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: Producer | None,
        then: Callable[[MoldauError | None], None],
    ) -> None:
        """Append all as one batch or none, and tell `then` which, at once or later: `None`, or why not."""

    def when_committed(self, then: Callable[[], None]) -> None:
        """Call `then` as soon as all that was appended is committed, at once if it is."""


class ShardState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


Core = TypeVar("Core", bound=CoordinatorCore)
Answer = Callable[[Any], None]
Decide = Callable[[Core, Ticket, int], Outcome]
"""`(core, ticket, now_ms)`: what to do about a request."""


def _nothing() -> None:
    """Nobody has to hear of it."""


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
        """Told the core's next deadline after each decision."""
        self._clock = clock
        """The time in milliseconds, as in `ask`: for what is decided later than it was asked."""
        self._is_appending = False
        self._line: deque[Callable[[], None]] = deque()
        """What is decided once the append under way is over."""
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
        """Have a request decided; `answer` is called once, now or later, with the reply or an `ErrorCode`."""
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
        """Have something decided, `(core, now_ms)`, that nobody asked for.

        `done` is called when it was appended and replayed, or when it could not be.
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
        """Whoever asked has gone; the decision stands."""
        self._waiting.pop(ticket, None)

    def carry_out(self, outcome: Outcome, done: Callable[[], None] = _nothing) -> None:
        """Append, replay, and reply when that is committed. For a decision made just now, with no append under way."""
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
                raise  # what follows an append has failed
            self._is_appending = False
            log.exception("a coordinator's decision could not be appended")
            self._refuse(outcome, _UNKNOWN)
            done()
            self._go_on()

    def _on_appended(self, outcome: Outcome, error: MoldauError | None, done: Callable[[], None]) -> None:
        if self.state is ShardState.CLOSED:
            return  # everybody was told to look elsewhere, and whoever leads next replays the log
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
        """Decide what stood in line, up to the next append that takes a while."""
        if not self._line or self._is_going_on:
            return
        self._is_going_on = True
        while self._line and not self._is_appending:
            decide = self._line.popleft()
            try:
                decide()
            except Exception:
                log.exception("a coordinator could not decide what had to wait for an append")
        self._is_going_on = False
        self.on_time(self._clock())

    def _refuse(self, outcome: Outcome, code: ErrorCode) -> None:
        self._give([(ticket, coordinator_error(code)) for ticket, _ in outcome.replies])

    def on_time(self, now_ms: int) -> None:
        """Let the core act on every deadline that has come, and ask to be woken for the next."""
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
        """Something in line is enough: deadlines are looked at when the line is empty."""
        if not self._line:
            self._line.append(_nothing)

    def marker_appended(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        """A transaction's end was written into this shard's partition by somebody else."""
        if self.state is ShardState.ACTIVE:
            self.core.replay_marker(producer_id, producer_epoch, is_commit)

    def activate(self, now_ms: int) -> None:
        """All records are replayed: answer from now on."""
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
