"""Failures of a user's function or record, passed from a Python worker to the process that started the pipeline.

Spark wraps a worker's exception into pages of traceback. Workers therefore put the relevant message between two marks,
and `cause_of` finds it in Spark's text. `worker_trouble` recognizes Spark's messages for a worker without Python, or
without the modules it needs. Start at `cause_of`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from moldau.core.errors import MoldauError

__all__ = ["PipelineFailedError", "WorkerError", "WorkerSetupError", "cause_of", "marking_failures", "worker_trouble"]

_FOUND = re.compile(r"<moldau-failure>(.*?)</moldau-failure>", re.DOTALL)

_TOLD_BY_SPARK = re.compile(r"topic \S+, partition \d+, offset \d+: ")
"""Matches a message that an expression raised, not the expression itself, which every failed plan prints."""


class WorkerError(Exception):
    """Raised by a worker in place of a `MoldauError`: its text survives Spark's wrapping."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The details of a failure."""

    kind: str
    message: str
    node: str | None
    file: str | None
    line: int | None


class PipelineFailedError(MoldauError):
    """A pipeline stopped because of one of its records or functions; the message says which, and where."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.kind = failure.kind
        """The name of the error's class, such as ProcessingError."""
        self.node = failure.node
        self.file = failure.file
        self.line = failure.line


@contextmanager
def marking_failures() -> Iterator[None]:
    """Mark errors that users must see; other exceptions are bugs and keep their traceback."""
    try:
        yield
    except MoldauError as error:
        # The traceback includes the source line that raises, so that line must not contain the marks.
        raise WorkerError(_marked_text(error)) from None


def _marked_text(error: MoldauError) -> str:
    origin = getattr(error, "origin", None)
    has_line = origin is not None and bool(origin.line)
    facts = {
        "kind": type(error).__name__,
        "message": str(error),
        "node": getattr(error, "node", None),
        "file": origin.file if origin is not None and has_line else None,
        "line": origin.line if origin is not None and has_line else None,
    }
    return f"<moldau-failure>{json.dumps(facts)}</moldau-failure>"


def cause_of(error: BaseException | str) -> PipelineFailedError | None:
    """The failure behind a Spark exception, or None if no worker reported one."""
    for text in _FOUND.findall(str(error)):
        if text.startswith("{"):
            return PipelineFailedError(Failure(**json.loads(text)))
        if _TOLD_BY_SPARK.match(text):
            return PipelineFailedError(Failure("DeserializationError", text, None, None, None))
    return None


# --- workers that cannot run Python ----------------------------------------------------------------------------

_NO_PYTHON = re.compile(r'Cannot run program "([^"]*python[^"]*)"')
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


class WorkerSetupError(MoldauError):
    """A Spark worker cannot run Python code of the pipeline."""


def worker_trouble(text: str) -> WorkerSetupError | None:
    """The setup error that Spark's message describes, or None if it is another failure."""
    if (python := _NO_PYTHON.search(text)) is not None:
        return WorkerSetupError(
            f"a Spark worker has no {python.group(1)}; name the Python that has moldau there with spark.pyspark.python"
        )
    if (module := _NO_MODULE.search(text)) is None:
        return None
    name = module.group(1)
    if name.partition(".")[0] in ("moldau", "pyarrow", "pandas", "numpy"):
        return WorkerSetupError(
            f"a Spark worker's Python has no {name}; install moldau there, or name the Python that has it with "
            "spark.pyspark.python"
        )
    return WorkerSetupError(
        f"a Spark worker cannot import {name}: install it there, or import it before the start so that it is sent "
        "along, or name it in spark.submit.pyFiles"
    )
