"""Histories: what clients observed of a cluster, and a checker whether a correct cluster could have produced it.

Each client records its operations and their results, in its own order, before and after each step, so that the record
of a killed client is correct: a write without a response is in doubt, and so is a transaction without an end.
`problems` is pure and needs no broker; the caller runs and kills clients. Start at `problems`.

    history = History()
    history.sent("w1", "t", 0, "a", transaction=1)
    history.acknowledged("w1", "a", offset=0)
    history.ended("w1", 1, Outcome.COMMITTED)
    history.read("r1", "t", 0, offset=0, value="a", is_committed=True)
    assert problems(history) == []
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["History", "Outcome", "Reading", "Write", "problems"]

Place = tuple[str, int]
"""Topic and partition."""
TransactionKey = tuple[str, int]
"""The producer's name and its own number for the transaction."""


class Outcome(StrEnum):
    """How a transaction ended, as reported to its producer."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """The producer was killed, or timed out, before it got the result."""


@dataclass(slots=True)
class Write:
    """One record that a producer sent; values are unique in a history."""

    producer: str
    place: Place
    value: str
    transaction: int | None
    offset: int | None = None
    """The acknowledged offset, or `None` while it is not acknowledged."""


@dataclass(slots=True)
class Reading:
    """What one reader read of one partition, from the beginning of the log, in the order of arrival."""

    reader: str
    place: Place
    is_committed: bool
    """Whether the reader used read_committed."""
    is_complete: bool = False
    """Whether it read to the end after all clients had stopped."""
    records: list[tuple[int, str]] = field(default_factory=list)
    """Offset and value."""

    def __str__(self) -> str:
        return f"{self.reader} on {self.place[0]}-{self.place[1]}"


class History:
    """The events of all clients. Values must be unique; a restarted producer needs a new name."""

    def __init__(self) -> None:
        self.writes: dict[str, Write] = {}
        self.outcomes: dict[TransactionKey, Outcome] = {}
        self.readings: dict[tuple[str, Place], Reading] = {}

    def sent(self, producer: str, topic: str, partition: int, value: str, *, transaction: int | None = None) -> None:
        """Called before the record is sent; `transaction` is the producer's own number for it."""
        if value in self.writes:
            raise ValueError(f"{value!r} was sent twice; values must be unique")
        self.writes[value] = Write(producer, (topic, partition), value, transaction)
        if transaction is not None:
            self.outcomes.setdefault((producer, transaction), Outcome.UNKNOWN)

    def acknowledged(self, producer: str, value: str, *, offset: int) -> None:
        """The broker has acknowledged the record at this offset."""
        self.writes[value].offset = offset

    def ended(self, producer: str, transaction: int, outcome: Outcome) -> None:
        """The producer got the result of its transaction."""
        self.outcomes[producer, transaction] = Outcome(outcome)

    def read(self, reader: str, topic: str, partition: int, *, offset: int, value: str, is_committed: bool) -> None:
        """A reader received a record."""
        self._reading(reader, (topic, partition), is_committed).records.append((offset, value))

    def finished(self, reader: str, topic: str, partition: int, *, is_committed: bool) -> None:
        """The reader has read to the end, after all writers had stopped and every transaction had ended."""
        self._reading(reader, (topic, partition), is_committed).is_complete = True

    def replay(self, lines: Iterable[str]) -> None:
        """Add events stored as JSON lines `[method, arguments, options]`; a line truncated by a kill is ignored."""
        for line in lines:
            try:
                method, arguments, options = json.loads(line)
            except ValueError:
                continue
            getattr(self, method)(*arguments, **options)

    def _reading(self, reader: str, place: Place, is_committed: bool) -> Reading:
        return self.readings.setdefault((reader, place), Reading(reader, place, is_committed))

    def transaction_of(self, value: str) -> TransactionKey | None:
        write = self.writes.get(value)
        return None if write is None or write.transaction is None else (write.producer, write.transaction)

    def outcome_of(self, value: str) -> Outcome:
        """A write outside any transaction counts as committed."""
        key = self.transaction_of(value)
        return Outcome.COMMITTED if key is None else self.outcomes[key]


def problems(history: History) -> list[str]:
    """Everything in the history that no correct cluster can have produced, one sentence each.

    Lost: acknowledged (and committed), but not at that offset. Doubled: one write at two offsets, or one
    offset read twice. Phantom: read, but never sent. Aborted: shown to a reader of committed records. Torn: part of a
    transaction shown and part not. Disorder: a producer's records out of order, or offsets going backwards. Skipped: a
    reader of committed records missed one that appeared later, as when it may read beyond an open transaction.
    """
    found: list[str] = []
    for reading in history.readings.values():
        found += _reader_problems(history, reading)
    found += _disagreements(history)
    found += _lost(history)
    found += _torn(history)
    found += _skipped(history)
    return found


