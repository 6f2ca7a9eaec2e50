"""A batch that comes again is known by its number, its checkpoint and its offsets."""

from __future__ import annotations

import pytest

from moldau.pipeline.runtime.errors import CheckpointMismatchError
from moldau.pipeline.runtime.progress import Progress


def entry(end: int) -> str:
    return f'v1\n{{}}\n{{"in":{{"0":{end}}}}}'


DONE = Progress("checkpoint", 7, entry(70))


def test_what_is_written_is_read_again() -> None:
    assert Progress.decode(DONE.encode()) == DONE


def test_records_of_earlier_versions_are_read() -> None:
    stored = b'{"version": 1, "checkpoint": "checkpoint", "batch": 7, "entry": "v1\\n{}\\n{\\"in\\":{\\"0\\":70}}"}'

    assert Progress.decode(stored) == DONE
    assert DONE.encode() == stored


@pytest.mark.parametrize(("batch", "is_done"), [(6, True), (7, True), (8, False)])
def test_batches_up_to_the_last_one_are_done(batch: int, is_done: bool) -> None:
    assert DONE.covers("checkpoint", batch, entry(10 * batch)) is is_done


def test_batches_of_another_checkpoint_are_not_done() -> None:
    assert not DONE.covers("another", 7, entry(70))


def test_a_batch_that_went_elsewhere_the_first_time_is_refused() -> None:
    with pytest.raises(CheckpointMismatchError, match="batch 7 was committed with other offsets"):
        DONE.covers("checkpoint", 7, entry(71))


def test_positions_of_other_sources_are_compared_word_for_word() -> None:
    files = Progress("checkpoint", 3, 'v1\n{"batchTimestampMs":1}\n{"logOffset":3}')

    assert files.covers("checkpoint", 3, 'v1\n{"batchTimestampMs":1}\n{"logOffset":3}')
    with pytest.raises(CheckpointMismatchError, match="batch 3 was committed with other offsets"):
        files.covers("checkpoint", 3, 'v1\n{"batchTimestampMs":1}\n{"logOffset":4}')
