"""What replicas say to each other: requests and replies, as the core sees them.

The versions and bytes of Kafka's protocol are the shell's business, which translates both ways. A reply always
carries the leader and the epoch its sender knows, because whoever asked may be behind. Start at `LeaderHint`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.core.errors import ErrorCode
from moldau.raft.log_history import EpochEnd, SnapshotId
from moldau.raft.records import Batch
from moldau.raft.voters import Endpoint, ReplicaKey, Voter

__all__ = [
    "NOBODY",
    "UNKNOWN_OFFSET",
    "AddVoterRequest",
    "BeginEpochRequest",
    "EndEpochRequest",
    "EpochReply",
    "FetchReply",
    "FetchRequest",
    "FetchSnapshotReply",
    "FetchSnapshotRequest",
    "LeaderHint",
    "RemoveVoterRequest",
    "Reply",
    "Request",
    "UpdateVoterRequest",
    "VersionsReply",
    "VersionsRequest",
    "VoteReply",
    "VoteRequest",
    "VoterReply",
]

NOBODY: Final = -1
UNKNOWN_OFFSET: Final = -1


class LeaderHint(NamedTuple):
    """The newest epoch a replica knows, and its leader if it knows that too."""

    epoch: int
    leader_id: int = NOBODY
    endpoints: tuple[Endpoint, ...] = ()


class VoteRequest(NamedTuple):
    cluster_id: str | None
    candidate: ReplicaKey
    epoch: int
    """For a pre-vote the candidate's present epoch, else the one it wants to lead in."""
    last_epoch: int
    end_offset: int
    is_pre_vote: bool = False
    voter: ReplicaKey | None = None
    """The replica this is addressed to."""


class VoteReply(NamedTuple):
    error: ErrorCode
    leader: LeaderHint
    is_granted: bool = False


class BeginEpochRequest(NamedTuple):
    cluster_id: str | None
    leader_id: int
    epoch: int
    endpoints: tuple[Endpoint, ...] = ()
    voter: ReplicaKey | None = None


class EndEpochRequest(NamedTuple):
    cluster_id: str | None
    leader_id: int
    epoch: int
    successors: tuple[ReplicaKey, ...] = ()
    """Voters in the order in which they should stand for election."""
    endpoints: tuple[Endpoint, ...] = ()


class EpochReply(NamedTuple):
    """The reply to `BeginEpochRequest` and `EndEpochRequest`."""

    error: ErrorCode
    leader: LeaderHint


class FetchRequest(NamedTuple):
    cluster_id: str | None
    replica: ReplicaKey
    epoch: int
    """The leader epoch the replica knows; -1 if it only looks for the leader."""
    fetch_offset: int
    last_fetched_epoch: int
    max_wait_ms: int = 0
    high_watermark: int = UNKNOWN_OFFSET
    """The high watermark the replica knows: the leader answers at once if it knows a newer one."""


class FetchReply(NamedTuple):
    error: ErrorCode
    leader: LeaderHint
    high_watermark: int = UNKNOWN_OFFSET
    diverging: EpochEnd | None = None
    snapshot: SnapshotId | None = None
    """The follower must fetch this snapshot first."""
    batches: tuple[Batch, ...] = ()


class FetchSnapshotRequest(NamedTuple):
    cluster_id: str | None
    replica: ReplicaKey
    epoch: int
    snapshot: SnapshotId
    position: int
    max_bytes: int


class FetchSnapshotReply(NamedTuple):
    error: ErrorCode
    leader: LeaderHint
    snapshot: SnapshotId
    size: int = 0
    position: int = 0
    data: bytes = b""


class AddVoterRequest(NamedTuple):
    cluster_id: str | None
    voter: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    timeout_ms: int = 30_000
    ack_when_committed: bool = True


class RemoveVoterRequest(NamedTuple):
    cluster_id: str | None
    voter: ReplicaKey
    timeout_ms: int = 30_000


class UpdateVoterRequest(NamedTuple):
    cluster_id: str | None
    epoch: int
    voter: Voter


class VoterReply(NamedTuple):
    """The reply to adding, removing and updating a voter."""

    error: ErrorCode
    leader: LeaderHint
    message: str | None = None


class VersionsRequest(NamedTuple):
    """ApiVersions, as a leader asks a voter-to-be: which kraft.version does it support?"""

    voter: ReplicaKey


class VersionsReply(NamedTuple):
    error: ErrorCode
    leader: LeaderHint
    min_kraft_version: int = 0
    max_kraft_version: int = 0


Request = (
    VoteRequest
    | BeginEpochRequest
    | EndEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddVoterRequest
    | RemoveVoterRequest
    | UpdateVoterRequest
    | VersionsRequest
)
Reply = VoteReply | EpochReply | FetchReply | FetchSnapshotReply | VoterReply | VersionsReply
