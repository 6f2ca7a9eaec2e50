"""Reading for a fetch: what readers of committed records are told about aborted ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.unit.log.batches import append, data_batch, marker, new_log

from moldau.broker.data.fetch import aborted_within
from moldau.log.partition_log import LogSlice, PartitionLog


def log_with_an_aborted_transaction_in_its_second_segment(folder: Path) -> PartitionLog:
    log = new_log(folder)
    append(log, data_batch(5))
    log.roll()
    append(log, data_batch(3, producer_id=7, sequence=0, is_transactional=True))
    append(log, marker(7, commit=False))
    log.high_watermark = log.log_end_offset
    return log


def test_aborted_transactions_of_later_segments_are_not_told(tmp_path: Path) -> None:
    log = log_with_an_aborted_transaction_in_its_second_segment(tmp_path)
    first = log.read(0, 1 << 20, log.high_watermark)
    assert aborted_within(log, first, log.high_watermark) == []
    second = log.read(5, 1 << 20, log.high_watermark)
    assert aborted_within(log, second, log.high_watermark) == [(7, 5)]


def test_a_reader_that_is_led_over_a_hole_hears_what_was_aborted_behind_it(tmp_path: Path) -> None:
    """Compaction may leave the end of a segment empty: what is asked for there is read from the next one."""
    log = log_with_an_aborted_transaction_in_its_second_segment(tmp_path)
    behind = log.read(5, 1 << 20, log.high_watermark)
    led_over = LogSlice(behind.file, behind.position, behind.length, first_offset=3)
    assert aborted_within(log, led_over, log.high_watermark) == [(7, 5)]


def test_a_slice_of_a_segment_that_was_swapped_meanwhile_hears_of_all(tmp_path: Path) -> None:
    log = log_with_an_aborted_transaction_in_its_second_segment(tmp_path)
    swapped = LogSlice(cast("Any", SimpleNamespace(fd=-1)), 0, 10, first_offset=0)
    assert aborted_within(log, swapped, log.high_watermark) == [(7, 5)]
