"""The state of the config topic: connectors, their tasks, and in which state they should be. Pure.

Task configurations count when the `commit-` record behind them says so, all at once. Nothing else than `apply` changes
the state, so a worker that replays the topic knows what all others know. Start at `ConfigState`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

__all__ = ["Change", "ConfigState", "RestartRequest", "Target", "TaskId"]

CONNECTOR, TASK, COMMIT, TARGET = "connector-", "task-", "commit-", "target-state-"
RESTART, FENCING, LOGGER = "restart-connector-", "tasks-fencing-", "logger-cluster-"


class Target(Enum):
    """The state a connector should be in."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class TaskId(NamedTuple):
    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"


class RestartRequest(NamedTuple):
    connector: str
    includes_tasks: bool
    only_failed: bool
    task: int | None = None
    """Only this task, and not the connector."""


class Change(NamedTuple):
    """What a record has changed: the kind is the prefix of its key."""

    kind: str
    name: str
    value: Any = None


@dataclass
class ConfigState:
    configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """By the connectors' names, as they were given: with references to secrets, not the secrets."""
    targets: dict[str, Target] = field(default_factory=dict)
    tasks: dict[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    task_counts: dict[str, int] = field(default_factory=dict)
    """How many tasks a connector has had when it last ran: so many producers may have to be fenced."""
    loggers: dict[str, str] = field(default_factory=dict)
    applied: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """The connectors' configurations that their tasks belong to: those when the tasks were committed."""
    _pending: dict[str, dict[int, Mapping[str, str]]] = field(default_factory=dict)

    def target(self, name: str) -> Target:
        """The state a connector should be in."""
        return self.targets.get(name, Target.STARTED)

    def task_ids(self) -> set[TaskId]:
        """The tasks of all connectors that are not stopped."""
        return {
            TaskId(name, number)
            for name, tasks in self.tasks.items()
            if name in self.configs and self.target(name) is not Target.STOPPED
            for number in range(len(tasks))
        }

    def apply(self, key: str, value: Any) -> Change | None:
        """Apply a record; `value` is its JSON, None for a tombstone. Returns what has changed."""
        for prefix, apply in (
            (CONNECTOR, self._apply_connector),
            (TARGET, self._apply_target),
            (COMMIT, self._apply_commit),
            (FENCING, self._apply_fencing),
            (TASK, self._apply_task),
            (RESTART, self._apply_restart),
            (LOGGER, self._apply_logger),
        ):
            if key.startswith(prefix):
                return apply(key.removeprefix(prefix), value)
        return None

    def _apply_connector(self, name: str, value: Any) -> Change:
        if value is None:
            for table in (self.configs, self.targets, self.tasks, self.task_counts, self.applied, self._pending):
                table.pop(name, None)
        else:
            self.configs[name] = value["properties"]
            self.targets.setdefault(name, Target.STARTED)
        return Change(CONNECTOR, name, value)

    def _apply_target(self, name: str, value: Any) -> Change | None:
        if value is None:
            self.targets.pop(name, None)
            return None
        self.targets[name] = Target(value.get("state.v2") or value["state"])
        return Change(TARGET, name, self.targets[name])

    def _apply_task(self, rest: str, value: Any) -> Change | None:
        name, _, number = rest.rpartition("-")
        if value is not None:
            self._pending.setdefault(name, {})[int(number)] = value["properties"]
        return None

    def _apply_commit(self, name: str, value: Any) -> Change | None:
        pending = self._pending.pop(name, {})
        if value is None:
            return None
        count = int(value["tasks"])
        current = self.tasks.get(name, ())
        merged = {**dict(enumerate(current)), **pending}
        if any(number not in merged for number in range(count)):
            return None  # compaction has removed a part of it; the connector gives its tasks anew
        self.tasks[name] = tuple(merged[number] for number in range(count))
        self.applied[name] = self.configs.get(name, {})
        return Change(COMMIT, name, count)

    def _apply_fencing(self, name: str, value: Any) -> Change | None:
        if value is not None:
            self.task_counts[name] = int(value["task-count"])
        return None

    def _apply_restart(self, name: str, value: Any) -> Change | None:
        if value is None:
            return None
        request = RestartRequest(
            name, bool(value.get("include-tasks")), bool(value.get("only-failed")), value.get("task")
        )
        return Change(RESTART, name, request)

    def _apply_logger(self, name: str, value: Any) -> Change | None:
        if value is None:
            return None
        self.loggers[name] = value["level"]
        return Change(LOGGER, name, value["level"])
