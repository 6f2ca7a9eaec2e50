"""What the classic protocol's requests say and what they are answered, free of versions and bytes.

Handlers translate. Wherever a reply is expected, an `ErrorCode` alone says that nothing else can be told.
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
    """A way of assigning that a member offers, with what it tells the leader under it."""

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
    """Newcomers are given an id first and have to come back with it (KIP-394)."""
    can_skip_assignment: bool = True
    """A leader that came back may be told that everybody keeps what they have (KIP-814)."""


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
    """Everybody's metadata for the leader, nothing for the others."""
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
