"""Processors that users write themselves, and what they may ask for.

A processor is an object with `process(record)` and, where it wants them, `init(context)` and `close()`. What `init` is
given is `ProcessorContext`: the way on, stores, schedules, time. One that was promised to keep keys is held to it.
Start at `UserProcessor`.
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
    "made",
    "starting",
    "user_processor",
]


class RecordMetadata(NamedTuple):
    """Where the record at hand was read."""

    topic: str
    partition: int
    offset: int


class UnknownChildError(MoldauError):
    """A processor forwarded to a node that does not follow it."""


class NoRecordError(MoldauError):
    """A processor forwarded something else than a record."""


class KeyChangedError(MoldauError):
    """A processor that may change values only forwarded another key."""


class ProcessorContext:
    """What a user's processor may ask its task for."""

    def __init__(self, owner: Processor, stores: Sequence[StateStore], connected: Sequence[str]) -> None:
        self._owner = owner
        self._task = owner.context
        self._stores = {*connected, *(store.table.store for store in stores)}
        for store in stores:
            open_store(store, owner.context)
        self._forward: Forward = to_each(())
        self._children: dict[str, Forward] = {}

    def forward(self, record: Record, child: str | None = None) -> None:
        """Send a record to every node that follows, or to the one of this name; returns when they are done with it."""
        if not isinstance(record, Record):
            raise NoRecordError(
                f"{self._owner.node.name} forwards {record!r} ({type(record).__name__}); make it a record:"
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
        """A store that was added to this processor, or one of a global table or `add_global_store`, to read."""
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
        calls come at that time and whole intervals away from it. A schedule made in `init` goes on where it was after a
        restart; one made later ends with the task.
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
        """Where the record at hand was read; None in a punctuation."""
        place = self._task.place
        return None if place is None else RecordMetadata(*place)

    def current_stream_time_ms(self) -> int:
        """The largest timestamp this task has seen, -1 before the first record."""
        return self._task.stream_time

    def current_system_time_ms(self) -> int:
        """The time of day, as the task was last told it."""
        return self._task.punctuations.wall_clock_ms or 0

    def commit(self) -> None:
        """Nothing: the engine commits at the end of every batch, and soon."""

    @property
    def application_id(self) -> str:
        """The `application.id` of the application this runs in."""
        return self._task.settings.application_id

    @property
    def partition(self) -> int:
        """The partition this task works on."""
        return self._task.partition

    def link(self, children: Sequence[Link]) -> None:
        """Learn who follows; a node made of several parts answers to the name of each."""
        self._forward = to_each([child.take for child in children])
        for child in children:
            self._children |= dict.fromkeys((child.node.name, *child.node.parts), child.take)


def call_back(self: Processor, callback: Callable[[int], None], now: int) -> None:
    """Call a schedule's callback on behalf of a processor."""
    # The first parameter is called as a method's, because failures belong to the innermost `self` that is a processor.
    try:
        callback(now)
    except Exception as error:
        if self.context.settings.processing_handler is log_and_fail:
            raise
        handle(error, self)


@contextmanager
def starting(node: Node, step: str) -> Iterator[None]:
    """Tell a failure of a user's object before any record with the object's own line."""
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


def made(node: Process | GlobalStoreSource | TableTransformValues) -> Any:
    """An object of the user's, as its supplier makes it."""
    with starting(node, "making it"):
        return node.supplier.call()


class UserProcessor(Processor):
    """A node whose work is a user's object."""

    node: Process | GlobalStoreSource

    def __init__(self, node: Process | GlobalStoreSource, context: TaskContext) -> None:
        super().__init__(node, context)
        self._offered = self.offered()
        self._user = made(node)

    def offered(self) -> ProcessorContext:
        """What the object is given to ask for things."""
        assert isinstance(self.node, Process)
        return ProcessorContext(self, self.node.stores, self.node.connected)

    def process(self, record: Record) -> None:
        self._user.process(record)

    def link(self, children: Sequence[Link]) -> None:
        self._offered.link(children)

    def start(self) -> None:
        if hasattr(self._user, "init"):
            with starting(self.node, "init"):
                self._user.init(self._offered)

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
        super().link([Link(child.node, self._checked(child.take)) for child in children])

    def _checked(self, take: Forward) -> Forward:
        def checked(record: Record) -> None:
            # In a punctuation there is no record whose key could be kept: a processor may send on what it stored.
            if self._at_hand is not None and record.key != self._at_hand.key:
                raise KeyChangedError(
                    f"{self.node.name} may change values only, and forwarded key {record.key!r}"
                    f" for {self._at_hand.key!r}; add it with process instead of process_values to change keys"
                )
            take(record)

        return checked


def user_processor(node: Process, context: TaskContext) -> Processor:
    """The processor of a user's object."""
    return FixedKeyProcessor(node, context) if node.keeps_key else UserProcessor(node, context)


class ContextualProcessor(Generic[K, V]):
    """Has its context from `init` on, and nothing to close.

        class Doubling(ContextualProcessor[str, int]):
            def process(self, record: Record[str, int]) -> None:
                self.context.forward(record.with_value(record.value * 2))

        amounts.process_values(Doubling)

    One that has more to begin with overrides `init`, and calls `super().init(context)` first.
    """

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Called once before the first record; the place to ask for stores and schedules."""
        self.context = context

    def process(self, record: Record[K, V]) -> None:
        """Called for each record; what is to go on is given to `self.context.forward`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method process(self, record)")

    def close(self) -> None:
        """Called once when the processor is not needed any more."""
