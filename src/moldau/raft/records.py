"""What the replicated log holds, as the core sees it: batches, and the control records it must understand.

The payload of a batch is the shell's: a record batch with its bytes, or anything else that a test appends.
Start at `Batch`.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.raft.voters import VoterSet

__all__ = ["Batch", "ControlRecord", "KRaftVersionRecord", "LeaderChangeRecord", "VotersRecord"]


class LeaderChangeRecord(NamedTuple):
    """The first record of an epoch: its commitment commits everything before it."""

    leader_id: int
    voters: tuple[int, ...]
    granting: tuple[int, ...]


class KRaftVersionRecord(NamedTuple):
    version: int


class VotersRecord(NamedTuple):
    voters: VoterSet


ControlRecord = LeaderChangeRecord | KRaftVersionRecord | VotersRecord


class Batch(NamedTuple):
    """Records that are appended together, in one epoch."""

    base_offset: int
    last_offset: int
    epoch: int
    payload: bytes = b""
    """The encoded records; empty for control records that the shell has yet to encode."""
    control: tuple[ControlRecord, ...] = ()
    """The control records, if it is a control batch: one offset each."""
