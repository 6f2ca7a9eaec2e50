"""What follows from a record that cannot be read or processed: stop, or leave it behind.

Settings name a handler by Kafka's class, by a short word, or give a Python function. Start at `ExceptionHandler`.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from enum import Enum
from typing import Any

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.cores.class_words import class_word
from moldau.pipeline.cores.failures import HandlerError, RecordError
from moldau.pipeline.cores.records import Headers, InputRecord

__all__ = [
    "ExceptionHandler",
    "Response",
    "dead_letter_headers",
    "decision",
    "deserialization_handler",
    "processing_handler",
]

logger = logging.getLogger(__name__)


class Response(Enum):
    """What to do with the pipeline."""

    FAIL = "FAIL"
    CONTINUE = "CONTINUE"


ExceptionHandler = Callable[[RecordError, InputRecord | None], Response]
"""Decides about a failed record, given in the form it was read; None where a punctuation failed."""


def log_and_fail(error: RecordError, record: InputRecord | None) -> Response:
    """Stop at the first failure."""
    return Response.FAIL


def log_and_continue(error: RecordError, record: InputRecord | None) -> Response:
    """Log the failure and go on with the next record."""
    logger.warning("skipped a record: %s", error)
    return Response.CONTINUE


_WORDS: dict[str, ExceptionHandler] = {
    "fail": log_and_fail,
    "logandfail": log_and_fail,
    "logandfailexceptionhandler": log_and_fail,
    "logandfailprocessingexceptionhandler": log_and_fail,
    "continue": log_and_continue,
    "logandcontinue": log_and_continue,
    "logandcontinueexceptionhandler": log_and_continue,
    "logandcontinueprocessingexceptionhandler": log_and_continue,
}


def deserialization_handler(given: Any) -> ExceptionHandler:
    """The handler that `default.deserialization.exception.handler` names."""
    return _handler("deserialization.exception.handler", given)


def processing_handler(given: Any) -> ExceptionHandler:
    """The handler that `processing.exception.handler` names."""
    return _handler("processing.exception.handler", given)


def _handler(key: str, given: Any) -> ExceptionHandler:
    if callable(given):
        return given  # type: ignore[no-any-return]
    try:
        return _WORDS[class_word(given)]
    except KeyError:
        raise InvalidConfigError(
            f"{key}: {given!r} is no handler; give log-and-fail, log-and-continue, Kafka's name of one, or a function"
        ) from None


def decision(handler: ExceptionHandler, error: RecordError, record: InputRecord | None) -> Response:
    """What a handler says about a failure; one that raises, or says something else, ends the pipeline."""
    try:
        response = handler(error, record)
    except Exception as own:
        raise _undecided(error, f"raised {type(own).__name__}: {own}") from own
    if not isinstance(response, Response):
        raise _undecided(error, f"returned {response!r} instead of HandlerResponse.CONTINUE or HandlerResponse.FAIL")
    return response


def _undecided(error: RecordError, what: str) -> HandlerError:
    message = f"{error}; nothing was decided about it, because the exception handler {what}"
    return HandlerError(message, error.place, error.node, error.origin)


def dead_letter_headers(error: RecordError) -> Headers:
    """What a dead letter tells about its failure, under Kafka's names."""
    cause = error.__cause__ or error
    kind = type(cause)
    facts = {
        "exception": f"{kind.__module__}.{kind.__qualname__}",
        "message": str(error),
        "stacktrace": "".join(traceback.format_exception(cause)),
    }
    if error.place is not None:
        facts |= {
            "topic": error.place.topic,
            "partition": str(error.place.partition),
            "offset": str(error.place.offset),
        }
    return tuple((f"__streams.errors.{name}", text.encode()) for name, text in facts.items())
