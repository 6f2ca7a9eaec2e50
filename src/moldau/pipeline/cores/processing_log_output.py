"""The processing log of a task: failures of single rows as records of a topic, in the form that ksqlDB writes them.

A failure never ends a query. Without a topic, failures are only counted among the dropped records. Start at
`ProcessingLogOutput`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moldau.formats.types import Value
from moldau.pipeline.cores.fusing.columns import OutputColumns

if TYPE_CHECKING:
    from moldau.pipeline.cores.context import TaskContext

__all__ = ["PROCESSING_LOG", "ProcessingLogOutput"]

PROCESSING_LOG = "processing-log"
"""The name of the output; no node has this name."""

DESERIALIZATION_ERROR, RECORD_PROCESSING_ERROR = 0, 1
MAX_ROW_CHARACTERS = 1000
"""Rows in messages are cut here."""


class ProcessingLogOutput:
    """Writes failures to the outputs of a task."""

    def __init__(self, context: TaskContext) -> None:
        self._context = context
        self._columns: tuple[Callable[[], tuple[Any, ...]], Callable[[], int], OutputColumns, list[int]] | None = None

    @contextmanager
    def of_columns(self, current: Callable[[], tuple[Any, ...]], index: Callable[[], int]) -> Iterator[OutputColumns]:
        """Entries of records that are processed as columns: there, the current record is made only if it is needed."""
        causes: list[int] = []
        logged = OutputColumns(PROCESSING_LOG, self._context.settings.processing_log_topic or "", causes=causes)
        self._columns = (current, index, logged, causes)
        try:
            yield logged
        finally:
            self._columns = None

    def expression_failed(self, what: str, cause: Exception, row: Sequence[Value]) -> None:
        """An item has no value for a row, or a condition does not hold because it has none."""
        self._context.dropped[what, "failed expressions"] += 1
        self._write(
            what,
            RECORD_PROCESSING_ERROR,
            "recordProcessingError",
            {
                "errorMessage": f"Error computing {what}: {cause}",
                "record": repr(tuple(row))[:MAX_ROW_CHARACTERS],
                "cause": _causes(cause),
            },
        )

    def deserialization_failed(self, node: str, cause: Exception) -> None:
        """The current record cannot be read."""
        current = self._context.current
        data = None if current is None else current[6]
        self._write(
            node,
            DESERIALIZATION_ERROR,
            "deserializationError",
            {
                "target": "value",
                "errorMessage": str(cause),
                "recordB64": None if data is None else base64.b64encode(data[:MAX_ROW_CHARACTERS]).decode(),
                "cause": _causes(cause),
                "topic": None if current is None else current[0],
            },
        )

    def _write(self, step: str, kind: int, member: str, message: dict[str, Any]) -> None:
        settings, current = self._context.settings, self._context.current
        if settings.processing_log_topic is None:
            return
        if self._columns is not None:
            current = self._columns[0]()
        timestamp = 0 if current is None else max(current[3], 0)
        entry = {
            "level": "ERROR",
            "logger": f"processing.{settings.application_id}.{step}",
            "time": timestamp,
            "message": {"type": kind, member: message},
        }
        value = json.dumps(entry).encode()
        if self._columns is not None:
            _, index, logged, causes = self._columns
            logged.keys.append(None)
            logged.values.append(value)
            logged.timestamps.append(timestamp)
            causes.append(index())
            return
        self._context.outputs.append((PROCESSING_LOG, settings.processing_log_topic, None, value, timestamp, (), None))


def _causes(error: BaseException) -> list[str]:
    """The messages of the errors behind an error."""
    found: list[str] = []
    cause = error.__cause__
    while cause is not None and len(found) < 10:
        found.append(str(cause))
        cause = cause.__cause__
    return found
