"""Global stores: a user's processor fills them from a topic in every task, for all other processors to read.

Such a processor forwards nothing, has no schedules and no stream time, as in Kafka Streams. Start at
`GlobalStoreProcessor`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import StateError
from moldau.pipeline.cores.processors import ProcessorContext, UserProcessor
from moldau.pipeline.cores.stores.state_stores import open_store
from moldau.pipeline.ir.nodes import GlobalStoreSource

__all__ = ["GlobalProcessorContext", "GlobalStoreProcessor"]


class GlobalStoreProcessor(UserProcessor):
    """The user's object that updates a global store."""

    def __init__(self, node: GlobalStoreSource, context: TaskContext) -> None:
        open_store(node.store, context)
        context.global_stores.add(node.table.store)
        super().__init__(node, context)

    def create_context(self) -> ProcessorContext:
        assert isinstance(self.node, GlobalStoreSource)
        return GlobalProcessorContext(self, (), (self.node.table.store,))


class GlobalProcessorContext(ProcessorContext):
    """The context of such an object: its own store to write, and those of other global tables to read."""

    def get_state_store(self, name: str) -> Any:
        return self._task.store(name) if name in self._stores else super().get_state_store(name)

    def schedule(self, *arguments: Any, **named: Any) -> NoReturn:
        """Raises: a global store has no schedules."""
        raise StateError(f"{self._owner.node.name} fills a global store, and such a processor has no schedules")

    def current_stream_time_ms(self) -> NoReturn:
        """Raises: records of global stores do not advance stream time."""
        raise StateError(f"{self._owner.node.name} fills a global store, and there is no stream time there")
