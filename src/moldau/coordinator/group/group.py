"""The interface that groups of every protocol implement.

Committed offsets are stored separately, in `coordinator.group.offsets`: they outlive members and protocols. Start at
`Group`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.coordinator.runtime.outcome import CoordinatorRecord
from moldau.core.errors import ErrorCode

__all__ = ["Group", "RefusedError"]


class Group(ABC):
    kind: ClassVar[str]
    """As ListGroups returns it: `classic` or `consumer`."""

    members: Mapping[str, Any]
    """By member id."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    @property
    @abstractmethod
    def state_name(self) -> str: ...

    @property
    @abstractmethod
    def protocol_type_name(self) -> str:
        """As ListGroups returns it; empty for a group that only stores offsets."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it has no members."""

    @abstractmethod
    def check_commit(
        self, member_id: str, group_instance_id: str | None, epoch: int, *, is_transactional: bool, api_version: int
    ) -> None:
        """Raise `RefusedError` unless this member may commit offsets now; `epoch` is its generation or member epoch."""

    @abstractmethod
    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise `RefusedError` unless a client with this member id and epoch may fetch offsets."""

    @abstractmethod
    def check_offset_delete(self) -> None:
        """Raise `RefusedError` unless single offsets may be deleted."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool: ...

    @abstractmethod
    def idle_since_ms(self, topic: str, committed_ms: int) -> int | None:
        """Since when an offset of `topic` has been unused, `None` while it is in use."""

    @abstractmethod
    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete this group, except for its offsets."""


class RefusedError(Exception):
    """A request is rejected; raised inside the core and converted to a reply at its boundary."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message
