"""The state of the status topic: how connectors and tasks do, and their topics. Pure. Start at `StatusState`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.connect.worker.config_state import TaskId

__all__ = ["Status", "StatusState", "connector_key", "task_key", "topic_key"]

CONNECTOR, TASK, TOPIC = "status-connector-", "status-task-", "status-topic-"


@dataclass(frozen=True, slots=True)
class Status:
    """What a worker has said of a connector or a task."""

    state: str
    worker_id: str
    generation: int = 0
    trace: str | None = None

    def document(self) -> dict[str, Any]:
        """As the topic holds it."""
        return {
            "state": self.state,
            "trace": self.trace,
            "worker_id": self.worker_id,
            "generation": self.generation,
        }

    def shown(self) -> dict[str, Any]:
        """As the REST API shows it."""
        found = {"state": self.state, "worker_id": self.worker_id}
        if self.state == "FAILED" and self.trace is not None:
            found["trace"] = self.trace
        return found

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Status:
        return cls(document["state"], document["worker_id"], document.get("generation") or 0, document.get("trace"))


def connector_key(name: str) -> str:
    return f"{CONNECTOR}{name}"


def task_key(task: TaskId) -> str:
    return f"{TASK}{task}"


def topic_key(topic: str, connector: str) -> str:
    return f"{TOPIC}{topic}:connector-{connector}"


@dataclass
class StatusState:
    connectors: dict[str, Status] = field(default_factory=dict)
    tasks: dict[TaskId, Status] = field(default_factory=dict)
    topics: dict[str, set[str]] = field(default_factory=dict)

    def apply(self, key: str, value: Any) -> None:
        """Apply a record; `value` is its JSON, None for a tombstone."""
        if key.startswith(CONNECTOR):
            _set(self.connectors, key.removeprefix(CONNECTOR), value)
        elif key.startswith(TASK):
            name, _, number = key.removeprefix(TASK).rpartition("-")
            _set(self.tasks, TaskId(name, int(number)), value)
        elif key.startswith(TOPIC):
            topic, _, name = key.removeprefix(TOPIC).partition(":connector-")
            if value is None:
                self.topics.get(name, set()).discard(topic)
            else:
                self.topics.setdefault(name, set()).add(topic)

    def tasks_of(self, name: str) -> dict[TaskId, Status]:
        """The statuses of a connector's tasks, by number."""
        return dict(sorted((task, status) for task, status in self.tasks.items() if task.connector == name))


def _set(table: dict[Any, Status], key: Any, value: Any) -> None:
    if value is None or value["state"] == "DESTROYED":
        table.pop(key, None)
    else:
        table[key] = Status.of(value)
