"""Reading what a coordinator acts on: every kind of damage is an error that names file and position."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.unit.log.batches import append, clean_run, new_log, reopened

from moldau.log.checked_read import checked_batches, extent_of
from moldau.log.errors import DamagedLogError
from moldau.log.partition_log import PartitionLog
from moldau.protocol.record_batch import LOG_OVERHEAD

BATCHES = 12
EPOCH_BYTES = range(LOG_OVERHEAD, LOG_OVERHEAD + 4)
"""Of each batch: the leader epoch lies before the checksum's reach, and a coordinator does not look at it."""


def written(tmp_path: Path) -> PartitionLog:
    log = new_log(tmp_path, segment_bytes=250)
    for _ in range(BATCHES):
        append(log)
    log.close()
    return log


def offsets(log: PartitionLog, **options: Any) -> list[int]:
    return [header.base_offset for header, _ in checked_batches(log, extent_of(log), **options)]


def after_clean_start(log: PartitionLog) -> PartitionLog:
    again = reopened(log, clean_run(log))
    assert again.offline_error is None
    return again


@pytest.mark.parametrize("read_bytes", [1, 100, 1 << 20])
def test_a_sound_log_is_read_whole_and_from_its_start(tmp_path: Path, read_bytes: int) -> None:
    log = after_clean_start(written(tmp_path))
    for first in range(BATCHES):
        log.log_start_offset = first
        assert offsets(log, read_bytes=read_bytes) == list(range(first, BATCHES))


@pytest.mark.parametrize("count", range(6))
def test_what_is_appended_later_lies_beyond_the_extent_and_is_read_from_there_on(tmp_path: Path, count: int) -> None:
    log = after_clean_start(written(tmp_path))
    extent = extent_of(log)
    for _ in range(count):
        append(log)
    assert [header.base_offset for header, _ in checked_batches(log, extent)] == list(range(BATCHES))
    assert offsets(log, after=extent) == list(range(BATCHES, BATCHES + count))


def test_a_segment_replaced_on_the_way_costs_nothing(tmp_path: Path) -> None:
    log = after_clean_start(written(tmp_path))
    found = []
    for header, _ in checked_batches(log, extent_of(log)):
        found.append(header.base_offset)
        if len(found) == 2:
            # As if the cleaner had merged the first two: what the second held is looked up anew.
            second = log.segments[1].base_offset
            merged = log.segments[0].path(".log")
            with open(merged, "ab") as file:
                file.write(Path(log.segments[1].path(".log")).read_bytes())
            replaced = type(log.segments[0])(log.files, log.directory, 0, size=Path(merged).stat().st_size)
            log._segments.all = (replaced, *log.segments[2:])
            assert second > 0
    assert found == list(range(BATCHES))


@pytest.mark.parametrize("seed", range(60))
def test_any_flipped_bit_is_damage(tmp_path: Path, seed: int) -> None:
    """But for the leader epoch, no bit of a log can change without the walk noticing."""
    chance = random.Random(seed)
    log = written(tmp_path)
    segment = chance.choice([one for one in log.segments if one.size])
    path = Path(segment.path(".log"))
    content = bytearray(path.read_bytes())
    starts = [position for position, _ in segment.headers()]
    position = chance.randrange(len(content))
    if position - max(start for start in starts if start <= position) in EPOCH_BYTES:
        position += 4
    content[position] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    segment.release()
    again = after_clean_start(log)
    with pytest.raises(DamagedLogError, match=rf"{path.name} at position \d+: .*restore the file"):
        offsets(again)


@pytest.mark.parametrize("seed", range(20))
def test_a_segment_cut_anywhere_is_damage(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    log = written(tmp_path)
    path = Path(log.segments[-1].path(".log"))
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])
    again = after_clean_start(log)
    with pytest.raises(DamagedLogError, match=path.name):
        offsets(again)


def test_a_log_that_is_offline_says_why(tmp_path: Path) -> None:
    log = after_clean_start(written(tmp_path))
    log.take_offline("somebody pulled the plug", is_damaged=True)
    with pytest.raises(DamagedLogError, match="somebody pulled the plug"):
        offsets(log)
