"""Offset checkpoints and the clean-shutdown marker."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from moldau.core.ids import TopicPartition
from moldau.log.directories.checkpoints import (
    CLEAN_SHUTDOWN,
    load_checkpoint,
    parse_checkpoint,
    render_checkpoint,
    save_checkpoint,
    save_clean_shutdown,
    take_clean_shutdown,
)
from moldau.log.files import Files

OFFSETS = {TopicPartition("orders", 0): 1200, TopicPartition("a-1", 2): 0}


def test_checkpoint_reads_back() -> None:
    assert render_checkpoint(OFFSETS) == "0\n2\norders 0 1200\na-1 2 0\n"
    assert parse_checkpoint(render_checkpoint(OFFSETS)) == OFFSETS


@pytest.mark.parametrize("text", ["", "0\n", "1\n0\n", "0\n3\norders 0 1200\n", "0\n1\norders 0 x\n", "0\n1\norders\n"])
def test_a_corrupt_checkpoint_is_ignored_and_logged(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(text)
    with caplog.at_level(logging.ERROR):
        assert load_checkpoint(Files(), str(path)) == {}
    assert str(path) in caplog.text


def test_a_missing_checkpoint_is_empty(tmp_path: Path) -> None:
    assert load_checkpoint(Files(), str(tmp_path / "none")) == {}


def test_saving_leaves_no_temporary_file(tmp_path: Path) -> None:
    save_checkpoint(Files(), str(tmp_path / "checkpoint"), OFFSETS)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_the_clean_shutdown_marker_speaks_once(tmp_path: Path) -> None:
    save_clean_shutdown(Files(), str(tmp_path), 5)
    assert json.loads((tmp_path / CLEAN_SHUTDOWN).read_text()) == {"version": 0, "brokerEpoch": 5}
    assert take_clean_shutdown(Files(), str(tmp_path))
    assert not take_clean_shutdown(Files(), str(tmp_path))
