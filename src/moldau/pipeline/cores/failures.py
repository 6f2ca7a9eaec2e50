"""The errors of one record: bytes that a serde cannot read, a user's function that raises, an invalid timestamp.

Each error names the record (topic, partition, offset) and the user's source line. `handlers` decides whether the
pipeline stops or skips the record. Start at `RecordError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.core.errors import MoldauError, ServiceError
from moldau.pipeline.ir.nodes import Node
from moldau.pipeline.ir.origin import PACKAGE, UNKNOWN, Origin

if TYPE_CHECKING:
    from moldau.pipeline.cores.context import TaskContext
    from moldau.pipeline.cores.fusing.emitter import Line
    from moldau.pipeline.cores.processor import Processor
    from moldau.pipeline.cores.records import Record

__all__ = [
    "FUSED",
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


FUSED = "<fused "
"""The beginning of the file name of compiled loops, which `fusing.fused` makes."""


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
        return (_unpickle_error, (type(self), str(self), self.place, self.node, self.origin))


class DeserializationError(RecordError):
    """The serde cannot deserialize a key or value."""


class SerializationError(RecordError):
    """The serde cannot serialize the key or value of a result."""


class ProcessingError(RecordError):
    """A user's function raised on a record."""


class ExtractedTimestampError(RecordError):
    """A record has no usable timestamp."""


class BufferFullError(RecordError):
    """A suppression buffer reached its limit and is configured to stop the pipeline."""


class ServiceFailedError(RecordError):
    """A service that a record needs failed: the pipeline stops without asking handlers, and keeps the record."""


class HandlerError(RecordError):
    """The handler for a failure raised itself, or returned an invalid response."""


class MissingBuilderError(MoldauError):
    """A node that no core can run."""

    def __init__(self, node: Node) -> None:
        super().__init__(f"{node.name} ({node.origin}): nothing here can run a {type(node).__name__}")


class StateError(MoldauError):
    """A store was asked for that does not exist, or for something it cannot do."""


def _unpickle_error(
    kind: type[RecordError], message: str, place: RecordPlace | None, node: str, origin: Origin
) -> RecordError:
    # Spark's workers send errors to the driver by pickle, and some classes have other constructor arguments.
    error = kind.__new__(kind)
    RecordError.__init__(error, message, place, node, origin)
    return error


def failing_line(trace: TracebackType | None, otherwise: Origin) -> Origin:
    """The user's line that failed: the one that our innermost frame called, else the node's own."""
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
    """An error that names the failing node, line and record; a `RecordError` is returned as it is."""
    if isinstance(error, RecordError):
        return error
    processor, record = failing_step(error.__traceback__)
    node, declared = (processor.node.name, processor.node.origin) if processor is not None else ("the task", UNKNOWN)
    if isinstance(error, ServiceError):
        return service_failure(error, context.place, node, declared)
    line = failing_line(error.__traceback__, declared)
    is_users = str(line) != str(declared)
    where = f"{declared}, failing at {line}" if is_users else str(declared)
    problem = None if processor is None or record is None or is_users else processor.problem_with(record)
    reason = problem or f"raised {type(error).__name__}: {error}"
    place = context.place
    failure = ProcessingError(
        f"{place or 'outside of any record'}: {node} ({where}) {reason}; "
        "fix the function, or set processing.exception.handler to log-and-continue",
        place,
        node,
        line,
    )
    failure.__cause__ = error
    return failure


def service_failure(error: ServiceError, place: RecordPlace | None, node: str, origin: Origin) -> ServiceFailedError:
    """The error for a failed service, which is not the record's fault."""
    failure = ServiceFailedError(f"{place or 'outside of any record'}: {node} ({origin}): {error}", place, node, origin)
    failure.__cause__ = error
    return failure


def _record_of(line: Line, names: Mapping[str, Any]) -> Record:
    from moldau.pipeline.cores.records import Record

    return Record(names.get(line.key), names.get(line.value), names.get(line.timestamp, -1), names.get("headers", ()))


def failing_step(trace: TracebackType | None) -> tuple[Processor | None, Record | None]:
    """The innermost processor on the stack of the exception, and the record it was given."""
    from moldau.pipeline.cores.processor import Processor

    found: tuple[Processor | None, Record | None] = (None, None)
    while trace is not None:
        names = trace.tb_frame.f_locals
        if trace.tb_frame.f_code.co_filename.startswith(FUSED):
            # A fused loop has no `self`, but knows whose lines it consists of.
            line = trace.tb_frame.f_globals["owners"].get(trace.tb_lineno)
            found = found if line is None else (line.processor, _record_of(line, names))
        owner = names.get("self")
        if isinstance(owner, Processor):
            found = (owner, names.get("record"))
        trace = trace.tb_next
    return found
