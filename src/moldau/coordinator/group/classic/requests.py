"""Requests and replies of the classic protocol, independent of versions and bytes.

Handlers translate. In place of any reply an `ErrorCode` alone means that the request failed as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.core.errors import ErrorCode

__all__ = [
    "HeartbeatRequest",
    "JoinReply",
    "JoinRequest",
    "JoinedMember",
    "LeaveReply",
    "LeavingMember",
    "MemberProtocol",
    "SyncReply",
    "SyncRequest",
]


class MemberProtocol(NamedTuple):
    """An assignment protocol that a member offers, with its metadata for the leader."""

    name: str
    metadata: bytes


class JoinRequest(NamedTuple):
    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[MemberProtocol, ...]
    requires_known_member_id: bool = True
    """New members first get an id and have to rejoin with it (KIP-394)."""
    can_skip_assignment: bool = True
    """A leader that rejoins may be told to skip the assignment: all members keep theirs (KIP-814)."""


class JoinedMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinReply(NamedTuple):
    error: ErrorCode
    member_id: str = ""
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    """All members' metadata for the leader, empty for the others."""
    skip_assignment: bool = False


class SyncRequest(NamedTuple):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class SyncReply(NamedTuple):
    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatRequest(NamedTuple):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


class LeavingMember(NamedTuple):
    member_id: str
    group_instance_id: str | None = None


class LeaveReply(NamedTuple):
    error: ErrorCode
    members: tuple[tuple[LeavingMember, ErrorCode], ...] = ()
