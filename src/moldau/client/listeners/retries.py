"""Retries and dead letters: where a record goes when its listener fails, and the headers it then has.

A failed record moves to a retry topic, so that the records after it need not wait; each retry topic has one delay.
After the last attempt it moves to the dead-letter topic. Decisions and headers only: `client.listeners.workers`
executes them. Start at `RetryPolicy` and `Failure`.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from moldau.client.errors import SerializationError
from moldau.client.records import Headers, Record, header_value
from moldau.core.errors import InvalidConfigError

__all__ = ["HEADER_PREFIX", "Failure", "NextStop", "Origin", "RetryPolicy", "due_ms", "failure_headers", "next_stop"]

HEADER_PREFIX = "moldau."
"""Prefix of every header written here. Values are text."""

_DEAD_LETTER_TOPIC = re.compile(r"[-._]dl[tq]$", re.IGNORECASE)
"""Ours end with -dlt; the others are used by Spring Kafka, Kafka Connect and others."""

TRACE_LIMIT = 4000
MESSAGE_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a failing record is tried, with what pauses, before it becomes a dead letter.

    `RetryPolicy(attempts=3, backoff_ms=1000)` on topic `payments`: the record fails, waits one second in
    `payments-retry-0`, fails, waits two seconds in `payments-retry-1`, fails, and ends in `payments-dlt`.

    A listener may read dead letters. A record of `payments-dlt` is retried in the same way, but does not become a dead
    letter again: when all attempts have failed it is logged as an error, stays where it is, and counts as done. Topics
    whose names end with `-dlt`, `.DLT`, `-dlq` or `.DLQ`, in upper or lower case, are dead-letter topics.
    """

    attempts: int = 4
    """How often the listener is called for one record, the first time included. 1 means: no retries."""
    backoff_ms: int = 1000
    """The pause before the first retry."""
    multiplier: float = 2.0
    """Each further pause is longer by this factor."""
    max_backoff_ms: int = 60_000
    """No pause is longer than this."""
    not_retried: tuple[type[Exception], ...] = ()
    """Errors that a retry cannot fix: such a record becomes a dead letter at once, as does every record that cannot be
    deserialized."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidConfigError(f"attempts must be at least 1, not {self.attempts}")
        if self.backoff_ms < 0 or self.multiplier < 1 or self.max_backoff_ms < 0:
            raise InvalidConfigError("backoff_ms and max_backoff_ms must not be negative, multiplier at least 1")

    def delays_ms(self) -> list[int]:
        """The pause before each retry."""
        longest = float(self.max_backoff_ms)
        return [int(min(longest, self.backoff_ms * self.multiplier**index)) for index in range(self.attempts - 1)]

    def retry_topics(self, topic: str) -> list[str]:
        """The retry topics of `topic`, one for each pause."""
        return [f"{topic}-retry-{index}" for index in range(self.attempts - 1)]

    def dead_letter_topic(self, topic: str) -> str | None:
        """Where records of `topic` end; `None` where it is a dead-letter topic itself, whose records stay there."""
        return None if _DEAD_LETTER_TOPIC.search(topic) else f"{topic}-dlt"


class Origin(NamedTuple):
    """The original topic, partition and offset of a retried record."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int

    @classmethod
    def of(cls, record: Record[Any, Any]) -> Origin:
        """Read from the headers; a record without them is its own origin."""
        failure = Failure.of(record)
        if failure is not None:
            return failure.origin
        return cls(record.topic, record.partition, record.offset, record.timestamp_ms)


@dataclass(frozen=True, slots=True)
class Failure:
    """The headers of a retried record or a dead letter."""

    origin: Origin
    group: str
    """The group whose listener failed. Listeners of other groups ignore the record."""
    listener: str
    """The function that failed."""
    attempts: int
    """How often it was called."""
    stage: str
    """`key` or `value` where that could not be deserialized, else `listener`."""
    error_class: str
    error_message: str
    trace: str = ""

    @classmethod
    def of(cls, record: Record[Any, Any]) -> Failure | None:
        """Read the headers of a record; `None` where it has none of ours, or not all of them."""
        try:
            return cls(
                origin=Origin(
                    _text(record, "origin.topic"),
                    int(_text(record, "origin.partition")),
                    int(_text(record, "origin.offset")),
                    int(_text(record, "origin.timestamp")),
                ),
                group=_text(record, "group"),
                listener=_text(record, "listener"),
                attempts=int(_text(record, "attempts")),
                stage=_text(record, "error.stage"),
                error_class=_text(record, "error.class"),
                error_message=_text(record, "error.message"),
                trace=_text(record, "error.trace"),
            )
        except (KeyError, ValueError):
            return None


class NextStop(NamedTuple):
    """Where a failed record goes."""

    topic: str | None
    """`None` for a dead letter whose retries are exhausted: it stays where it is."""
    due_ms: int | None
    """When it is retried; `None` for dead letters."""


def next_stop(policy: RetryPolicy, failure: Failure, error: Exception, now_ms: int) -> NextStop:
    """Decide where a record goes that has now failed `failure.attempts` times."""
    topic = failure.origin.topic
    is_hopeless = isinstance(error, (SerializationError, *policy.not_retried))
    if is_hopeless or failure.attempts >= policy.attempts:
        return NextStop(policy.dead_letter_topic(topic), None)
    index = failure.attempts - 1
    return NextStop(policy.retry_topics(topic)[index], now_ms + policy.delays_ms()[index])


def failure_of(record: Record[Any, Any], error: Exception, *, group: str, listener: str) -> Failure:
    """The failure of `listener` on this record, with one attempt more than its headers say."""
    before = Failure.of(record)
    cause = error.__cause__ if isinstance(error, SerializationError) and error.__cause__ else error
    return Failure(
        origin=Origin.of(record),
        group=group,
        listener=listener,
        attempts=1 + (before.attempts if before else 0),
        stage=error.part if isinstance(error, SerializationError) else "listener",
        error_class=f"{type(cause).__module__}.{type(cause).__qualname__}".removeprefix("builtins."),
        error_message=str(error)[:MESSAGE_LIMIT],
        trace="".join(traceback.format_exception(error))[-TRACE_LIMIT:],
    )


def failure_headers(headers: Sequence[tuple[str, bytes | None]], failure: Failure, due_ms: int | None) -> Headers:
    """The record's own headers, with ours added or replaced."""
    told = {
        "origin.topic": failure.origin.topic,
        "origin.partition": failure.origin.partition,
        "origin.offset": failure.origin.offset,
        "origin.timestamp": failure.origin.timestamp_ms,
        "group": failure.group,
        "listener": failure.listener,
        "attempts": failure.attempts,
        "error.stage": failure.stage,
        "error.class": failure.error_class,
        "error.message": failure.error_message,
        "error.trace": failure.trace,
    } | ({} if due_ms is None else {"retry.due": due_ms})
    kept = [(name, value) for name, value in headers if not name.startswith(HEADER_PREFIX)]
    # An exception's text may contain a lone surrogate, which UTF-8 cannot encode.
    ours = [(HEADER_PREFIX + name, str(value).encode(errors="replace")) for name, value in told.items()]
    return (*kept, *ours)


def due_ms(record: Record[Any, Any]) -> int:
    """When a record of a retry topic is due; 0 where its headers do not say."""
    text = header_value(record.headers, HEADER_PREFIX + "retry.due") or b""
    return int(text) if text.isdigit() else 0


def _text(record: Record[Any, Any], name: str) -> str:
    value = record.header(HEADER_PREFIX + name)
    if value is None:
        raise KeyError(name)
    return value.decode()
