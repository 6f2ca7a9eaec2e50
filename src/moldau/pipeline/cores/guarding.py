"""Catching the failures of a single node, where a pipeline is to go on without the record.

A failing node loses its record; the nodes around it do not notice, and what the record caused elsewhere stays. This is
what Kafka Streams does with a processing exception handler. Start at `guarded`.
"""

from __future__ import annotations

from moldau.pipeline.cores.failures import HandlerError, RecordError, ServiceFailedError, as_record_error
from moldau.pipeline.cores.handlers import Response, decision
from moldau.pipeline.cores.processor import Forward, Processor
from moldau.pipeline.cores.records import InputRecord, Record

__all__ = ["StoppedError", "guarded", "handle"]


class StoppedError(RecordError):
    """A failure that a handler has already decided about: the pipeline stops."""


def guarded(processor: Processor) -> Forward:
    """The processor's way to take records, with its own failures given to the handler."""

    def take(record: Record) -> None:
        try:
            processor.take(record)
        except Exception as error:
            handle(error, processor)

    return take


def handle(error: Exception, processor: Processor) -> None:
    """Ask the handler about a failure; returns where the pipeline is to go on."""
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
