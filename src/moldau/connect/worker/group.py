"""The group of workers: what members tell of themselves, and the assignment they get from their leader.

The leader is the member that the broker asks for the assignment. Start at `WorkerProtocol`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from moldau.connect.worker.assignment import Assignment, Assignor
from moldau.connect.worker.config_state import TaskId

__all__ = ["Member", "Placement", "WorkerProtocol"]


class Member(NamedTuple):
    """A worker."""

    worker_id: str
    url: str
    held: Assignment

    def encode(self) -> bytes:
        return json.dumps({"workerId": self.worker_id, "url": self.url, "held": self.held.document()}).encode()

    @classmethod
    def decode(cls, content: bytes) -> Member:
        document = json.loads(content)
        return cls(document["workerId"], document["url"], Assignment.of(document["held"]))


class Placement(NamedTuple):
    """A worker's part of an assignment."""

    leader_url: str
    assignment: Assignment
    workers: tuple[str, ...]
    """The ids of all workers."""

    def encode(self) -> bytes:
        document = {"leader": self.leader_url, "workers": list(self.workers), **self.assignment.document()}
        return json.dumps(document).encode()

    @classmethod
    def decode(cls, content: bytes) -> Placement:
        document = json.loads(content)
        return cls(document["leader"], Assignment.of(document), tuple(document["workers"]))


class WorkerProtocol:
    """Called in the membership's thread."""

    protocol_type = "connect"
    name = "moldau"

    def __init__(
        self,
        own: Callable[[], Member],
        wanted: Callable[[], tuple[set[str], set[TaskId]]],
        assignor: Assignor,
    ) -> None:
        """`own` tells of this worker, `wanted` is what all workers together should run."""
        self._own = own
        self._wanted = wanted
        self._assignor = assignor

    def metadata(self) -> bytes:
        return self._own().encode()

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        workers = {member_id: Member.decode(content) for member_id, content in members.items()}
        connectors, tasks = self._wanted()
        held = {member.worker_id: member.held for member in workers.values()}
        found = self._assignor.assign(held, connectors, tasks)
        ids = tuple(sorted(held))
        url = self._own().url
        return {
            member_id: Placement(url, found[member.worker_id], ids).encode() for member_id, member in workers.items()
        }
