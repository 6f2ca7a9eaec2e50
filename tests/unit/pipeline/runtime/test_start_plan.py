"""Where a pipeline goes on, in every combination of what it may find."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.pipeline.runtime.identities import identity_in

from moldau.core.ids import TopicPartition
from moldau.pipeline.runtime.errors import CheckpointMismatchError, StateLostError
from moldau.pipeline.runtime.progress import Progress
from moldau.pipeline.runtime.source import Committed
from moldau.pipeline.runtime.start_plan import Facts, StartPlan, start_plan

PLACE = TopicPartition("in", 0)


def progress(batch: int, checkpoint: str = "mine") -> Progress:
    return Progress(checkpoint, batch, f'v1\n{{}}\n{{"in":{{"0":{10 * batch}}}}}')


FIRST = Facts(
    identity=identity_in(Path("/state")),
    folder="/state/app",
    keeps_progress=True,
    is_stateless=False,
    checkpoint=None,
    last_planned=None,
    progress=None,
    committed=Committed(),
)
LATER = replace(FIRST, checkpoint="mine", last_planned=5)


def test_the_first_start_begins_as_the_reset_says() -> None:
    assert start_plan(FIRST) == StartPlan()


def test_offsets_that_a_person_set_before_the_first_start_count() -> None:
    assert start_plan(replace(FIRST, committed=Committed({PLACE: 9}))).offsets == {PLACE: 9}


@pytest.mark.parametrize("batch", [4, 5])
def test_a_checkpoint_that_has_planned_as_far_goes_on(batch: int) -> None:
    assert start_plan(replace(LATER, progress=progress(batch))) == StartPlan()


def test_a_batch_that_the_checkpoint_forgot_is_planned_again() -> None:
    assert start_plan(replace(LATER, progress=progress(6))).restored == progress(6)


def test_an_older_copy_of_a_checkpoint_is_refused() -> None:
    with pytest.raises(CheckpointMismatchError, match=r"ends with batch 5, and batches up to 7 .* are committed"):
        start_plan(replace(LATER, progress=progress(7)))


def test_a_checkpoint_that_another_has_overtaken_is_refused() -> None:
    with pytest.raises(CheckpointMismatchError, match="another state directory"):
        start_plan(replace(LATER, progress=progress(5, "theirs")))


def test_lost_state_is_refused_under_exactly_once() -> None:
    with pytest.raises(StateLostError, match="start from scratch: reset app"):
        start_plan(replace(FIRST, progress=progress(3)))


def test_without_state_to_lose_progress_says_where_to_go_on() -> None:
    facts = replace(FIRST, is_stateless=True, progress=progress(3), committed=Committed({PLACE: 1}))

    assert start_plan(facts) == StartPlan(begins_after=progress(3))


def test_a_source_that_cannot_go_on_from_progress_needs_its_checkpoint() -> None:
    facts = replace(FIRST, is_stateless=True, resumes_from_progress=False, progress=progress(3))

    with pytest.raises(StateLostError, match="start it with the state folder it had before"):
        start_plan(facts)


def test_at_least_once_builds_lost_state_anew() -> None:
    plan = start_plan(replace(FIRST, keeps_progress=False, committed=Committed({PLACE: 9})))

    assert plan.offsets == {}
    assert "state is built anew" in (plan.warning or "")


def test_at_least_once_begins_where_a_reset_has_put_it() -> None:
    plan = start_plan(replace(FIRST, keeps_progress=False, committed=Committed({PLACE: 9}, is_reset=True)))

    assert plan == StartPlan(offsets={PLACE: 9})


def test_at_least_once_without_state_goes_on_from_the_groups_offsets() -> None:
    facts = replace(FIRST, keeps_progress=False, is_stateless=True, committed=Committed({PLACE: 9}))

    assert start_plan(facts) == StartPlan(offsets={PLACE: 9})


def test_a_checkpoint_of_at_least_once_decides_alone() -> None:
    assert start_plan(replace(LATER, keeps_progress=False, progress=progress(99))) == StartPlan()
