"""The classes that a connector is made of.

A connector is one class for the configuration and one for the work: the connector splits its configuration into those
of at most `tasks.max` tasks; a task moves data. Methods of one object are never called at the same time, except
`stop`, which may come from another thread while `poll` runs.
`context` is set before `start`. Start at `SourceConnector` and `SourceTask`, or `SinkConnector` and `SinkTask`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar

import moldau
from moldau.connect.api.config_def import ConfigDef, ConfigValue
from moldau.connect.api.contexts import ConnectorContext, SinkTaskContext, SourceTaskContext
from moldau.connect.api.records import SinkRecord, SourceRecord
from moldau.core.ids import TopicPartition

__all__ = [
    "Connector",
    "ExactlyOnceSupport",
    "SinkConnector",
    "SinkTask",
    "SourceConnector",
    "SourceTask",
]


class ExactlyOnceSupport(Enum):
    """Whether a source delivers exactly once when its worker does."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class Connector(ABC):
    """The configuration's side of a connector."""

    plugin_name: ClassVar[str] = ""
    """The name under which plug-in lists show it; by default `<module>.<class>`."""

    version: ClassVar[str] = moldau.__version__
    config_def: ClassVar[ConfigDef] = ConfigDef()
    """The settings it understands."""

    context: ConnectorContext

    def validate(self, settings: Mapping[str, str]) -> list[ConfigValue]:
        """Check a configuration; override it, and call it, for rules between several keys. Does not connect."""
        return self.config_def.validate(settings)

    def start(self, settings: Mapping[str, str]) -> None:
        """Begin; keep the settings for `task_configs`."""
        self.settings: Mapping[str, str] = dict(settings)

    @abstractmethod
    def task_class(self) -> type[SourceTask] | type[SinkTask]:
        """The class of the tasks."""

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The configurations of the tasks, at most `max_tasks`; by default one task with the connector's own."""
        return [dict(self.settings)]

    def stop(self) -> None:
        """End what `start` began."""
        return


class SourceConnector(Connector):
    """Brings data into topics."""

    @abstractmethod
    def task_class(self) -> type[SourceTask]:
        """The class of the tasks."""

    def exactly_once_support(self, settings: Mapping[str, str]) -> ExactlyOnceSupport:
        """SUPPORTED if offsets say exactly where to go on, so that records and offsets in one transaction suffice."""
        return ExactlyOnceSupport.UNSUPPORTED

    def can_define_transaction_boundaries(self, settings: Mapping[str, str]) -> bool:
        """Whether `transaction.boundary=connector` is possible."""
        return False

    def alter_offsets(
        self, settings: Mapping[str, str], offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        """Check offsets that a user wants to set, None to remove; raises `ConnectError` for wrong ones.

        Returns whether they were checked.
        """
        return False


class SinkConnector(Connector):
    """Brings data from topics elsewhere."""

    @abstractmethod
    def task_class(self) -> type[SinkTask]:
        """The class of the tasks."""

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """By default `max_tasks` tasks, all with the connector's configuration; they share the partitions."""
        return [dict(self.settings) for _ in range(max_tasks)]

    def alter_offsets(self, settings: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """For sinks that keep offsets in their target: change them there, or raise `ConnectError`; True if it did."""
        return False


class SourceTask(ABC):
    """Reads from a source."""

    context: SourceTaskContext

    @abstractmethod
    def start(self, settings: Mapping[str, str]) -> None:
        """Open the source, at the offsets that `self.context.offset_reader` knows."""

    @abstractmethod
    def poll(self) -> list[SourceRecord] | None:
        """The next records; None or an empty list if there are none yet.

        May wait for some, with `self.context.wait`, but returns within about a second, so that the task can stop.
        """

    def commit(self) -> None:
        """Called when all records that `poll` returned before, and their offsets, are stored."""
        return

    def commit_record(self, record: SourceRecord, offset: int | None) -> None:
        """Called when a record is stored, with its offset in the topic; None if a transform dropped it."""
        return

    def stop(self) -> None:
        """Close the source; called when `poll` has returned."""
        return


class SinkTask(ABC):
    """Writes to a target."""

    context: SinkTaskContext

    @abstractmethod
    def start(self, settings: Mapping[str, str]) -> None:
        """Open the target."""

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take records, in order per partition; they may be kept until `flush`. Sometimes called with none."""

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store everything that was put; `offsets` are those after the last record of each partition."""
        return

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets that may be committed; override it if the task keeps records beyond a commit."""
        self.flush(offsets)
        return offsets

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions were assigned to the task; before their first record."""
        return

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions are taken from the task, after a last `pre_commit`."""
        return

    def stop(self) -> None:
        """Close the target."""
        return
