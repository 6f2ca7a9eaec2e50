"""Exception handlers: whether a record that cannot be read or processed stops the pipeline or is skipped.

Settings name a handler by Kafka's class name, by a short name, or give a Python function. A node that fails skips its
record; the nodes upstream do not notice, and the record's other effects remain, as in Kafka Streams with a processing
exception handler (KIP-1033). Start at `ExceptionHandler` and `with_handler`.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from enum import Enum
from typing import Any

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.cores.failures import HandlerError, RecordError, ServiceFailedError, as_record_error
from moldau.pipeline.cores.processor import Forward, Processor
from moldau.pipeline.cores.records import Headers, InputRecord, Record

__all__ = [
    "ExceptionHandler",
    "Response",
    "StoppedError",
    "class_word",
    "dead_letter_headers",
    "decision",
    "deserialization_handler",
    "handle",
    "processing_handler",
    "with_handler",
]


logger = logging.getLogger(__name__)


class Response(Enum):
    """What to do with the pipeline."""

    FAIL = "FAIL"
    CONTINUE = "CONTINUE"


ExceptionHandler = Callable[[RecordError, InputRecord | None], Response]
"""Decides about a failed record, given as it was read; None where a punctuation failed."""


def log_and_fail(error: RecordError, record: InputRecord | None) -> Response:
    """Stop at the first failure."""
    return Response.FAIL


def log_and_continue(error: RecordError, record: InputRecord | None) -> Response:
    """Log the failure and continue with the next record."""
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
            f"{key}: {given!r} is not a handler; give log-and-fail, log-and-continue, Kafka's name of one, or a "
            "function"
        ) from None


def decision(handler: ExceptionHandler, error: RecordError, record: InputRecord | None) -> Response:
    """The handler's response to a failure; raises `HandlerError` if it raises or returns something else."""
    try:
        response = handler(error, record)
    except Exception as own:
        raise _handler_failure(error, f"raised {type(own).__name__}: {own}") from own
    if not isinstance(response, Response):
        raise _handler_failure(
            error, f"returned {response!r} instead of HandlerResponse.CONTINUE or HandlerResponse.FAIL"
        )
    return response


def _handler_failure(error: RecordError, what: str) -> HandlerError:
    message = f"{error}; the pipeline stops because the exception handler {what}"
    return HandlerError(message, error.place, error.node, error.origin)


def dead_letter_headers(error: RecordError) -> Headers:
    """The headers of a dead letter that describe its failure, with Kafka's names (KIP-1034)."""
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


def class_word(given: object) -> str:
    """The class name in lower case, without packages, dashes and underscores."""
    return str(given).rpartition(".")[2].replace("-", "").replace("_", "").lower()


class StoppedError(RecordError):
    """A failure that a handler has already decided about: the pipeline stops."""


def with_handler(processor: Processor) -> Forward:
    """The processor's `take` with failures passed to the exception handler."""

    def take(record: Record) -> None:
        try:
            processor.take(record)
        except Exception as error:
            handle(error, processor)

    return take


def handle(error: Exception, processor: Processor) -> None:
    """Pass a failure to the handler; returns if the pipeline continues, raises if it stops."""
    if isinstance(error, StoppedError | HandlerError | ServiceFailedError):
        raise error
    context = processor.context
    failure = as_record_error(error, context)
    if isinstance(failure, ServiceFailedError):
        raise failure from error
    row = context.current
    response = decision(context.settings.processing_handler, failure, None if row is None else InputRecord(*row))
    context.dead_letter(failure)
    if response is Response.FAIL:
        raise StoppedError(str(failure), failure.place, failure.node, failure.origin) from error
    context.drop(processor.node, "processing failed")
