"""Contexts in memory: offsets in a dict, requests noted in lists. Start at `MemoryOffsets`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from moldau.connect.api.contexts import (
    ConnectorContext,
    OffsetReader,
    SinkTaskContext,
    SourceTaskContext,
)
from moldau.connect.api.limits import OPEN, Limits
from moldau.connect.api.records import SinkRecord
from moldau.core.ids import TopicPartition

__all__ = ["MemoryConnectorContext", "MemoryOffsets", "MemoryReporter", "MemorySinkContext", "MemorySourceContext"]


class MemoryOffsets:
    """Source offsets; what is stored goes through JSON, as it does in a worker."""

    def __init__(self) -> None:
        self._stored: dict[str, str] = {}

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        text = self._stored.get(_key(partition))
        return None if text is None else json.loads(text)

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        return [self.offset(partition) for partition in partitions]

    def store(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> None:
        """Keep an offset; None removes it."""
        if offset is None:
            self._stored.pop(_key(partition), None)
        else:
            self._stored[_key(partition)] = json.dumps(offset)

    def all(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Everything that is stored."""
        return [(json.loads(key), json.loads(value)) for key, value in self._stored.items()]


def _key(partition: Mapping[str, Any]) -> str:
    return json.dumps(partition, sort_keys=True)


class MemoryConnectorContext(ConnectorContext):
    """Notes what a connector asks for."""

    def __init__(self, offsets: MemoryOffsets, limits: Limits = OPEN) -> None:
        super().__init__(limits)
        self.offset_reader = offsets
        self.reconfigurations = 0
        self.errors: list[Exception] = []

    def request_task_reconfiguration(self) -> None:
        self.reconfigurations += 1

    def raise_error(self, error: Exception) -> None:
        self.errors.append(error)


class MemorySourceContext(SourceTaskContext):
    """Waits are cut short, so that a test never sleeps long."""

    longest_wait_seconds = 0.05

    def __init__(self, configs: Mapping[str, str], offsets: MemoryOffsets, limits: Limits = OPEN) -> None:
        super().__init__(limits)
        self._configs = configs
        self._offsets = offsets

    @property
    def configs(self) -> Mapping[str, str]:
        return self._configs

    @property
    def offset_reader(self) -> OffsetReader:
        return self._offsets

    def wait(self, seconds: float) -> bool:
        return super().wait(min(seconds, self.longest_wait_seconds))


class MemoryReporter:
    """Keeps the records that a sink reported."""

    def __init__(self) -> None:
        self.reported: list[tuple[SinkRecord, Exception]] = []

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        self.reported.append((record, error))
        done: Future[None] = Future()
        done.set_result(None)
        return done


class MemorySinkContext(SinkTaskContext):
    """Notes what a sink task asks for."""

    def __init__(
        self, configs: Mapping[str, str], limits: Limits = OPEN, reporter: MemoryReporter | None = None
    ) -> None:
        super().__init__(limits)
        self._configs = configs
        self._reporter = reporter
        self.assigned: set[TopicPartition] = set()
        self.paused: set[TopicPartition] = set()
        self.rewound: dict[TopicPartition, int] = {}
        self.timeout_ms: int | None = None
        self.commits_requested = 0

    @property
    def configs(self) -> Mapping[str, str]:
        return self._configs

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self.assigned)

    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.rewound.update(offsets)

    def set_timeout(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused.update(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused.difference_update(partitions)

    def request_commit(self) -> None:
        self.commits_requested += 1

    @property
    def errant_record_reporter(self) -> MemoryReporter | None:
        return self._reporter
