"""A checkpoint is used only for what it was made for, and the first difference is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.pipeline.runtime.identities import identity_in

from moldau.pipeline.runtime.errors import CheckpointMismatchError
from moldau.pipeline.runtime.files import LocalFiles
from moldau.pipeline.runtime.layout import Layout

IDENTITY = identity_in(Path("/state"))
BEFORE = Layout("Source: a\n  --> b\nSink: b", {"in": 3}, 2)


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    file = str(tmp_path / "deep" / "topology.json")

    BEFORE.save(file, LocalFiles())

    assert Layout.load(file, LocalFiles()) == BEFORE
    assert Layout.load(f"{file}.other", LocalFiles()) is None


def test_which_outputs_are_native_is_noted(tmp_path: Path) -> None:
    file = str(tmp_path / "topology.json")

    replace(BEFORE, native=("KSTREAM-AGGREGATE-0000000002",)).save(file, LocalFiles())

    found = Layout.load(file, LocalFiles())
    assert found is not None
    assert found.earlier_run.native == {"KSTREAM-AGGREGATE-0000000002"}


def test_a_layout_from_before_outputs_were_noted_knows_none(tmp_path: Path) -> None:
    file = tmp_path / "topology.json"
    file.write_text('{"version": 2, "description": "Source: a", "partitions": {"in": 3}, "state_partitions": 2}')

    found = Layout.load(str(file), LocalFiles())

    assert found is not None
    assert found.earlier_run.native is None
    found.check(replace(found, native=()), "app", "/state")


def test_the_same_layout_is_accepted() -> None:
    BEFORE.check(BEFORE, IDENTITY, "/state")


@pytest.mark.parametrize(
    ("now", "difference"),
    [
        (replace(BEFORE, description="Source: a\n  --> c\nSink: b"), r"- --> b; \+ --> c"),
        (replace(BEFORE, partitions={"in": 4}), "topic in had 3 partitions and has 4 now"),
        (replace(BEFORE, partitions={}), "topic in had 3 partitions and has none now"),
        (replace(BEFORE, state_form=1), "by another version of moldau: its state has form 2, not 1"),
        (replace(BEFORE, state_partitions=4), r"spark\.sql\.shuffle\.partitions was 2 and is 4 now"),
    ],
)
def test_another_layout_is_refused_with_the_difference(now: Layout, difference: str) -> None:
    with pytest.raises(CheckpointMismatchError, match=difference):
        BEFORE.check(now, IDENTITY, "/state")


def test_without_state_the_number_of_its_partitions_is_nothing() -> None:
    replace(BEFORE, partitions={}).check(replace(BEFORE, partitions={}, state_partitions=9), IDENTITY, "/state")


def test_state_of_real_time_mode_is_not_that_of_batches(tmp_path: Path) -> None:
    file = str(tmp_path / "topology.json")
    replace(BEFORE, is_realtime=True).save(file, LocalFiles())
    found = Layout.load(file, LocalFiles())
    assert found is not None
    found.check(replace(BEFORE, is_realtime=True), IDENTITY, "/state")
    with pytest.raises(CheckpointMismatchError, match=r"made with moldau\.latency=realtime, and its state has another"):
        found.check(BEFORE, IDENTITY, "/state")


def test_without_state_either_mode_goes_on_from_the_other() -> None:
    stateless = replace(BEFORE, partitions={})
    stateless.check(replace(stateless, is_realtime=True), IDENTITY, "/state")
