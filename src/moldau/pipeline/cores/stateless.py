"""Stateless operators on streams: filters, maps, branches, merges.

`STATELESS_BUILDERS` is their part of the table in `builders`. As in Kafka Streams, keys and values are passed to user
functions also where they are null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.pipeline.cores.calls import callable_of, no_pair, not_several
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processor import Builder, Forward, Link, Processor, to_each
from moldau.pipeline.cores.records import Record
from moldau.pipeline.ir import nodes as ir

__all__ = ["STATELESS_BUILDERS", "PassThrough"]

_new = tuple.__new__


class PassThrough(Processor):
    """A node that does nothing: upstream nodes call its children directly."""

    @property
    def take(self) -> Forward:
        return self.forward

    def process(self, record: Record) -> None:
        self.forward(record)


class FilterProcessor(Processor):
    """Forwards the records that match a predicate."""

    def __init__(self, node: ir.Filter, context: TaskContext) -> None:
        super().__init__(node, context)
        self._holds = callable_of(node.predicate, "key", "value", log=context.processing_log)
        self._wanted = not node.is_negated

    def process(self, record: Record) -> None:
        if bool(self._holds(record[0], record[1])) is self._wanted:
            self.forward(record)


class MapProcessor(Processor):
    """Replaces key and value."""

    def __init__(self, node: ir.Map, context: TaskContext) -> None:
        super().__init__(node, context)
        self._mapper = callable_of(node.mapper, "key", "value", log=context.processing_log)

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        made = self._mapper(key, value)
        try:
            key, value = made
        except (TypeError, ValueError):
            raise no_pair(made) from None
        self.forward(_new(Record, (key, value, timestamp, headers)))


class MapValuesProcessor(Processor):
    """Replaces the value."""

    def __init__(self, node: ir.MapValues, context: TaskContext) -> None:
        super().__init__(node, context)
        self._mapper = callable_of(
            node.mapper, *(("key", "value") if node.has_key else ("value",)), log=context.processing_log
        )
        if node.has_key:
            self.process = self._process_with_key  # type: ignore[method-assign]

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        self.forward(_new(Record, (key, self._mapper(value), timestamp, headers)))

    def _process_with_key(self, record: Record) -> None:
        key, value, timestamp, headers = record
        self.forward(_new(Record, (key, self._mapper(key, value), timestamp, headers)))


class FlatMapProcessor(Processor):
    """Replaces a record by any number of records."""

    def __init__(self, node: ir.FlatMap, context: TaskContext) -> None:
        super().__init__(node, context)
        self._mapper = callable_of(node.mapper, "key", "value", log=context.processing_log)

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        made = self._mapper(key, value)
        try:
            pairs = iter(made)
        except TypeError:
            raise not_several(made) from None
        for pair in pairs:
            try:
                new_key, new_value = pair
            except (TypeError, ValueError):
                raise no_pair(pair) from None
            self.forward(_new(Record, (new_key, new_value, timestamp, headers)))


class FlatMapValuesProcessor(Processor):
    """Replaces a record by one for each of any number of values."""

    def __init__(self, node: ir.FlatMapValues, context: TaskContext) -> None:
        super().__init__(node, context)
        self._mapper = callable_of(
            node.mapper, *(("key", "value") if node.has_key else ("value",)), log=context.processing_log
        )
        self._has_key = node.has_key

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        forward = self.forward
        made = self._mapper(key, value) if self._has_key else self._mapper(value)
        try:
            new_values = iter(made)
        except TypeError:
            raise not_several(made) from None
        for new_value in new_values:
            forward(_new(Record, (key, new_value, timestamp, headers)))


class SelectKeyProcessor(Processor):
    """Replaces the key."""

    def __init__(self, node: ir.SelectKey, context: TaskContext) -> None:
        super().__init__(node, context)
        self._selector = callable_of(node.selector, "key", "value", log=context.processing_log)

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        self.forward(_new(Record, (self._selector(key, value), value, timestamp, headers)))


class PeekProcessor(Processor):
    """Calls the user's action with a record, and forwards the record if there are children."""

    def __init__(self, node: ir.Peek | ir.ForEach, context: TaskContext) -> None:
        super().__init__(node, context)
        self._action = node.action.call

    def process(self, record: Record) -> None:
        self._action(record[0], record[1])
        self.forward(record)


class SplitProcessor(Processor):
    """Forwards a record to the first branch whose predicate holds."""

    def __init__(self, node: ir.Split, context: TaskContext) -> None:
        super().__init__(node, context)
        self._predicates = [
            callable_of(predicate, "key", "value", log=context.processing_log) for predicate in node.predicates
        ]
        self._branches: list[Forward] = []

    def link(self, children: Sequence[Link]) -> None:
        def of_branch(index: int) -> Forward:
            return to_each([child.take for child in children if getattr(child.node, "index", None) == index])

        self._branches = [of_branch(index) for index in range(len(self._predicates) + 1)]

    def process(self, record: Record) -> None:
        key, value = record[0], record[1]
        for holds, branch in zip(self._predicates, self._branches, strict=False):
            if holds(key, value):
                branch(record)
                return
        self._branches[-1](record)


def _pass_through(node: Any, context: TaskContext) -> Processor:
    return PassThrough(node, context)


STATELESS_BUILDERS: dict[type[ir.Node], Builder] = {
    ir.StreamSource: _pass_through,
    ir.Filter: FilterProcessor,
    ir.Map: MapProcessor,
    ir.MapValues: MapValuesProcessor,
    ir.FlatMap: FlatMapProcessor,
    ir.FlatMapValues: FlatMapValuesProcessor,
    ir.SelectKey: SelectKeyProcessor,
    ir.Peek: PeekProcessor,
    ir.ForEach: PeekProcessor,
    ir.Merge: _pass_through,
    ir.Split: SplitProcessor,
    ir.BranchOutput: _pass_through,
}
