"""What Spark wrote about its batches is read in both forms it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.ids import TopicPartition
from moldau.pipeline.runtime.checkpoint import Checkpoint, kafka_offsets, source_lines
from moldau.pipeline.runtime.errors import CheckpointMismatchError
from moldau.pipeline.runtime.files import LocalFiles

UNNAMED = 'v1\n{"batchTimestampMs":1}\n{"in":{"0":120,"1":180}}\n{"other":{"0":3}}'
NAMED = 'v2\n{"batchTimestampMs":1}\na:{"in":{"0":120,"1":180}}\nb:{"other":{"0":3}}'


def offsets_of(entry: str) -> dict[TopicPartition, int]:
    return kafka_offsets(source_lines(entry))


@pytest.mark.parametrize("entry", [UNNAMED, NAMED])
def test_sources_with_and_without_names_tell_their_ends(entry: str) -> None:
    assert offsets_of(entry) == {
        TopicPartition("in", 0): 120,
        TopicPartition("in", 1): 180,
        TopicPartition("other", 0): 3,
    }


def test_sources_that_are_no_topics_count_nothing() -> None:
    assert offsets_of('v1\n{}\n-\n17\n{"in":{"0":1}}') == {TopicPartition("in", 0): 1}


def test_a_topic_read_twice_is_as_far_as_its_slower_reader() -> None:
    assert offsets_of('v1\n{}\n{"in":{"0":7}}\n{"in":{"0":5}}') == {TopicPartition("in", 0): 5}


def test_an_entry_that_is_cut_off_is_not_believed() -> None:
    with pytest.raises(CheckpointMismatchError, match="cannot be read"):
        offsets_of('v1\n{}\n{"in":{"0":')


def test_a_folder_without_a_query_has_no_batches(tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path / "none"), LocalFiles())

    assert (checkpoint.identity, checkpoint.last_planned, checkpoint.last_committed) == (None, None, None)
    assert checkpoint.entry(0) is None


def test_the_last_batches_are_found_among_other_files(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"abc"}')
    for folder, names in (("offsets", ("0", "9", "10", ".10.crc")), ("commits", ("0", "9", ".tmp"))):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text(UNNAMED)
    checkpoint = Checkpoint(str(tmp_path), LocalFiles())

    assert (checkpoint.identity, checkpoint.last_planned, checkpoint.last_committed) == ("abc", 10, 9)


def test_a_batch_is_planned_again_as_it_was(tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path), LocalFiles())

    checkpoint.restore_entry(4, UNNAMED)

    assert checkpoint.entry(4) == UNNAMED
    assert checkpoint.last_planned == 4
