"""Offset, time and transaction indexes: entries, lookups, what a file may look like."""

from __future__ import annotations

import pytest

from moldau.log.errors import CorruptIndexError
from moldau.log.segments.offset_index import OffsetIndex
from moldau.log.segments.time_index import TimeIndex
from moldau.log.segments.txn_index import AbortedTransaction, TxnIndex


def offsets(*pairs: tuple[int, int], base: int = 100) -> OffsetIndex:
    index = OffsetIndex(base)
    for offset, position in pairs:
        index.add(offset, position)
    return index


def test_offset_entries_are_relative_offset_and_position() -> None:
    assert bytes(offsets((105, 4200)).entries) == (5).to_bytes(4, "big") + (4200).to_bytes(4, "big")


def test_offset_lookup_finds_the_last_entry_at_or_below() -> None:
    index = offsets((105, 4200), (110, 9000))
    assert index.lookup(104) == (100, 0)
    assert index.lookup(105) == (105, 4200)
    assert index.lookup(109) == (105, 4200)
    assert index.lookup(2**40) == (110, 9000)


def test_position_up_to_finds_a_batch_boundary() -> None:
    index = offsets((105, 4200), (110, 9000))
    assert [index.position_up_to(limit) for limit in (0, 4199, 4200, 8999, 9000)] == [0, 0, 4200, 4200, 9000]


def test_offset_truncation_drops_batches_that_reach_the_offset() -> None:
    index = offsets((105, 4200), (110, 9000))
    index.truncate(110)
    assert [tuple(index[i]) for i in range(len(index))] == [(105, 4200)]


def test_zero_tail_of_a_preallocated_index_is_not_read() -> None:
    index = offsets((105, 4096), (110, 8192))
    loaded = OffsetIndex.decode(100, bytes(index.entries) + bytes(800))
    assert loaded.entries == index.entries


@pytest.mark.parametrize("data", [b"\1\2\3", (9).to_bytes(4, "big") * 2 + (3).to_bytes(4, "big") * 2])
def test_an_index_that_cannot_be_one_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptIndexError):
        OffsetIndex.decode(100, data)


def test_time_entries_only_rise() -> None:
    index = TimeIndex(100)
    for timestamp, offset in ((1000, 103), (1000, 108), (900, 110), (1200, 115)):
        index.add(timestamp, offset)
    assert [tuple(index[i]) for i in range(len(index))] == [(1000, 103), (1200, 115)]
    assert index.entries[:12] == (1000).to_bytes(8, "big") + (3).to_bytes(4, "big")


def test_time_lookup_and_truncation() -> None:
    index = TimeIndex(100, None)
    index.add(1000, 103)
    index.add(1200, 115)
    assert index.lookup(999) == (-1, 100)
    assert index.lookup(1199) == (1000, 103)
    index.truncate(115)
    assert index.last == (1000, 103)
    assert TimeIndex.decode(100, bytes(index.entries)).last == (1000, 103)


def test_aborted_transactions_are_found_by_overlap() -> None:
    index = TxnIndex()
    first, second = AbortedTransaction(1, 10, 19, 20), AbortedTransaction(2, 15, 40, 41)
    index.add(first)
    index.add(second)
    assert len(index.entries) == 2 * 34
    assert index.overlapping(0, 10) == ([], True)
    assert index.overlapping(0, 12) == ([first], True)
    assert index.overlapping(20, 30) == ([second], True)
    assert index.overlapping(0, 100) == ([first, second], False)
    assert TxnIndex.decode(bytes(index.entries)).overlapping(41, 100) == ([], False)


def test_aborted_transactions_go_with_their_marker() -> None:
    index = TxnIndex()
    index.add(AbortedTransaction(1, 10, 19, 20))
    index.add(AbortedTransaction(2, 15, 40, 41))
    index.truncate(40)
    assert len(index) == 1
