"""Where a pipeline continues: decided from its checkpoint, the progress in its sink and its group's offsets.

Pure functions: `run` collects the facts and carries out the plan. Cases in which results would be lost or duplicated
are refused. Start at `start_plan`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.pipeline.runtime.errors import CheckpointMismatchError, StateLostError
from moldau.pipeline.runtime.identity import PipelineIdentity
from moldau.pipeline.runtime.progress import Progress
from moldau.pipeline.runtime.source import Committed, Offsets

__all__ = ["Facts", "StartPlan", "start_plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The state found at the start."""

    identity: PipelineIdentity
    folder: str
    """The location of the checkpoint, whether or not it exists."""
    keeps_progress: bool
    """Whether the sink stores progress with its rows (exactly-once)."""
    is_stateless: bool
    resumes_from_progress: bool = True
    """Whether the source can continue from a progress record alone."""
    checkpoint: str | None
    """The checkpoint's id; None if there is no checkpoint."""
    last_planned: int | None
    progress: Progress | None
    committed: Committed


@dataclass(frozen=True, slots=True)
class StartPlan:
    """What to do before the query starts."""

    offsets: Offsets = field(default_factory=dict)
    """The group's offsets at which to start without a checkpoint."""
    begins_after: Progress | None = None
    """The batch after which to start without a checkpoint. Without offsets and progress the source's default applies.
    """
    restored: Progress | None = None
    """A committed batch that is missing in the checkpoint and must be planned again."""
    warning: str | None = None


def start_plan(facts: Facts) -> StartPlan:
    """Decide how to start; raises `StateLostError` or `CheckpointMismatchError`, whose message says how to recover."""
    if facts.checkpoint is None or facts.last_planned is None:
        return _without_checkpoint(facts)
    if not facts.keeps_progress or facts.progress is None:
        return StartPlan()
    return _with_progress(facts, facts.progress, facts.last_planned)


def _with_progress(facts: Facts, progress: Progress, last_planned: int) -> StartPlan:
    if progress.checkpoint != facts.checkpoint:
        raise CheckpointMismatchError(
            f"{facts.identity.title} has since run with another state directory than {facts.folder}; "
            f"start it with that one, {_or_reset(facts)}"
        )
    if progress.batch <= last_planned:
        return StartPlan()
    if progress.batch == last_planned + 1:
        return StartPlan(restored=progress)
    raise CheckpointMismatchError(
        f"the checkpoint in {facts.folder} ends with batch {last_planned}, and batches up to {progress.batch} of "
        f"{facts.identity.title} are committed: it is an older copy. Restore the newest one, "
        f"{_or_reset(facts)}"
    )


def _without_checkpoint(facts: Facts) -> StartPlan:
    if facts.keeps_progress and facts.progress is not None:
        if facts.is_stateless and facts.resumes_from_progress:
            return StartPlan(begins_after=facts.progress)
        raise StateLostError(
            f"{facts.identity.title} has committed results, and the state behind them is not in "
            f"{facts.folder}; start it with the state folder it had before, {_or_reset(facts)}"
        )
    committed = facts.committed
    if committed.offsets and not (facts.is_stateless or facts.keeps_progress or committed.is_reset):
        # No matter which client committed them: continuing there with empty tables would make all later results wrong.
        return StartPlan(
            warning=f"{facts.identity.title} has committed offsets and no state in {facts.folder}; "
            "state is built anew from the topics, and results are written again"
        )
    return StartPlan(offsets=committed.offsets)


def _or_reset(facts: Facts) -> str:
    return f"or let it write all results again: {facts.identity.reset_advice}"
