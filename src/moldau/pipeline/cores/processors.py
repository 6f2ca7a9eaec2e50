"""The Processor API: processors that users write, and their context.

A processor is an object with `process(record)` and optionally `init(context)` and `close()`. `init` is called with a
`ProcessorContext`: forwarding, stores, schedules, time. `FixedKeyProcessor` checks that keys do not change. Start at
`UserProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Generic, NamedTuple

from moldau.core.errors import MoldauError
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import ProcessingError, StateError, failing_line
from moldau.pipeline.cores.handlers import handle, log_and_fail
from moldau.pipeline.cores.processor import Forward, Link, Processor, to_each
from moldau.pipeline.cores.punctuation import Cancellable, PunctuationType
from moldau.pipeline.cores.records import Record
from moldau.pipeline.cores.stores.state_stores import ReadOnlyStore, open_store
from moldau.pipeline.ir.nodes import GlobalStoreSource, Node, Process, StateStore, TableTransformValues
from moldau.pipeline.ir.type_variables import K, V

__all__ = [
    "ContextualProcessor",
    "FixedKeyProcessor",
    "KeyChangedError",
    "NoRecordError",
    "ProcessorContext",
    "RecordMetadata",
    "UnknownChildError",
    "UserProcessor",
    "create_object",
    "start_errors",
    "user_processor",
]


class RecordMetadata(NamedTuple):
    """Where the current record was read."""

    topic: str
    partition: int
    offset: int


class UnknownChildError(MoldauError):
    """A processor forwarded to a node that is not its child."""


class NoRecordError(MoldauError):
    """A processor forwarded an object that is not a `Record`."""


class KeyChangedError(MoldauError):
    """A processor of `process_values` forwarded a different key."""


class ProcessorContext:
    """What a user's processor can use of its task."""

    def __init__(self, owner: Processor, stores: Sequence[StateStore], connected: Sequence[str]) -> None:
        self._owner = owner
        self._task = owner.context
        self._stores = {*connected, *(store.table.store for store in stores)}
        for store in stores:
            open_store(store, owner.context)
        self._forward: Forward = to_each(())
        self._children: dict[str, Forward] = {}

    def forward(self, record: Record, child: str | None = None) -> None:
        """Send a record to every child, or to the one of this name; returns when they have processed it."""
        if not isinstance(record, Record):
            raise NoRecordError(
                f"{self._owner.node.name} forwards {record!r} ({type(record).__name__}); forward a Record:"
                " context.forward(Record(key, value, timestamp)), or record.with_value(value)"
            )
        if child is None:
            self._forward(record)
            return
        take = self._children.get(child)
        if take is None:
            known = ", ".join(self._children) or "none"
            raise UnknownChildError(
                f"{self._owner.node.name} forwards to {child!r}; the nodes that follow it are: {known}"
            )
        take(record)

    def get_state_store(self, name: str) -> Any:
        """A store connected to this processor; those of global tables and `add_global_store` are read-only."""
        if name in self._task.global_stores:
            return ReadOnlyStore(self._task.store(name))
        if name not in self._stores:
            known = ", ".join(sorted(self._stores)) or "none"
            raise StateError(
                f"{self._owner.node.name} has no access to store {name!r}; name it where the processor is added"
                f" ({self._owner.node.origin}), as in process(supplier, {name!r}) (connected are: {known})"
            )
        return self._task.store(name)

    def schedule(
        self,
        interval: int | timedelta,
        kind: PunctuationType,
        callback: Callable[[int], None],
        *,
        start_ms: int | None = None,
    ) -> Cancellable:
        """Call `callback` (time in ms) every `interval` (ms or a timedelta) of stream time or of the wall clock.

        By stream time the first call comes with the first record; by the wall clock after one interval. With `start_ms`
        calls come at that time plus whole intervals. A schedule created in `init` continues after a restart; one
        created later ends with the task.
        """
        interval_ms = interval // timedelta(milliseconds=1) if isinstance(interval, timedelta) else interval
        return self._task.punctuations.schedule(
            interval_ms,
            kind,
            partial(call_back, self._owner, callback),
            owner=self._owner.node.name,
            start_ms=start_ms,
        )

    def record_metadata(self) -> RecordMetadata | None:
        """Where the current record was read; None in a punctuation."""
        place = self._task.place
        return None if place is None else RecordMetadata(*place)

    def current_stream_time_ms(self) -> int:
        """The largest timestamp this task has seen, -1 before the first record."""
        return self._task.stream_time

    def current_system_time_ms(self) -> int:
        """The wall clock time in ms, as of the last update by the host of the task."""
        return self._task.punctuations.wall_clock_ms or 0

    def commit(self) -> None:
        """Does nothing: the engine commits at the end of every batch."""

    @property
    def application_id(self) -> str:
        """The `application.id` of the application this runs in."""
        return self._task.settings.application_id

    @property
    def partition(self) -> int:
        """The partition of this task."""
        return self._task.partition

    def link(self, children: Sequence[Link]) -> None:
        """Set the children; a node of several parts can be addressed by the name of each."""
        self._forward = to_each([child.take for child in children])
        for child in children:
            self._children |= dict.fromkeys((child.node.name, *child.node.parts), child.take)


