"""How services reach an engine process: one of their own, or one that they share. Start at `engine_link`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from moldau.pipeline.runtime.hosting.engine_files import EngineFiles
from moldau.pipeline.runtime.hosting.engine_link import CHECK_S, EngineLink

__all__ = ["SPARK_TASKS", "engine_link"]

SPARK_TASKS = 32
"""Spark tasks that may run at the same time where tasks of connectors run, which mostly wait."""


def engine_link(
    own_folder: Path,
    shared_folder: str | None,
    *,
    prefix: str,
    options: Sequence[str] = (),
    spark: Mapping[str, str] | None = None,
    check_s: float = CHECK_S,
) -> EngineLink:
    """A link to the engine of a folder; a shared one outlives this service, and all who share it start it alike."""
    folder = own_folder if shared_folder is None else Path(shared_folder).expanduser().absolute()
    if shared_folder is not None:
        options = ("--threads", str(SPARK_TASKS))
    settings = [f"{name}={text}" for name, text in (spark or {}).items()]
    command = [sys.executable, "-m", "moldau.server.services.engine", str(folder), *options, *settings]
    is_shared = shared_folder is not None
    return EngineLink(EngineFiles(folder), command, prefix=prefix, owns_engine=not is_shared, check_s=check_s)
