"""A processor to inherit from, for whoever likes base classes: any object with `process` is a processor too."""

from __future__ import annotations

from typing import Generic

from moldau.pipeline.cores.processors import ProcessorContext
from moldau.pipeline.cores.records import Record
from moldau.pipeline.ir.type_variables import K, V

__all__ = ["ContextualProcessor"]


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