def call_back(self: Processor, callback: Callable[[int], None], now: int) -> None:
    """Call a schedule's callback on behalf of a processor."""
    # The first parameter is named self because a failure is attributed to the innermost `self` that is a processor.
    try:
        callback(now)
    except Exception as error:
        if self.context.settings.processing_handler is log_and_fail:
            raise
        handle(error, self)


@contextmanager
def start_errors(node: Node, step: str) -> Iterator[None]:
    """Turn a failure of a user's object at start into an error with the user's source line."""
    try:
        yield
    except MoldauError:
        raise
    except Exception as error:
        line = failing_line(error.__traceback__, node.origin)
        failing = "" if line == node.origin else f", failing at {line}"
        raise ProcessingError(
            f"{node.name} ({node.origin}{failing}) could not start: {step} raised {type(error).__name__}: {error}",
            None,
            node.name,
            line,
        ) from error


def create_object(node: Process | GlobalStoreSource | TableTransformValues) -> Any:
    """A new user's object from the supplier."""
    with start_errors(node, "making it"):
        return node.supplier.call()


class UserProcessor(Processor):
    """A node that runs a user's object."""

    node: Process | GlobalStoreSource

    def __init__(self, node: Process | GlobalStoreSource, context: TaskContext) -> None:
        super().__init__(node, context)
        self._user_context = self.create_context()
        self._user = create_object(node)

    def create_context(self) -> ProcessorContext:
        """The context that the object's `init` gets."""
        assert isinstance(self.node, Process)
        return ProcessorContext(self, self.node.stores, self.node.connected)

    def process(self, record: Record) -> None:
        self._user.process(record)

    def link(self, children: Sequence[Link]) -> None:
        self._user_context.link(children)

    def start(self) -> None:
        if hasattr(self._user, "init"):
            with start_errors(self.node, "init"):
                self._user.init(self._user_context)

    def close(self) -> None:
        if hasattr(self._user, "close"):
            self._user.close()


class FixedKeyProcessor(UserProcessor):
    """A user's object that may change values only."""

    def __init__(self, node: Process, context: TaskContext) -> None:
        super().__init__(node, context)
        self._at_hand: Record | None = None

    def process(self, record: Record) -> None:
        self._at_hand = record
        try:
            self._user.process(record)
        finally:
            self._at_hand = None

    def link(self, children: Sequence[Link]) -> None:
        super().link([Link(child.node, self._check_key(child.take), None, child.processor) for child in children])

    def _check_key(self, take: Forward) -> Forward:
        def check_record(record: Record) -> None:
            # In a punctuation there is no record whose key must be kept: a processor may forward what it stored.
            if self._at_hand is not None and record.key != self._at_hand.key:
                raise KeyChangedError(
                    f"{self.node.name} may change values only, but forwarded key {record.key!r}"
                    f" for {self._at_hand.key!r}; add it with process instead of process_values to change keys"
                )
            take(record)

        return check_record


def user_processor(node: Process, context: TaskContext) -> Processor:
    """The processor of a user's object."""
    return FixedKeyProcessor(node, context) if node.keeps_key else UserProcessor(node, context)


class ContextualProcessor(Generic[K, V]):
    """A base class that keeps its context; `close` does nothing.

        class Doubling(ContextualProcessor[str, int]):
            def process(self, record: Record[str, int]) -> None:
                self.context.forward(record.with_value(record.value * 2))

        amounts.process_values(Doubling)

    A subclass that overrides `init` calls `super().init(context)` first.
    """

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Called once before the first record; get stores and create schedules here."""
        self.context = context

    def process(self, record: Record[K, V]) -> None:
        """Called for each record; results are passed to `self.context.forward`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method process(self, record)")

    def close(self) -> None:
        """Called once when the task closes."""
