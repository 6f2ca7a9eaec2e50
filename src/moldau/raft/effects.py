"""What the core decides, to be carried out in its order: writes, syncs, messages, news for the state machine.

The order is the safety of the quorum. Whatever stands behind a `SaveElection` or a `Flush` may leave the node only
when that is on disk: a vote that a crash forgets could be given twice, and an offset that a crash takes back could
have been counted. The core is ahead of the disk meanwhile, and may decide more. Start at `Effect`.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

from moldau.raft.log_history import SnapshotId
from moldau.raft.messages import NOBODY, Reply, Request
from moldau.raft.records import Batch
from moldau.raft.voters import ReplicaKey

__all__ = [
    "Answer",
    "AppendBatches",
    "Claim",
    "Commit",
    "Effect",
    "ElectionState",
    "FinishSnapshot",
    "Flush",
    "Renounce",
    "SaveElection",
    "Send",
    "TruncateLog",
    "WriteSnapshot",
]


class ElectionState(NamedTuple):
    """What a replica must never forget: `quorum-state`."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted: ReplicaKey | None = None

    @property
    def voted_directory_id(self) -> uuid.UUID | None:
        return None if self.voted is None else self.voted.directory_id


class SaveElection(NamedTuple):
    """Write and sync `quorum-state` before anything else is done."""

    state: ElectionState


class AppendBatches(NamedTuple):
    """Append to the log.

    If that fails, call `append_failed`; if it lets this core go on, skip batches that do not begin at the log's end.
    """

    batches: tuple[Batch, ...]


class Flush(NamedTuple):
    """Sync the log before anything else is done, then call `flushed`.

    It is told this epoch, and `end_offset` or, if an append has failed, the smaller end of the log.
    """

    end_offset: int
    epoch: int


class TruncateLog(NamedTuple):
    """Remove all records from `end_offset` on."""

    end_offset: int


class WriteSnapshot(NamedTuple):
    """Write a part of a snapshot that is being fetched."""

    snapshot: SnapshotId
    position: int
    data: bytes


class FinishSnapshot(NamedTuple):
    """Check and sync a fetched snapshot, start the log anew behind it, then call `snapshot_installed` or `_failed`.

    Anything else that happens meanwhile must wait: the core decides nothing while its log is exchanged.
    """

    snapshot: SnapshotId


class Send(NamedTuple):
    """Send a request. A reply is passed to `on_reply` with the same number; a request may get lost."""

    to: int
    """A node id, or -2, -3, … for the first, second, … bootstrap server."""
    number: int
    request: Request


class Answer(NamedTuple):
    """Answer a request. Where a `FetchReply` is to have records, read them from the log at this moment."""

    ticket: object
    reply: Reply
    read_from: int | None = None


class Commit(NamedTuple):
    """Everything below `high_watermark` is committed."""

    high_watermark: int


class Claim(NamedTuple):
    """This node is the active controller in `epoch`: all earlier records are committed."""

    epoch: int


class Renounce(NamedTuple):
    """This node leads no longer: whatever was not committed may or may not be."""

    epoch: int


Effect = (
    SaveElection
    | AppendBatches
    | Flush
    | TruncateLog
    | WriteSnapshot
    | FinishSnapshot
    | Send
    | Answer
    | Commit
    | Claim
    | Renounce
)
