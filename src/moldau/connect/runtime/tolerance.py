"""What happens when a record fails: retries, tolerance, the log, and the dead-letter topic.

`errors.tolerance=none` lets the first failure end the task; with `all` the record is reported and skipped. Start at
`Tolerance.run`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

from moldau.connect.api.errors import ConnectError, RetriableError
from moldau.core.errors import ServiceError

__all__ = ["ErrorSettings", "FailedRecord", "Reporter", "SkippedError", "Stage", "Tolerance"]

FIRST_RETRY_MS = 300

Result = TypeVar("Result")

logger = logging.getLogger("moldau.connect.errors")


class Stage(Enum):
    """Where a record failed."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


_ANY_ERROR = frozenset(
    {Stage.TRANSFORMATION, Stage.KEY_CONVERTER, Stage.VALUE_CONVERTER, Stage.HEADER_CONVERTER, Stage.KAFKA_PRODUCE}
)
"""Stages at which every exception is tolerated; elsewhere only retriable ones are."""


class FailedRecord(NamedTuple):
    """A record and its failure."""

    stage: Stage
    class_name: str
    error: BaseException
    record: Any
    """The record as it was consumed from a topic, or as the source task gave it."""


class Reporter(Protocol):
    def report(self, failed: FailedRecord) -> None: ...


class SkippedError(ConnectError):
    """The record was reported, and is to be left out."""


@dataclass(frozen=True, slots=True)
class ErrorSettings:
    tolerates_all: bool = False
    retry_timeout_ms: int = 0
    """-1 retries without end."""
    retry_delay_max_ms: int = 60_000
    logs: bool = False
    logs_messages: bool = False

    @classmethod
    def of(cls, config: Mapping[str, str]) -> ErrorSettings:
        return cls(
            tolerates_all=config.get("errors.tolerance", "none").lower() == "all",
            retry_timeout_ms=int(config.get("errors.retry.timeout", "0")),
            retry_delay_max_ms=int(config.get("errors.retry.delay.max.ms", "60000")),
            logs=config.get("errors.log.enable", "false").lower() == "true",
            logs_messages=config.get("errors.log.include.messages", "false").lower() == "true",
        )


class Tolerance:
    """Runs steps for records; used by the thread of one task."""

    def __init__(
        self,
        settings: ErrorSettings,
        task: str,
        stopping: threading.Event,
        reporters: tuple[Reporter, ...] = (),
        hide: Callable[[str], str] = lambda text: text,
    ) -> None:
        self.settings = settings
        self._task = task
        self._stopping = stopping
        self._reporters = reporters
        self._hide = hide
        self.failures = self.skipped = self.retries = self.logged = 0
        self.last_error_ms = 0

    def run(self, step: Callable[[], Result], stage: Stage, class_name: str, record: Any) -> Result:
        """The result of a step; raises `SkippedError` for a failure that is tolerated, otherwise the failure."""
        try:
            return step()
        except Exception as error:
            return self._after_failure(error, step, stage, class_name, record)

    def _after_failure(
        self, error: Exception, step: Callable[[], Result], stage: Stage, class_name: str, record: Any
    ) -> Result:
        if isinstance(error, RetriableError):
            outcome = self._retry(error, step)
            if not isinstance(outcome, _Failed):
                return outcome
            error = outcome.error
        is_tolerable = stage in _ANY_ERROR or isinstance(error, RetriableError)
        self.failures += 1
        self.last_error_ms = time.time_ns() // 1_000_000
        failed = FailedRecord(stage, class_name, error, record)
        if self.settings.tolerates_all and is_tolerable and not isinstance(error, ServiceError):
            self.report(failed)
            self.skipped += 1
            raise SkippedError(str(error)) from error
        if self.settings.logs:
            self._log(failed)
        raise ConnectError(f"{_place(record)}failed at {stage.value} ({class_name}): {error}") from error

    def report(self, failed: FailedRecord) -> None:
        """Log a record and hand it to the reporters, as the settings ask."""
        if self.settings.logs:
            self._log(failed)
        for reporter in self._reporters:
            reporter.report(failed)

    def _retry(self, error: Exception, step: Callable[[], Result]) -> Result | _Failed:
        limit_ms = self.settings.retry_timeout_ms
        began = time.monotonic()
        pause_ms = FIRST_RETRY_MS
        while limit_ms < 0 or 1000 * (time.monotonic() - began) < limit_ms:
            if pause_ms > self.settings.retry_delay_max_ms:
                pause_ms = random.randint(0, self.settings.retry_delay_max_ms)
            if self._stopping.wait(pause_ms / 1000):
                break
            self.retries += 1
            try:
                return step()
            except RetriableError as again:
                error = again
            except Exception as other:
                return _Failed(other)
            pause_ms *= 2
        return _Failed(error)

    def _log(self, failed: FailedRecord) -> None:
        self.logged += 1
        shown = f" The record was {failed.record!r}" if self.settings.logs_messages else ""
        logger.error(
            "%s",
            self._hide(
                f"Error in task {self._task} at {failed.stage.value} with {failed.class_name}: "
                f"{''.join(traceback.format_exception_only(failed.error)).strip()}.{shown}"
            ),
        )


class _Failed(NamedTuple):
    error: Exception


def _place(record: Any) -> str:
    topic, partition = getattr(record, "topic", None), getattr(record, "partition", None)
    offset = getattr(record, "offset", None)
    if callable(topic):
        topic, partition, offset = topic(), partition(), offset()  # type: ignore[misc]
    if offset is not None and topic is not None:
        return f"record {offset} of {topic}-{partition} "
    return "a record "
