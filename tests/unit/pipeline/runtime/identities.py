"""A pipeline's identity for tests, in which no name follows from another."""

from __future__ import annotations

from pathlib import Path

from moldau.pipeline.runtime.identity import PipelineIdentity

__all__ = ["identity_in"]


def identity_in(folder: Path, name: str = "app") -> PipelineIdentity:
    return PipelineIdentity(
        name=name,
        group_id=f"group-of-{name}",
        transactional_id=f"transactions-of-{name}",
        progress_topic=f"progress-of-{name}",
        folder=str(folder / name),
        local_folder=folder / name,
        reset_command=f"reset {name}",
    )
