"""The roles of a replica. Each is forgotten when the next begins; what must survive a crash is `ElectionState`.

Observers know two roles only, unattached and follower. The classes have constructors and nothing else, because a single
node imports them too, and each generated method takes time. Start at `Role`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.raft.log_history import SnapshotId
from moldau.raft.messages import NOBODY, UNKNOWN_OFFSET, FetchRequest
from moldau.raft.outreach import Outreach
from moldau.raft.voters import ReplicaKey, Voter

__all__ = [
    "Candidate",
    "Download",
    "Follower",
    "Leader",
    "ParkedFetch",
    "PendingChange",
    "Progress",
    "Prospective",
    "Resigned",
    "Role",
    "Unattached",
]


@dataclass(eq=False, repr=False, match_args=False)
class Unattached:
    """Knows no leader that it could reach: looks for one, and stands for election when nothing is heard."""

    deadline_ms: int
    outreach: Outreach
    attempt: int = 0
    """How many times it has looked for a leader; each time it asks another."""


@dataclass(eq=False, repr=False, match_args=False)
class Prospective:
    """Asks whether it would be elected, without raising the epoch: a replica that is cut off disturbs nobody."""

    deadline_ms: int
    outreach: Outreach
    leader_id: int = NOBODY
    """The leader it followed last, to whom it returns when it would not be elected."""
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    retries: int = 0


@dataclass(eq=False, repr=False, match_args=False)
class Candidate:
    """Has voted for itself in a new epoch and asks the others."""

    deadline_ms: int
    outreach: Outreach
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    retries: int = 0
    """Elections lost in a row, for the pause before the next."""
    is_lost: bool = False
    """A majority has refused; the deadline is now the end of a pause."""


@dataclass(eq=False, repr=False, match_args=False)
class Progress:
    """What a leader knows of a replica. A leader's own is `end_offset` alone: what it has synced."""

    key: ReplicaKey
    end_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_offset: int = UNKNOWN_OFFSET
    """Where the leader's log ended at the last fetch."""


@dataclass(eq=False, repr=False, match_args=False)
class ParkedFetch:
    """A fetch that waits for something to report."""

    ticket: object
    request: FetchRequest
    deadline_ms: int


@dataclass(eq=False, repr=False, match_args=False)
class PendingChange:
    """A change of the voters that is being made. There is one at a time."""

    ticket: object
    deadline_ms: int
    voter: Voter | None = None
    """The voter to be added, while it is asked which versions it supports."""
    offset: int = UNKNOWN_OFFSET
    """The record's offset once it is appended."""
    is_early: bool = False
    """Whether it is answered as soon as the record is appended."""
    is_answered: bool = False


@dataclass(eq=False, repr=False, match_args=False)
class Leader:
    epoch: int
    epoch_start_offset: int
    granting: tuple[int, ...]
    check_deadline_ms: int
    """When it resigns, unless a majority of voters has fetched."""
    outreach: Outreach
    progress: dict[ReplicaKey, Progress] = field(default_factory=dict)
    fetched: set[int] = field(default_factory=set)
    """The voters that have fetched since the check was renewed."""
    parked: list[ParkedFetch] = field(default_factory=list)
    change: PendingChange | None = None
    probe: Outreach = field(default_factory=Outreach)
    announced: dict[int, Voter] = field(default_factory=dict)
    """What voters of a static quorum have said of themselves: needed to make it a dynamic one."""
    flushed_offset: int = 0
    is_claimed: bool = False
    is_leaving: bool = False
    """Not a voter any more: resigns when that is committed."""


@dataclass(eq=False, repr=False, match_args=False)
class Download:
    """A snapshot that is being fetched."""

    snapshot: SnapshotId
    position: int = 0
    is_installing: bool = False


@dataclass(eq=False, repr=False, match_args=False)
class Follower:
    leader_id: int
    deadline_ms: int
    outreach: Outreach
    has_fetched: bool = False
    """Whether the leader has answered a fetch: then it must be alive, and nobody gets a pre-vote against it."""
    download: Download | None = None
    update: Outreach = field(default_factory=Outreach)
    """For telling the leader what has changed about this voter."""


@dataclass(eq=False, repr=False, match_args=False)
class Resigned:
    """Has led in this epoch and does so no longer; tells the others, so that they elect another at once."""

    deadline_ms: int
    outreach: Outreach
    successors: tuple[ReplicaKey, ...] = ()


Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned
