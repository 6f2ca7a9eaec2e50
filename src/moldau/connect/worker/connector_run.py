"""A connector on the worker that it is assigned to: it says which tasks there should be. Start at `ConnectorRun`.

Methods block and run in threads; one at a time for a connector.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.connect.api.connector import Connector
from moldau.connect.api.contexts import ConnectorContext
from moldau.connect.api.errors import ConnectError
from moldau.connect.api.limits import Limits
from moldau.connect.api.plugins import Plugins
from moldau.connect.runtime.offset_stores import encode_key
from moldau.connect.runtime.secrets import Secrets

__all__ = ["ConnectorRun"]


ReadOffsets = Callable[[str], "list[tuple[dict[str, Any], Mapping[str, Any]]]"]
"""Blocks: a connector's source partitions and their offsets."""


class _Offsets:
    """An `OffsetReader` that reads what is stored when it is asked."""

    def __init__(self, name: str, read: ReadOffsets) -> None:
        self._name = name
        self._read = read

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        found = {encode_key(self._name, partition): offset for partition, offset in self._read(self._name)}
        return [found.get(encode_key(self._name, partition)) for partition in partitions]


class _Context(ConnectorContext):
    def __init__(self, limits: Limits, on_change: Callable[[], None], on_error: Callable[[str], None]) -> None:
        super().__init__(limits)
        self._on_change = on_change
        self._on_error = on_error

    def request_task_reconfiguration(self) -> None:
        self._on_change()

    def raise_error(self, error: Exception) -> None:
        self._on_error("".join(traceback.format_exception(error)).rstrip())


class ConnectorRun:
    def __init__(
        self,
        name: str,
        config: Mapping[str, str],
        epoch: int,
        *,
        plugins: Plugins,
        worker: Mapping[str, str],
        limits: Limits,
        offsets: ReadOffsets,
        on_change: Callable[[], None],
    ) -> None:
        """`config` is as it was written; `on_change` is called, in any thread, when there is something to look at."""
        self.name = name
        self.config = config
        self.epoch = epoch
        self.trace: str | None = None
        """Why it failed; None while it works."""
        self.wants_tasks = True
        """Whether its tasks have to be asked and written again."""
        self._plugins = plugins
        self._secrets = Secrets(worker)
        self._limits = limits
        self._offsets = _Offsets(name, offsets)
        self._on_change = on_change
        self._connector: Connector | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the connector; what it raises is kept in `trace`."""
        with self._lock:
            try:
                resolved = self._secrets.resolve(self.config)
                connector = self._plugins.connector(resolved.get("connector.class", ""))
                connector.context = _Context(self._limits, self._note_change, self._note_error)
                connector.context.offset_reader = self._offsets
                connector.start(resolved)
                self._connector = connector
            except Exception as error:
                self._note_error("".join(traceback.format_exception(error)).rstrip())

    def task_configs(self) -> list[dict[str, str]] | None:
        """The configurations of its tasks, with references to secrets; None if it has failed."""
        with self._lock:
            connector = self._connector
            if connector is None or self.trace is not None:
                return None
            try:
                most = int(self.config.get("tasks.max") or 1)
                found = connector.task_configs(most)
                self._check_count(len(found), most)
                return self._secrets.unresolve(self.config, found)
            except Exception as error:
                self._note_error("".join(traceback.format_exception(error)).rstrip())
                return None

    def _check_count(self, count: int, most: int) -> None:
        if count > most and self.config.get("tasks.max.enforce", "true").lower() != "false":
            raise ConnectError(
                f"The connector {self.name} has made {count} tasks, more than tasks.max ({most}); raise tasks.max, or "
                "set tasks.max.enforce to false"
            )

    def stop(self) -> None:
        with self._lock:
            connector, self._connector = self._connector, None
            if connector is None:
                return
            connector.context.stop_requested.set()
            try:
                connector.stop()
            except Exception as error:
                self._note_error("".join(traceback.format_exception(error)).rstrip())

    def _note_change(self) -> None:
        self.wants_tasks = True
        self._on_change()

    def _note_error(self, trace: str) -> None:
        self.trace = self._secrets.hide(trace)
        self._on_change()
