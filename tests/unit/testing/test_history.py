"""The history checker on histories made by hand: it accepts what may happen and names what may not."""

from __future__ import annotations

import json

import pytest

from moldau.testing.history import History, Outcome, problems


class Told(History):
    """A history of one topic with two partitions, in few words."""

    def write(self, value: str, *, at: int | None = None, partition: int = 0, of: int | None = None) -> None:
        self.sent("w", "t", partition, value, transaction=of)
        if at is not None:
            self.acknowledged("w", value, offset=at)

    def seen(
        self, reader: str, *records: tuple[int, str], partition: int = 0, committed: bool = True, end: bool = True
    ) -> None:
        for offset, value in records:
            self.read(reader, "t", partition, offset=offset, value=value, is_committed=committed)
        if end:
            self.finished(reader, "t", partition, is_committed=committed)


@pytest.fixture
def told() -> Told:
    """Transaction 1 is committed (a, b), 2 aborted (c); d is plain; 3 (e) was never told how it ended."""
    history = Told()
    history.write("a", at=0, of=1)
    history.write("b", at=0, of=1, partition=1)
    history.ended("w", 1, Outcome.COMMITTED)
    history.write("c", at=2, of=2)
    history.ended("w", 2, Outcome.ABORTED)
    history.write("d", at=4)
    history.write("e", of=3)
    return history


def kinds(history: History) -> set[str]:
    return {problem.split(":")[0] for problem in problems(history)}


def test_a_good_history_has_no_problems(told: Told) -> None:
    told.seen("late", (0, "a"), (4, "d"))
    told.seen("late", (0, "b"), partition=1)
    told.seen("curious", (0, "a"), (2, "c"), (4, "d"), (5, "e"), committed=False)
    told.seen("early", (0, "a"), end=False)

    assert problems(told) == []


def test_a_transaction_in_doubt_may_be_shown_or_not(told: Told) -> None:
    told.seen("late", (0, "a"), (4, "d"), (5, "e"))
    told.seen("late", (0, "b"), partition=1)

    assert problems(told) == []


def test_an_acknowledged_write_that_is_gone_is_lost(told: Told) -> None:
    told.seen("late", (0, "a"))

    assert kinds(told) == {"lost"}


def test_an_acknowledged_write_somewhere_else_is_lost(told: Told) -> None:
    told.seen("late", (0, "a"), (5, "d"))

    assert kinds(told) == {"lost"}


def test_an_aborted_write_gone_for_those_who_read_everything_is_lost(told: Told) -> None:
    told.seen("curious", (0, "a"), (4, "d"), committed=False)

    assert kinds(told) == {"lost"}


def test_an_aborted_write_must_not_come_to_readers_of_committed_records(told: Told) -> None:
    told.seen("late", (0, "a"), (2, "c"), (4, "d"))

    assert kinds(told) == {"aborted"}


def test_a_write_at_two_offsets_is_doubled(told: Told) -> None:
    told.seen("curious", (0, "a"), (2, "c"), (4, "d"), (5, "d"), committed=False, end=False)

    assert "doubled" in kinds(told)


def test_a_reader_never_goes_back(told: Told) -> None:
    told.seen("late", (0, "a"), (4, "d"), (4, "d"))

    assert kinds(told) == {"disorder"}


def test_records_of_one_producer_stay_in_order() -> None:
    history = Told()
    history.write("first")
    history.write("second")
    history.seen("late", (0, "second"), (1, "first"))

    assert kinds(history) == {"disorder"}


def test_half_of_a_committed_transaction_is_torn() -> None:
    history = Told()
    history.write("a", of=1)
    history.write("b", of=1, partition=1)
    history.ended("w", 1, Outcome.COMMITTED)
    history.seen("late", (0, "a"))
    history.seen("late", partition=1)

    assert kinds(history) == {"torn"}


def test_half_of_a_transaction_in_doubt_is_torn() -> None:
    history = Told()
    history.write("a", of=1)
    history.write("b", of=1, partition=1)
    history.seen("late", (0, "a"))
    history.seen("late", partition=1)

    assert kinds(history) == {"torn"}


def test_a_committed_transaction_that_nobody_is_shown_is_torn() -> None:
    history = Told()
    history.write("a", of=1)
    history.ended("w", 1, Outcome.COMMITTED)
    history.seen("late")

    assert kinds(history) == {"torn"}


def test_a_reader_that_passed_an_open_transaction_has_skipped_it(told: Told) -> None:
    told.seen("hasty", (4, "d"), end=False)
    told.seen("late", (0, "a"), (4, "d"))
    told.seen("late", (0, "b"), partition=1)

    assert kinds(told) == {"skipped"}


def test_what_nobody_sent_is_a_phantom(told: Told) -> None:
    told.seen("late", (0, "a"), (3, "x"), (4, "d"))

    assert kinds(told) == {"phantom"}


def test_readers_that_find_different_records_at_an_offset_disagree() -> None:
    history = Told()
    history.write("a")
    history.write("b")
    history.seen("one", (0, "a"), end=False)
    history.seen("two", (0, "b"), end=False)

    assert kinds(history) == {"disagreement"}


def test_notes_are_replayed_up_to_where_a_kill_cut_them() -> None:
    notes = [
        json.dumps(["sent", ["w", "t", 0, "a"], {"transaction": 1}]),
        json.dumps(["ended", ["w", 1, "committed"], {}]),
        '["sent", ["w", "t", 0',
    ]
    history = History()
    history.replay(notes)

    assert list(history.writes) == ["a"]
    assert history.outcome_of("a") is Outcome.COMMITTED
