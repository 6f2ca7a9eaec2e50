"""A shard appends, replays, and answers when it is safe to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from moldau.coordinator.runtime.outcome import CoordinatorRecord, Outcome, Producer, Ticket
from moldau.coordinator.runtime.shard import RESPITE_MS, Shard, coordinator_error
from moldau.core.errors import ErrorCode, MoldauError


class Counter:
    """A core that counts records."""

    def __init__(self) -> None:
        self.replayed: list[bytes] = []
        self.deadlines: list[int] = []
        self.loaded_at: int | None = None

    def put(self, key: bytes, ticket: Ticket) -> Outcome:
        return Outcome([CoordinatorRecord(key, b"")], [(ticket, len(self.replayed) + 1)])

    def look(self, ticket: Ticket) -> Outcome:
        return Outcome(replies=[(ticket, len(self.replayed))])

    def replay(self, key: bytes, value: bytes | None, producer: Producer | None = None) -> None:
        self.replayed.append(key)

    def replay_marker(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        self.replayed.append(b"marker")

    def on_loaded(self, now_ms: int) -> None:
        self.loaded_at = now_ms

    def next_deadline_ms(self) -> int | None:
        return min(self.deadlines, default=None)

    def on_time(self, now_ms: int) -> Outcome:
        self.deadlines.remove(min(self.deadlines))
        return Outcome([CoordinatorRecord(b"time", None)])


Appended = Callable[[MoldauError | None], None]


class Disk:
    def __init__(self) -> None:
        self.batches: list[Sequence[CoordinatorRecord]] = []
        self.waiting: list[Callable[[], None]] = []
        self.is_slow = False
        self.is_stalled = False
        self.stalled: list[Callable[[], None]] = []
        self.error: Exception | None = None

    def append(self, records: Sequence[CoordinatorRecord], producer: Producer | None, then: Appended) -> None:
        if self.is_stalled:
            self.stalled.append(lambda: self._append(records, then))
        else:
            self._append(records, then)

    def _append(self, records: Sequence[CoordinatorRecord], then: Appended) -> None:
        if self.error is not None and not isinstance(self.error, MoldauError):
            raise self.error
        if self.error is None:
            self.batches.append(records)
        then(self.error)

    def let_one_append_through(self) -> None:
        self.stalled.pop(0)()

    def when_committed(self, then: Callable[[], None]) -> None:
        if self.is_slow:
            self.waiting.append(then)
        else:
            then()


class Clock:
    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def woken() -> list[int]:
    return []


@pytest.fixture
def shard(disk: Disk, woken: list[int], clock: Clock) -> Shard[Counter]:
    shard = Shard(Counter(), disk, on_deadline=woken.append, clock=clock)
    shard.activate(0)
    return shard


def put(shard: Shard[Counter], key: bytes, answers: list[Any]) -> Ticket:
    return shard.ask(lambda core, ticket, now: core.put(key, ticket), answers.append, 0)


def test_records_are_appended_as_one_batch_then_replayed_then_answered(shard: Shard[Counter], disk: Disk) -> None:
    answers: list[Any] = []
    put(shard, b"a", answers)
    assert [[one.key for one in batch] for batch in disk.batches] == [[b"a"]]
    assert shard.core.replayed == [b"a"]
    assert answers == [1]
    assert shard.waiting == 0


def test_nobody_hears_of_what_is_not_committed(shard: Shard[Counter], disk: Disk) -> None:
    disk.is_slow = True
    answers: list[Any] = []
    put(shard, b"a", answers)
    shard.ask(lambda core, ticket, now: core.look(ticket), answers.append, 0)
    assert answers == []
    for then in disk.waiting:
        then()
    assert answers == [1, 1]


class FullError(MoldauError):
    code = ErrorCode.KAFKA_STORAGE_ERROR


def test_what_could_not_be_appended_is_not_applied(shard: Shard[Counter], disk: Disk) -> None:
    disk.error = FullError("full")
    answers: list[Any] = []
    put(shard, b"a", answers)
    assert answers == [ErrorCode.NOT_COORDINATOR]
    assert shard.core.replayed == []


def test_an_append_that_fails_for_no_known_reason_is_answered_and_not_applied(
    shard: Shard[Counter], disk: Disk
) -> None:
    disk.error = OSError("no descriptor left")
    answers: list[Any] = []
    put(shard, b"a", answers)
    assert answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert (shard.core.replayed, shard.waiting) == ([], 0)
    disk.error = None
    put(shard, b"a", answers)
    assert answers[1:] == [1]


@pytest.mark.parametrize(
    ("code", "told"),
    [(3, 15), (19, 15), (7, 15), (6, 16), (56, 16), (13, 14), (10, -1), (18, -1), (4, -1), (0, 0)],
)
def test_append_errors_are_told_as_the_coordinators_own(code: int, told: int) -> None:
    assert coordinator_error(ErrorCode(code)) == told


def test_a_shard_that_loads_says_so(disk: Disk) -> None:
    shard = Shard(Counter(), disk, on_deadline=lambda deadline_ms: None, clock=Clock())
    answers: list[Any] = []
    put(shard, b"a", answers)
    assert answers == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    shard.activate(7)
    assert shard.core.loaded_at == 7
    put(shard, b"a", answers)
    assert answers[1:] == [1]


def test_a_closed_shard_sends_everybody_elsewhere(shard: Shard[Counter], disk: Disk) -> None:
    disk.is_slow = True
    answers: list[Any] = []
    put(shard, b"a", answers)
    shard.close()
    put(shard, b"b", answers)
    assert answers == [ErrorCode.NOT_COORDINATOR] * 2
    for then in disk.waiting:
        then()
    assert len(answers) == 2


def test_whoever_is_gone_is_not_answered(shard: Shard[Counter], disk: Disk) -> None:
    disk.is_slow = True
    answers: list[Any] = []
    shard.forget(put(shard, b"a", answers))
    for then in disk.waiting:
        then()
    assert answers == []
    assert shard.core.replayed == [b"a"]


def test_every_deadline_that_has_come_is_acted_on_and_the_next_is_told(
    shard: Shard[Counter], disk: Disk, woken: list[int]
) -> None:
    shard.core.deadlines = [5, 6, 20]
    shard.on_time(10)
    assert len(disk.batches) == 2
    assert woken == [20]


def test_soft_state_follows_records_only_if_they_were_appended(shard: Shard[Counter], disk: Disk) -> None:
    done: list[str] = []
    outcome = Outcome([CoordinatorRecord(b"a", None)], then=lambda: done.append("applied"))
    disk.error = FullError("full")
    shard.carry_out(outcome)
    assert done == []
    disk.error = None
    shard.carry_out(outcome)
    assert done == ["applied"]


# --- while an append waits for the disk ---------------------------------------------------------------


def test_nothing_is_decided_while_an_append_waits_and_all_of_it_in_order_afterwards(
    shard: Shard[Counter], disk: Disk
) -> None:
    disk.is_stalled = True
    answers: list[Any] = []
    put(shard, b"a", answers)
    put(shard, b"b", answers)
    shard.ask(lambda core, ticket, now: core.look(ticket), answers.append, 0)
    shard.act(lambda core, now: Outcome([CoordinatorRecord(b"c", None)]), lambda: answers.append("acted"))
    assert (shard.core.replayed, answers, len(disk.stalled)) == ([], [], 1)
    disk.let_one_append_through()
    assert (shard.core.replayed, answers, len(disk.stalled)) == ([b"a"], [1], 1)
    disk.let_one_append_through()
    assert (shard.core.replayed, answers) == ([b"a", b"b"], [1, 2, 2])
    disk.let_one_append_through()
    assert (shard.core.replayed, answers) == ([b"a", b"b", b"c"], [1, 2, 2, "acted"])
    assert shard.waiting == 0


def test_what_follows_a_failed_append_is_decided_without_its_records(shard: Shard[Counter], disk: Disk) -> None:
    disk.is_stalled = True
    answers: list[Any] = []
    put(shard, b"a", answers)
    put(shard, b"b", answers)
    disk.error = FullError("full")
    disk.let_one_append_through()
    disk.error = None
    disk.let_one_append_through()
    assert answers == [ErrorCode.NOT_COORDINATOR, 1]
    assert shard.core.replayed == [b"b"]


def test_a_long_line_is_worked_off_without_recursion(shard: Shard[Counter], disk: Disk) -> None:
    disk.is_stalled = True
    answers: list[Any] = []
    for _ in range(5000):
        put(shard, b"a", answers)
    disk.is_stalled = False
    disk.let_one_append_through()
    assert answers == list(range(1, 5001))


def test_a_shard_closed_during_an_append_forgets_the_line(shard: Shard[Counter], disk: Disk) -> None:
    disk.is_stalled = True
    answers: list[Any] = []
    put(shard, b"a", answers)
    put(shard, b"b", answers)
    shard.close()
    assert answers == [ErrorCode.NOT_COORDINATOR] * 2
    disk.let_one_append_through()
    assert (len(answers), disk.stalled, shard.core.replayed) == (2, [], [])


def test_a_request_that_cannot_be_decided_late_is_answered_all_the_same(shard: Shard[Counter], disk: Disk) -> None:
    disk.is_stalled = True
    answers: list[Any] = []
    put(shard, b"a", answers)
    shard.ask(lambda core, ticket, now: 1 // 0, answers.append, 0)  # type: ignore[arg-type,return-value]
    put(shard, b"b", answers)
    disk.let_one_append_through()
    disk.let_one_append_through()
    assert answers == [1, ErrorCode.UNKNOWN_SERVER_ERROR, 2]


def test_deadlines_wait_for_the_append_and_then_until_members_were_heard(
    shard: Shard[Counter], disk: Disk, clock: Clock, woken: list[int]
) -> None:
    disk.is_stalled = True
    put(shard, b"a", [])
    shard.core.deadlines = [100]
    clock.now_ms = 60_000
    shard.on_time(clock.now_ms)
    assert shard.core.deadlines == [100]
    disk.is_stalled = False
    disk.let_one_append_through()
    # The disk is to blame for the silence of whoever was due in the meantime: they get a moment to be heard.
    assert shard.core.deadlines == [100]
    assert woken == [60_000 + RESPITE_MS]
    clock.now_ms = woken[-1]
    shard.on_time(clock.now_ms)
    assert shard.core.deadlines == []
    assert shard.core.replayed == [b"a", b"time"]


def test_deadlines_are_looked_at_again_after_an_append_that_did_not_take_long(
    shard: Shard[Counter], disk: Disk, clock: Clock
) -> None:
    disk.is_stalled = True
    shard.core.deadlines = [5, 6]
    clock.now_ms = 10
    shard.on_time(10)
    assert (shard.core.deadlines, len(disk.stalled)) == ([6], 1)
    disk.let_one_append_through()
    assert (shard.core.deadlines, len(disk.stalled)) == ([], 1)
    disk.let_one_append_through()
    assert shard.core.replayed == [b"time", b"time"]


def test_a_core_that_fails_to_replay_does_not_stop_the_line(shard: Shard[Counter], disk: Disk) -> None:
    disk.is_stalled = True
    answers: list[Any] = []
    put(shard, b"a", answers)
    put(shard, b"b", answers)
    replay = shard.core.replay
    shard.core.replay = lambda key, value, producer=None: 1 // 0  # type: ignore[method-assign,assignment,misc]
    with pytest.raises(ZeroDivisionError):
        disk.let_one_append_through()
    shard.core.replay = replay  # type: ignore[method-assign]
    disk.let_one_append_through()
    assert answers == [ErrorCode.UNKNOWN_SERVER_ERROR, 1]
