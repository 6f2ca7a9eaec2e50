"""The transaction core, decision by decision, with time and records in hand."""

from __future__ import annotations

import pytest

from moldau.coordinator.runtime.outcome import Outcome
from moldau.coordinator.transaction.core import Granted, TransactionCore, TransactionSettings
from moldau.coordinator.transaction.listing import list_transactions
from moldau.coordinator.transaction.requests import Owner
from moldau.coordinator.transaction.states import FOLLOWS, TransactionState
from moldau.coordinator.transaction.transaction import Transaction
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.coordinator_records import TransactionLogKey, TransactionLogValue, encode_key, encode_value

NONE = ErrorCode.NONE
OLDER, NEWER = 0, 2
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TICKET = 1
NO_ID = -1


class Coordinator:
    """A core whose records are replayed at once, and what it told its shell."""

    def __init__(self) -> None:
        self.told: list[Transaction] = []
        self.core = TransactionCore(
            TransactionSettings(expiration_ms=10_000, expiry_interval_ms=1_000), on_ending=self.told.append
        )
        self.core.on_loaded(0)
        self.now_ms = 0
        self.next_id = 100

    def carry_out(self, outcome: Outcome) -> object:
        for key, value in outcome.records:
            self.core.replay(key, value)
        if outcome.then is not None:
            outcome.then()
        return outcome.replies[0][1] if outcome.replies else None

    def init(self, expected: Owner | None = None, *, timeout_ms: int = 1000, fresh: bool = True) -> Granted:
        self.next_id += 1
        reply = self.carry_out(
            self.core.init_producer_id("x", timeout_ms, expected, self.next_id if fresh else NO_ID, TICKET, self.now_ms)
        )
        assert isinstance(reply, Granted)
        return reply

    def add(self, owner: Owner, *partitions: TopicPartition, version: int = OLDER) -> object:
        return self.carry_out(self.core.add_partitions("x", owner, partitions, version, TICKET, self.now_ms))

    def end(self, owner: Owner, *, is_commit: bool = True, version: int = OLDER, fresh: bool = True) -> Granted:
        self.next_id += 1
        fresh_id = self.next_id if fresh else NO_ID
        reply = self.carry_out(self.core.end_transaction("x", owner, is_commit, version, fresh_id, TICKET, self.now_ms))
        assert isinstance(reply, Granted)
        return reply

    def mark(self) -> None:
        self.carry_out(self.core.markers_written(self.told[-1], self.now_ms))

    def wait(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        while (deadline_ms := self.core.next_deadline_ms()) is not None and deadline_ms <= self.now_ms:
            self.carry_out(self.core.on_time(self.now_ms))

    @property
    def transaction(self) -> Transaction:
        return self.core.transactions["x"]

    def at_epoch(self, epoch: int) -> Owner:
        """As if there had been that many transactions."""
        owner = owner_of(self.init())
        value = self.transaction.record_value()
        aged = TransactionLogValue(
            **{name: getattr(value, name) for name in value.__slots__} | {"producer_epoch": epoch}
        )
        self.core.replay(encode_key(TransactionLogKey(transactional_id="x")), encode_value(aged))
        return Owner(owner.producer_id, epoch)


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


def owner_of(granted: Granted) -> Owner:
    assert granted.error is NONE
    return Owner(granted.producer_id, granted.producer_epoch)


def test_a_newcomer_gets_an_id_of_its_own(coordinator: Coordinator) -> None:
    assert coordinator.init() == Granted(NONE, 101, 0)
    assert coordinator.init() == Granted(NONE, 101, 1), "the id stays, the epoch rises"


def test_without_an_id_to_give_a_newcomer_has_to_come_back(coordinator: Coordinator) -> None:
    assert coordinator.init(fresh=False).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert coordinator.core.transactions == {}


def test_partitions_that_are_there_already_need_no_record(coordinator: Coordinator) -> None:
    owner = owner_of(coordinator.init())
    coordinator.add(owner, T0, T1)
    outcome = coordinator.core.add_partitions("x", owner, [T0], OLDER, TICKET, 0)
    assert outcome.records == []
    assert outcome.replies == [(TICKET, NONE)]


def test_markers_are_due_once_the_end_is_decided_and_complete_it(coordinator: Coordinator) -> None:
    owner = owner_of(coordinator.init())
    coordinator.add(owner, T0)
    assert coordinator.end(owner) == Granted(NONE, *owner)
    (told,) = coordinator.told
    assert (told.state, told.partitions) == (TransactionState.PREPARE_COMMIT, {T0})
    assert coordinator.end(owner).error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.add(owner, T0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator.mark()
    assert coordinator.transaction.state is TransactionState.COMPLETE_COMMIT
    coordinator.mark()
    assert coordinator.transaction.state is TransactionState.COMPLETE_COMMIT, "told twice"


def test_a_restarted_core_is_told_of_what_was_being_ended(coordinator: Coordinator) -> None:
    owner = owner_of(coordinator.init())
    coordinator.add(owner, T0)
    coordinator.end(owner)
    told: list[Transaction] = []
    restarted = TransactionCore(on_ending=told.append)
    restarted.replay(
        encode_key(TransactionLogKey(transactional_id="x")), encode_value(coordinator.transaction.record_value())
    )
    assert told == [], "not before everything is replayed"
    restarted.on_loaded(0)
    assert told == coordinator.told


def test_an_abort_of_nothing_moves_the_epoch_in_one_step(coordinator: Coordinator) -> None:
    owner = owner_of(coordinator.init())
    assert coordinator.end(owner, is_commit=False, version=NEWER) == Granted(NONE, owner.producer_id, 1)
    assert coordinator.told[-1:] == [] or coordinator.transaction.state is TransactionState.COMPLETE_ABORT
    assert coordinator.transaction.state is TransactionState.COMPLETE_ABORT


def test_the_last_epoch_gives_way_to_a_new_id(coordinator: Coordinator) -> None:
    owner = coordinator.at_epoch(32766)
    coordinator.add(owner, T0, version=NEWER)
    assert coordinator.end(owner, version=NEWER, fresh=False).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    granted = coordinator.end(owner, version=NEWER)
    assert granted.producer_id != owner.producer_id
    assert granted.producer_epoch == 0
    assert coordinator.told[-1].producer_id == owner.producer_id, "markers are the old id's"
    assert coordinator.told[-1].producer_epoch == 32767
    coordinator.mark()
    again = coordinator.end(owner, version=NEWER)
    assert again == granted, "an answer that was lost is given again"


def test_an_older_client_without_epochs_left_gets_a_new_id_when_it_comes_back(coordinator: Coordinator) -> None:
    owner = coordinator.at_epoch(32766)
    granted = coordinator.init(owner)
    assert granted.error is NONE
    assert granted.producer_id != owner.producer_id
    assert granted.producer_epoch == 0
    assert coordinator.init(owner) == granted, "asked again with what it had"


def test_an_epoch_taken_over_by_somebody_else_is_gone(coordinator: Coordinator) -> None:
    first = owner_of(coordinator.init())
    owner_of(coordinator.init())
    assert coordinator.init(first).error is ErrorCode.PRODUCER_FENCED
    assert coordinator.init(Owner(999, 0)).error is ErrorCode.PRODUCER_FENCED


def test_an_overdue_transaction_is_aborted_and_fenced(coordinator: Coordinator) -> None:
    owner = owner_of(coordinator.init(timeout_ms=500))
    coordinator.add(owner, T0)
    coordinator.wait(499)
    assert coordinator.transaction.state is TransactionState.ONGOING
    coordinator.wait(1)
    assert coordinator.transaction.state is TransactionState.PREPARE_ABORT
    assert coordinator.told[-1].producer_epoch == owner.producer_epoch + 1
    coordinator.mark()
    assert coordinator.end(owner).error is ErrorCode.PRODUCER_FENCED


def test_an_abort_that_could_not_be_written_is_tried_again(coordinator: Coordinator) -> None:
    owner = owner_of(coordinator.init(timeout_ms=500))
    coordinator.add(owner, T0)
    coordinator.core.on_time(500)  # and its record is lost
    coordinator.now_ms = 500
    assert coordinator.transaction.state is TransactionState.ONGOING
    coordinator.wait(10_000)
    assert coordinator.transaction.state is TransactionState.PREPARE_ABORT


def test_an_idle_id_expires_and_a_busy_one_does_not(coordinator: Coordinator) -> None:
    owner = owner_of(coordinator.init(timeout_ms=900_000))
    coordinator.wait(9_000)
    coordinator.add(owner, T0)
    coordinator.wait(20_000)
    assert coordinator.transaction.state is TransactionState.ONGOING
    coordinator.end(owner, is_commit=False)
    coordinator.mark()
    coordinator.wait(9_000)
    assert "x" in coordinator.core.transactions
    coordinator.wait(2_000)
    assert "x" not in coordinator.core.transactions
    assert coordinator.add(owner, T0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_thousands_of_ids_expire_a_thousand_at_a_time(coordinator: Coordinator) -> None:
    for number in range(2500):
        coordinator.carry_out(coordinator.core.init_producer_id(f"{number}", 1000, None, number, TICKET, 0))
    coordinator.now_ms = 10_000
    outcome = coordinator.core.on_time(10_000)
    assert len(outcome.records) == 1000
    coordinator.carry_out(outcome)
    for _ in range(2):
        coordinator.wait(1_000)
    assert coordinator.core.transactions == {}


def test_verification_tells_partitions_apart(coordinator: Coordinator) -> None:
    owner = owner_of(coordinator.init())
    assert coordinator.core.verify_partitions("x", owner, [T0]) == {T0: ErrorCode.TRANSACTION_ABORTABLE}
    coordinator.add(owner, T0)
    assert coordinator.core.verify_partitions("x", owner, [T0, T1]) == {
        T0: NONE,
        T1: ErrorCode.TRANSACTION_ABORTABLE,
    }
    newer = Owner(owner.producer_id, owner.producer_epoch + 1)
    assert coordinator.core.verify_partitions("x", newer, [T0]) == {T0: ErrorCode.PRODUCER_FENCED}
    assert coordinator.core.verify_partitions("y", owner, [T0]) == {T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


@pytest.mark.parametrize("version", [OLDER, NEWER])
@pytest.mark.parametrize("state", TransactionState)
def test_every_end_is_granted_or_refused_by_the_table(
    coordinator: Coordinator, state: TransactionState, version: int
) -> None:
    if state not in FOLLOWS:
        return
    owner = owner_of(coordinator.init())
    value = coordinator.transaction.record_value()
    fields = {name: getattr(value, name) for name in value.__slots__} | {"transaction_status": int(state)}
    if state.is_ending or state is TransactionState.ONGOING:
        fields["transaction_partitions"] = (
            Transaction("", 0, 0, state, 0, 0, 0, frozenset({T0})).record_value().transaction_partitions
        )
    coordinator.core.replay(
        encode_key(TransactionLogKey(transactional_id="x")), encode_value(TransactionLogValue(**fields))
    )
    for is_commit in (True, False):
        before = coordinator.transaction
        outcome = coordinator.core.end_transaction("x", owner, is_commit, version, NO_ID, TICKET, 0)
        reply = outcome.replies[0][1]
        if outcome.records:
            assert reply.error is NONE
            prepared = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
            assert before.state in FOLLOWS[prepared]
        elif reply.error is NONE:
            assert state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def test_records_that_make_no_sense_are_passed_over(coordinator: Coordinator) -> None:
    coordinator.init()
    before = dict(coordinator.core.transactions)
    value = coordinator.transaction.record_value()
    fields = {name: getattr(value, name) for name in value.__slots__} | {"transaction_status": 9}
    key = encode_key(TransactionLogKey(transactional_id="x"))
    coordinator.core.replay(key, encode_value(TransactionLogValue(**fields)))
    coordinator.core.replay(key, b"\0\1damaged")
    coordinator.core.replay(b"\0\7of the future", b"")
    coordinator.core.replay(b"", None)
    assert coordinator.core.transactions == before


def test_filters_of_a_listing_add_up() -> None:
    old = Transaction("old", 1, 0, TransactionState.ONGOING, 0, 0, start_ms=0)
    young = Transaction("young", 2, 0, TransactionState.ONGOING, 0, 0, start_ms=900)
    empty = Transaction("empty", 3, 0, TransactionState.EMPTY, 0, 0)
    every = [old, young, empty]
    assert list_transactions(every) == every
    assert list_transactions(every, states=["Ongoing"]) == [old, young]
    assert list_transactions(every, states=["Ongoing"], longer_than_ms=500, now_ms=1000) == [old]
    assert list_transactions(every, producer_ids=[2, 3]) == [young, empty]
    assert list_transactions(every, is_wanted=lambda one: one.endswith("y")) == [empty]
