"""A task as it crosses process boundaries: JSON with all that its run needs, and no secret. See `TaskDefinition`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from moldau.connect.api.limits import Limits

__all__ = ["TaskDefinition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDefinition:
    connector: str
    task: int
    group_id: str
    """The cluster of workers."""
    connector_config: Mapping[str, str]
    """As it was written: references to secrets are not resolved."""
    task_config: Mapping[str, str]
    worker: Mapping[str, str]
    """The worker's settings, as its file gives them."""
    is_standalone: bool = False
    allowed_paths: tuple[str, ...] | None = None
    allowed_hosts: tuple[str, ...] | None = None
    epoch: int = 0
    """Differs after a restart, so that the engine starts the task anew."""
    offset_partitions: int = 25
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.connector}-{self.task}"

    @property
    def limits(self) -> Limits:
        return Limits.of(self.allowed_paths, self.allowed_hosts)

    @property
    def settings(self) -> dict[str, str]:
        """The connector's settings and, before them, the task's own."""
        return {**self.connector_config, **self.task_config}

    @property
    def transactional_id(self) -> str:
        """Kafka Connect's: a task's successor has the same, and so fences it."""
        return f"{self.group_id}-{self.connector}-{self.task}"

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> TaskDefinition:
        given = dict(document)
        for name in ("allowed_paths", "allowed_hosts"):
            if given.get(name) is not None:
                given[name] = tuple(given[name])
        return cls(**given)
