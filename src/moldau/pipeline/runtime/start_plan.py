"""Where a pipeline goes on: decided from its checkpoint, its progress in Kafka and its group's offsets.

Pure: `pipeline` finds the facts and does what was decided. The cases that are refused are those in which results
would be lost or doubled. Start at `start_plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.core.ids import TopicPartition
from moldau.pipeline.runtime.errors import CheckpointMismatchError, StateLostError
from moldau.pipeline.runtime.progress import Progress

__all__ = ["Facts", "StartPlan", "start_plan"]

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was found at start."""

    application_id: str
    state_dir: str
    is_exactly_once: bool
    is_stateless: bool
    checkpoint: str | None
    """Its id, where there is one."""
    last_planned: int | None
    progress: Progress | None
    group_offsets: Offsets
    is_reset: bool = False
    """Whether the group's offsets are those that a reset has set, to begin there without state."""


@dataclass(frozen=True, slots=True)
class StartPlan:
    """What to do before the query starts."""

    starting_offsets: Offsets = field(default_factory=dict)
    """Where to begin without a checkpoint; other partitions begin as `auto.offset.reset` says."""
    restored: Progress | None = None
    """A batch that the checkpoint has forgotten and must plan again."""
    warning: str | None = None


def start_plan(facts: Facts) -> StartPlan:
    """Decide how to start; raises `StateLostError` or `CheckpointMismatchError` with the way out."""
    if facts.checkpoint is None or facts.last_planned is None:
        return _without_checkpoint(facts)
    if not facts.is_exactly_once or facts.progress is None:
        return StartPlan()
    return _with_progress(facts, facts.progress, facts.last_planned)


def _with_progress(facts: Facts, progress: Progress, last_planned: int) -> StartPlan:
    if progress.checkpoint != facts.checkpoint:
        raise CheckpointMismatchError(
            f"application {facts.application_id} has since run with another state directory than {facts.state_dir}; "
            f"start it with that one, {_or_reset(facts)}"
        )
    if progress.batch <= last_planned:
        return StartPlan()
    if progress.batch == last_planned + 1:
        return StartPlan(restored=progress)
    raise CheckpointMismatchError(
        f"the checkpoint in {facts.state_dir} ends with batch {last_planned}, and batches up to {progress.batch} of "
        f"application {facts.application_id} are committed: it is an older copy. Restore the newest one, "
        f"{_or_reset(facts)}"
    )


def _without_checkpoint(facts: Facts) -> StartPlan:
    if facts.is_exactly_once and facts.progress is not None:
        if facts.is_stateless:
            return StartPlan(starting_offsets=facts.progress.ends)
        raise StateLostError(
            f"application {facts.application_id} has committed results, and the state behind them is not in "
            f"{facts.state_dir}; start it with the state.dir it had before, {_or_reset(facts)}"
        )
    if facts.group_offsets and not (facts.is_stateless or facts.is_exactly_once or facts.is_reset):
        # Whoever committed them: going on from there with empty tables would give wrong results for ever.
        return StartPlan(
            warning=f"application {facts.application_id} has committed offsets and no state in {facts.state_dir}; "
            "state is built anew from the topics, and results are written again"
        )
    return StartPlan(starting_offsets=facts.group_offsets)


def _or_reset(facts: Facts) -> str:
    return (
        f"or begin anew, which writes all results again: moldau streams reset --application-id {facts.application_id}"
    )
