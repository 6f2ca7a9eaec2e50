"""Finding records by time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.log.batches import NOW_MS, append, clean_run, data_batch, new_log, reopened

from moldau.log.partition_log import PartitionLog
from moldau.protocol.record_batch import LOG_APPEND_TIME_BIT, BatchHeader


def filled(tmp_path: Path, codec: int = 0) -> PartitionLog:
    log = new_log(tmp_path, segment_bytes=400, index_interval_bytes=100)
    for stamps in ([100, 105, 103], [90], [200, 210], [150, 400, 300], [310]):
        append(log, data_batch(timestamps=stamps, codec=codec), epoch=2)
    return log


@pytest.mark.parametrize("codec", [0, 1, 4])
@pytest.mark.parametrize(
    ("target", "expected"),
    [(0, (100, 0, 2)), (101, (105, 1, 2)), (104, (105, 1, 2)), (106, (200, 4, 2)), (300, (400, 7, 2)), (401, None)],
)
def test_the_first_record_at_or_after_a_time(
    tmp_path: Path, target: int, expected: tuple[int, int, int] | None, codec: int
) -> None:
    log = filled(tmp_path, codec)
    assert log.offset_for_timestamp(target) == expected
    assert reopened(log).offset_for_timestamp(target) == expected


def test_records_below_the_log_start_are_not_found(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.advance_log_start(2)
    assert log.offset_for_timestamp(0) == (103, 2, 2)


def test_the_newest_timestamp(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert log.max_timestamp_offset() == (400, 7, 2)
    assert new_log(tmp_path / "empty").max_timestamp_offset() is None


def test_log_append_time_counts_for_the_whole_batch(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    batch = data_batch(timestamps=[100, 200, 300])
    header = BatchHeader.at(batch)
    header = header._replace(attributes=header.attributes | LOG_APPEND_TIME_BIT, max_timestamp=500)
    batch[21:23] = header.attributes.to_bytes(2, "big")
    batch[35:43] = header.max_timestamp.to_bytes(8, "big")
    log.append(batch, tuple(header), 0, 500)
    assert log.offset_for_timestamp(250) == (500, 0, 0)


@pytest.mark.parametrize("saves", [False, True], ids=["restarted twice", "saved meanwhile and restarted"])
def test_the_newest_timestamp_is_known_after_clean_restarts(tmp_path: Path, saves: bool) -> None:
    """Also of batches too small for an index entry: retention and lookups by time rely on it."""
    log = new_log(tmp_path)
    append(log, data_batch(timestamps=[NOW_MS]))
    if saves:
        log.save()
    else:
        log.close()
        log = reopened(log, clean_run(log))
    append(log, data_batch(timestamps=[NOW_MS + 12]))
    log.close()
    log = reopened(log, clean_run(log))
    assert log.segments[-1].newest_timestamp().timestamp == NOW_MS + 12
    found = log.offset_for_timestamp(NOW_MS + 12)
    assert found is not None
    assert found.offset == 1
    log.abandon()
