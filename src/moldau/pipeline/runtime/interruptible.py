"""A transactional producer that can be told to give up.

Whether a commit has happened can only be learned by asking again, so the client asks for as long as it takes. An
application that must end while no broker answers cannot wait for that; its successor finds out.
Start at `InterruptibleProducer.interrupt`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.pipeline.runtime.errors import StreamsError

if TYPE_CHECKING:
    from confluent_kafka import Producer

__all__ = ["InterruptedDeliveryError", "InterruptibleProducer"]


class InterruptedDeliveryError(StreamsError):
    """The application was ended in the middle of writing a batch, which is decided by the next start."""


class InterruptibleProducer:
    """What a producer offers to transactions, each call refused once `interrupt` was called."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._is_interrupted = False

    def interrupt(self) -> None:
        """May be called by any thread."""
        self._is_interrupted = True

    def check(self) -> None:
        """Raise `InterruptedDeliveryError` where there is no time left."""
        if self._is_interrupted:
            raise InterruptedDeliveryError("ended while a batch was being written; the next start decides about it")

    def __getattr__(self, name: str) -> Any:
        self.check()
        return _checked(getattr(self._producer, name), self)


def _checked(call: Any, producer: InterruptibleProducer) -> Any:
    def checked(*arguments: Any) -> Any:
        producer.check()
        return call(*arguments)

    return checked