def _reader_problems(history: History, reading: Reading) -> Iterator[str]:
    """The problems visible to a single reader."""
    last_offset = -1
    offset_of: dict[str, int] = {}
    last_sent: dict[str, int] = {}
    order = _order_of_sending(history, reading.place)
    for offset, value in reading.records:
        write = history.writes.get(value)
        if write is None or write.place != reading.place:
            yield f"phantom: {reading} read {value!r} at {offset}, which was never sent there"
            continue
        if offset <= last_offset:
            yield f"disorder: {reading} came to {offset} after {last_offset}"
        last_offset = max(last_offset, offset)
        if offset_of.setdefault(value, offset) != offset:
            yield f"doubled: {reading} read {value!r} at {offset_of[value]} and at {offset}"
        if reading.is_committed and history.outcome_of(value) is Outcome.ABORTED:
            yield f"aborted: {reading} read {value!r} at {offset}, whose transaction was aborted"
        if order[value] <= last_sent.get(write.producer, -1):
            yield f"disorder: {reading} read {value!r} after a later record of {write.producer}"
        last_sent[write.producer] = max(order[value], last_sent.get(write.producer, -1))


def _order_of_sending(history: History, place: Place) -> Mapping[str, int]:
    return {value: number for number, value in enumerate(history.writes) if history.writes[value].place == place}


def _disagreements(history: History) -> Iterator[str]:
    """An offset holds the same record for all readers at all times."""
    seen: dict[tuple[Place, int], tuple[str, Reading]] = {}
    for reading in history.readings.values():
        for offset, value in reading.records:
            first, by = seen.setdefault((reading.place, offset), (value, reading))
            if first != value:
                yield f"disagreement: at {offset} {reading} read {value!r} and {by} {first!r}"


def _complete(history: History, *, is_committed: bool) -> dict[Place, dict[str, int]]:
    """Value to offset for each partition, from readers that reached the end."""
    found: defaultdict[Place, dict[str, int]] = defaultdict(dict)
    for reading in history.readings.values():
        if reading.is_complete and reading.is_committed == is_committed:
            found[reading.place].update({value: offset for offset, value in reading.records})
    return found


def _lost(history: History) -> Iterator[str]:
    """Each acknowledged write is at its offset: committed ones for every reader, others for read_uncommitted ones."""
    for is_committed in (True, False):
        for place, offsets in _complete(history, is_committed=is_committed).items():
            for write in history.writes.values():
                is_due = not is_committed or history.outcome_of(write.value) is Outcome.COMMITTED
                if write.place == place and is_due and write.offset is not None:
                    actual = offsets.get(write.value)
                    if actual != write.offset:
                        where = "is nowhere" if actual is None else f"is at {actual}"
                        yield f"lost: {write.value!r} was acknowledged at {write.offset} of {place} and {where}"


def _torn(history: History) -> Iterator[str]:
    """A transaction is shown whole or not at all; one that is known to be committed is shown whole."""
    visible = _complete(history, is_committed=True)
    members: defaultdict[TransactionKey, list[Write]] = defaultdict(list)
    for write in history.writes.values():
        if write.transaction is not None and write.place in visible:
            members[write.producer, write.transaction].append(write)
    for (producer, number), writes in members.items():
        shown = [write for write in writes if write.value in visible[write.place]]
        outcome = history.outcomes[producer, number]
        is_partly_shown = 0 < len(shown) < len(writes)
        if is_partly_shown or (not shown and outcome is Outcome.COMMITTED):
            yield f"torn: {len(shown)} of {len(writes)} records shown of {producer}'s {outcome} transaction {number}"


def _skipped(history: History) -> Iterator[str]:
    """Up to its last offset, a reader has seen all that a later reader of the same isolation level sees there."""
    for is_committed in (True, False):
        final = _complete(history, is_committed=is_committed)
        for reading in history.readings.values():
            if reading.is_committed != is_committed or not reading.records:
                continue
            last_offset = max(offset for offset, _ in reading.records)
            seen = {value for _, value in reading.records}
            for value, offset in final.get(reading.place, {}).items():
                if offset < last_offset and value not in seen:
                    yield f"skipped: {reading} came to {last_offset} without {value!r} at {offset}"
