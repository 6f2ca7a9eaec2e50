"""Idempotent and transactional producers on one partition."""

from __future__ import annotations

import pytest
from tests.unit.log.batches import NOW_MS, data_batch

from moldau.log.errors import (
    CorruptSnapshotError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
)
from moldau.log.producer_state import DuplicateBatch, Marker, ProducerStates
from moldau.protocol.record_batch import BatchHeader

LAST = 2**31 - 1


def header(
    sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7, txn: bool = False
) -> tuple[int, ...]:
    return tuple(
        BatchHeader.at(
            data_batch(count, producer_id=producer_id, producer_epoch=epoch, sequence=sequence, is_transactional=txn)
        )
    )


def after(*batches: tuple[int, ...]) -> ProducerStates:
    """State after these batches, each a hundred offsets behind the one before."""
    states = ProducerStates()
    for index, batch in enumerate(batches):
        assert states.check(batch) is None
        states.update(batch, index * 100, NOW_MS)
    return states


def test_sequences_follow_one_another() -> None:
    states = after(header(0, 3), header(3, 2))
    assert states.check(header(5)) is None
    with pytest.raises(OutOfOrderSequenceError, match="sequence 6, expected 5"):
        states.check(header(6))


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert ProducerStates().check(header(12345)) is None


def test_a_resend_gets_the_offset_of_the_original() -> None:
    states = after(header(0, 3), header(3, 2))
    assert states.check(header(0, 3)) == DuplicateBatch(0, NOW_MS)
    assert states.check(header(3, 2)) == DuplicateBatch(100, NOW_MS)


def test_a_resend_is_recognised_by_both_ends_of_its_sequences() -> None:
    with pytest.raises(OutOfOrderSequenceError):
        after(header(0, 3)).check(header(0, 2))


def test_only_the_last_five_batches_are_remembered() -> None:
    states = after(*(header(sequence) for sequence in range(6)))
    assert states.check(header(1)) == DuplicateBatch(100, NOW_MS)
    with pytest.raises(OutOfOrderSequenceError):
        states.check(header(0))


def test_sequences_wrap_after_the_largest_int() -> None:
    states = after(header(LAST - 1, 4))
    assert states.check(header(2)) is None
    assert states.check(header(LAST - 1, 4)) == DuplicateBatch(0, NOW_MS)
    assert after(header(LAST)).check(header(0)) is None


def test_an_older_epoch_is_fenced() -> None:
    with pytest.raises(InvalidProducerEpochError):
        after(header(0, epoch=2)).check(header(1, epoch=1))


def test_a_newer_epoch_begins_at_zero() -> None:
    states = after(header(5, epoch=2))
    assert states.check(header(0, epoch=3)) is None
    with pytest.raises(OutOfOrderSequenceError):
        states.check(header(6, epoch=3))


def test_a_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    states = after(header(0, epoch=1), header(0, epoch=2))
    assert states.check(header(0, epoch=2)) == DuplicateBatch(100, NOW_MS)


def test_a_plain_batch_in_an_open_transaction_is_refused() -> None:
    states = after(header(0, txn=True))
    assert states.check(header(1, txn=True)) is None
    with pytest.raises(InvalidTxnStateError):
        states.check(header(1))


def test_open_transactions_hold_the_stable_offset_back() -> None:
    states = after(header(0, txn=True), header(0, producer_id=8, txn=True), header(1, txn=True))
    assert states.first_unstable_offset(300) == 0
    done = states.complete(header(-1, txn=True), 300, Marker(True, 1), NOW_MS)
    assert done == (7, 0, 300, False)
    assert states.first_unstable_offset(300) == 0, "its marker is not below the high watermark yet"
    assert states.first_unstable_offset(301) == 100
    aborted = states.complete(header(-1, producer_id=8, txn=True), 301, Marker(False, 1), NOW_MS)
    assert aborted == (8, 100, 301, True)
    assert states.stable_offset_after(aborted) == 302
    assert states.first_unstable_offset(302) is None


def test_a_marker_without_a_transaction_completes_nothing() -> None:
    assert ProducerStates().complete(header(-1, txn=True), 5, Marker(True, 1), NOW_MS) is None


def test_snapshot_keeps_what_a_restart_needs() -> None:
    states = after(header(0, 3, txn=True), header(9, producer_id=8))
    loaded = ProducerStates.decode(states.encode())
    assert loaded.check(header(0, 3, txn=True)) == DuplicateBatch(0, NOW_MS)
    assert loaded.check(header(10, producer_id=8)) is None
    assert loaded.first_unstable_offset(500) == 0


def test_snapshot_layout_is_kafkas() -> None:
    data = after(header(0, 3)).encode()
    assert data[:2] == b"\0\1"
    assert int.from_bytes(data[6:10], "big") == 1
    assert len(data) == 10 + 46
    assert int.from_bytes(data[10:18], "big") == 7


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: b"\0\2" + d[2:], lambda d: d[:20] + b"\xff" + d[21:], lambda d: b""]
)
def test_a_damaged_snapshot_is_refused(damage: object) -> None:
    data = after(header(0, 3)).encode()
    with pytest.raises(CorruptSnapshotError):
        ProducerStates.decode(damage(data))  # type: ignore[operator]


def test_silent_producers_expire_unless_a_transaction_is_open() -> None:
    states = after(header(0), header(0, producer_id=8, txn=True))
    assert states.expire(NOW_MS + 999, 1000) == 0
    assert states.expire(NOW_MS + 1000, 1000) == 1
    assert states.get(7) is None
    assert states.get(8) is not None


def test_a_batch_without_sequences_leaves_none_behind() -> None:
    states = ProducerStates()
    states.update(header(sequence=-1), 0, NOW_MS)
    (producer,) = states
    assert producer.last_sequence == -1
    assert producer.last_offset >= 0


def test_an_open_transaction_is_late_once_nobody_has_written_to_it_for_long() -> None:
    states = after(header(0, txn=True))
    assert states.has_late_transaction(NOW_MS + 1)
    assert not states.has_late_transaction(NOW_MS)
    assert not after(header(0)).has_late_transaction(NOW_MS + 1)
