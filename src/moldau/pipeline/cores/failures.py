"""What can go wrong with one record: bytes that no serde reads, a user's function that raises, a time that is none.

Each error names the record (topic, partition, offset) and the user's line. What follows from it, stopping or skipping,
is decided in `handlers`. Start at `RecordError`.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.core.errors import MoldauError, ServiceError
from moldau.pipeline.ir.nodes import Node
from moldau.pipeline.ir.origin import PACKAGE, UNKNOWN, Origin

if TYPE_CHECKING:
    from moldau.pipeline.cores.context import TaskContext
    from moldau.pipeline.cores.processor import Processor
    from moldau.pipeline.cores.records import Record

__all__ = [
    "BufferFullError",
    "DeserializationError",
    "ExtractedTimestampError",
    "HandlerError",
    "MissingBuilderError",
    "ProcessingError",
    "RecordError",
    "RecordPlace",
    "SerializationError",
    "ServiceFailedError",
    "StateError",
    "as_record_error",
    "failing_line",
    "service_failure",
]


class RecordPlace(NamedTuple):
    """Where a record was read."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}"


class RecordError(MoldauError):
    """One record could not be processed."""

    def __init__(self, message: str, place: RecordPlace | None, node: str, origin: Origin = UNKNOWN) -> None:
        super().__init__(message)
        self.place = place
        self.node = node
        self.origin = origin

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self), str(self), self.place, self.node, self.origin))


class DeserializationError(RecordError):
    """The bytes of a key or value are not what the serde reads."""


class SerializationError(RecordError):
    """A result cannot be written by the serde it was given."""


class ProcessingError(RecordError):
    """A function of the user's raised on a record."""


class ExtractedTimestampError(RecordError):
    """A record has no usable time."""


class BufferFullError(RecordError):
    """A suppression buffer reached its limit, and the pipeline was told to stop then."""


class ServiceFailedError(RecordError):
    """A service that a record needs failed: the pipeline stops, whatever handlers say, and the record waits."""


class HandlerError(RecordError):
    """The handler that was to decide about a failure failed itself, or said nothing that can be done."""


class MissingBuilderError(MoldauError):
    """A node that no core knows how to run."""

    def __init__(self, node: Node) -> None:
        super().__init__(f"{node.name} ({node.origin}): nothing here can run a {type(node).__name__}")


class StateError(MoldauError):
    """A store was asked for that does not exist, or for something it cannot do."""


def _restored(
    kind: type[RecordError], message: str, place: RecordPlace | None, node: str, origin: Origin
) -> RecordError:
    # Spark's workers send errors home by pickle, and some kinds build their message from other arguments.
    error = kind.__new__(kind)
    RecordError.__init__(error, message, place, node, origin)
    return error


def failing_line(trace: TracebackType | None, otherwise: Origin) -> Origin:
    """The line of the user's function that failed: the one our innermost frame called into, else the node's own."""
    found = otherwise
    was_ours = False
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        is_ours = module == PACKAGE or module.startswith(PACKAGE + ".")
        if was_ours and not is_ours:
            found = Origin(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        elif is_ours:
            found = otherwise
        was_ours = is_ours
        trace = trace.tb_next
    return found


def as_record_error(error: BaseException, context: TaskContext) -> RecordError:
    """The error that tells a user where and on what a pipeline failed; one that does already is returned as it is."""
    if isinstance(error, RecordError):
        return error
    processor, record = failing_step(error.__traceback__)
    node, declared = (processor.node.name, processor.node.origin) if processor is not None else ("the task", UNKNOWN)
    if isinstance(error, ServiceError):
        return service_failure(error, context.place, node, declared)
    line = failing_line(error.__traceback__, declared)
    is_users = str(line) != str(declared)
    where = f"{declared}, failing at {line}" if is_users else str(declared)
    trouble = None if processor is None or record is None or is_users else processor.trouble_with(record)
    told = trouble or f"raised {type(error).__name__}: {error}"
    place = context.place
    failure = ProcessingError(
        f"{place or 'outside of any record'}: {node} ({where}) {told}; "
        "fix the function, or set processing.exception.handler to log-and-continue",
        place,
        node,
        line,
    )
    failure.__cause__ = error
    return failure


def service_failure(error: ServiceError, place: RecordPlace | None, node: str, origin: Origin) -> ServiceFailedError:
    """What to tell of a failure that is no record's."""
    failure = ServiceFailedError(f"{place or 'outside of any record'}: {node} ({origin}): {error}", place, node, origin)
    failure.__cause__ = error
    return failure


def failing_step(trace: TracebackType | None) -> tuple[Processor | None, Record | None]:
    """The innermost processor that was at work when the exception came, and the record it was given."""
    from moldau.pipeline.cores.processor import Processor

    found: tuple[Processor | None, Record | None] = (None, None)
    while trace is not None:
        names = trace.tb_frame.f_locals
        owner = names.get("self")
        if isinstance(owner, Processor):
            found = (owner, names.get("record"))
        trace = trace.tb_next
    return found
