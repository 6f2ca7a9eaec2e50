"""The base of all nodes that give tables: how they forward changes of rows.

A change is forwarded at once, or with caching only the last one of each key when the task commits. Old values are sent
only where something downstream needs them (`ir.old_values`). Start at `TableProcessor.emit`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processor import Forward, Link, Processor, to_each
from moldau.pipeline.cores.records import Change, Record, Windowed
from moldau.pipeline.ir.nodes import Materialization, Node
from moldau.serdes.serde import SerdeError

__all__ = ["Emit", "TableProcessor"]

_new = tuple.__new__

Emit = Callable[[Hashable, Record, Any], None]
"""(identity, record with the new value, old value): identity is the cache key of the change.

The deletion of a row from a cached table has the timestamp of the record that deleted it, instead of the largest
timestamp of all records aggregated into the row.
"""


class TableProcessor(Processor):
    """A node whose output is changes; `table` is None where it keeps no store and so cannot cache."""

    def __init__(
        self,
        node: Node,
        context: TaskContext,
        table: Materialization | None,
        shared: TableProcessor | None = None,
    ) -> None:
        """`shared` is another processor of the same node, whose store and cache this one shares."""
        super().__init__(node, context)
        self.sends_old_values = context.traits(node).sends_old_values
        self.is_caching = table is not None and table.is_caching and context.settings.is_caching
        self.emit: Emit = self._emit_change
        self.take_new_value: Forward | None = None
        """Forwards records with new values, for children that need no changes; saves creating a `Change`."""
        self._held: dict[Hashable, tuple[Record, Any, tuple[Any, ...] | None]] = {}
        """What caching holds back: the last record per key, the old value of the first, and the input row."""
        self._shared = shared
        if self.is_caching and shared is None:
            context.at_commit.append(self._release)

    def link(self, children: Sequence[Link]) -> None:
        super().link(children)
        if self._shared is not None:
            self.emit = self._shared.emit
            self.take_new_value = self._shared.take_new_value
            return
        if self.is_caching:
            self.emit = self._hold
            return
        takers = [child.take_value for child in children if child.take_value is not None]
        if children and len(takers) == len(children):
            # A stream of the new values does not need a `Change`.
            self.take_new_value = to_each(takers)
            self.emit = self._emit_value

    def problem_with(self, record: Record) -> str | None:
        """A key that the table's serde cannot serialize."""
        table: Materialization | None = getattr(self.node, "table", None)
        if table is None:
            return None
        key = record.key.key if isinstance(record.key, Windowed) else record.key
        try:
            self.context.codec(table).explain_key(key)
        except SerdeError as error:
            return f"cannot store the key: {error}"
        return None

    def _emit_change(self, identity: Hashable, record: Record, old: Any) -> None:
        key, new, timestamp, headers = record
        change = _new(Change, (new, old if self.sends_old_values else None))
        self.forward(_new(Record, (key, change, timestamp, headers)))

    def _emit_value(self, identity: Hashable, record: Record, old: Any) -> None:
        if self.take_new_value is not None:
            self.take_new_value(record)

    def _hold(self, identity: Hashable, record: Record, old: Any) -> None:
        held = self._held
        before = held.pop(identity, None)
        held[identity] = (record, old if before is None else before[1], self.context.current)

    def _release(self) -> None:
        """Forward what was held back, each change with the input row that caused it as the current one."""
        held, self._held = self._held, {}
        context = self.context
        at_hand = context.current
        for identity, (record, old, context.current) in held.items():
            if record.value is not None or old is not None:
                self._emit_change(identity, record, old)
        context.current = at_hand
