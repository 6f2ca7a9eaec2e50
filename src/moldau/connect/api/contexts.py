"""What the worker offers to connectors and tasks while they run. Start at `SourceTaskContext`."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from moldau.connect.api.limits import OPEN, Limits
from moldau.connect.api.records import SinkRecord
from moldau.core.ids import TopicPartition

__all__ = [
    "ConnectorContext",
    "ErrantRecordReporter",
    "OffsetReader",
    "SinkTaskContext",
    "SourceTaskContext",
    "TransactionContext",
]

Partition = Mapping[str, Any]
Offset = Mapping[str, Any]


class OffsetReader(Protocol):
    """Reads the source offsets that were stored last."""

    def offset(self, partition: Partition) -> Offset | None:
        """The offset of a source partition, None if there is none."""
        ...

    def offsets(self, partitions: Iterable[Partition]) -> list[Offset | None]:
        """The offsets of several source partitions, in their order; cheaper than one by one."""
        ...


class TransactionContext(Protocol):
    """For sources that define transaction boundaries themselves (`transaction.boundary=connector`)."""

    def commit_transaction(self, after: Any = None) -> None:
        """Commit after the current batch, or after the given record of it."""
        ...

    def abort_transaction(self, after: Any = None) -> None:
        """Drop the current batch, or what comes up to and with the given record of it."""
        ...


class ErrantRecordReporter(Protocol):
    """Where a sink reports a record that it cannot store."""

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        """Log the record and write it to the dead-letter topic; done when it is there."""
        ...


class _Stoppable:
    """The part of a context that knows whether to stop."""

    def __init__(self, limits: Limits = OPEN) -> None:
        self.limits = limits
        """What the worker allows connectors to touch."""

        self.stop_requested = threading.Event()

    def wait(self, seconds: float) -> bool:
        """Wait, at most until the worker wants to stop; whether it does. Use it in place of `time.sleep`."""
        return self.stop_requested.wait(seconds)


class ConnectorContext(_Stoppable, ABC):
    """Given to a connector before `start`."""

    offset_reader: OffsetReader | None = None
    """For source connectors."""

    @abstractmethod
    def request_task_reconfiguration(self) -> None:
        """Say that `task_configs` would now answer differently: the tasks are made anew."""

    @abstractmethod
    def raise_error(self, error: Exception) -> None:
        """Let the connector fail from a thread of its own."""


class SourceTaskContext(_Stoppable, ABC):
    """Given to a source task before `start`."""

    transaction: TransactionContext | None = None
    """Only with exactly once and `transaction.boundary=connector`."""

    @property
    @abstractmethod
    def configs(self) -> Mapping[str, str]:
        """The task's configuration, as given to `start`."""

    @property
    @abstractmethod
    def offset_reader(self) -> OffsetReader:
        """Reads the offsets of this connector."""


class SinkTaskContext(_Stoppable, ABC):
    """Given to a sink task before `start`."""

    @property
    @abstractmethod
    def configs(self) -> Mapping[str, str]:
        """The task's configuration, as given to `start`."""

    @property
    @abstractmethod
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this task reads."""

    @abstractmethod
    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from these offsets; what was delivered beyond them comes again. Kafka calls it `offset`."""

    @abstractmethod
    def set_timeout(self, timeout_ms: int) -> None:
        """The wait before the next attempt, for a `put` that ends with `RetriableError`."""

    @abstractmethod
    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver no more records of these partitions until `resume`."""

    @abstractmethod
    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver records of these partitions again."""

    @abstractmethod
    def request_commit(self) -> None:
        """Ask for an offset commit soon, outside of the worker's interval."""

    @property
    @abstractmethod
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """None unless errors are tolerated or have a dead-letter topic."""
