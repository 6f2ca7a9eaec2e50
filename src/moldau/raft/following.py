"""Followers and those that look for a leader: fetch, append, cut what diverges, take a snapshot where it is needed.

A voter syncs what it has appended before it fetches again, because its next fetch acknowledges it. Observers need not.
Start at `fetch` and `on_fetch_reply`.
"""

from __future__ import annotations

from moldau.core.errors import ErrorCode
from moldau.raft.effects import FinishSnapshot, Flush, WriteSnapshot
from moldau.raft.log_history import EpochEnd, SnapshotId
from moldau.raft.messages import (
    NOBODY,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    UpdateVoterRequest,
    VoterReply,
)
from moldau.raft.outreach import MAX_DOUBLINGS, NEVER, Outreach
from moldau.raft.records import Batch
from moldau.raft.replica import Replica
from moldau.raft.roles import Download, Follower, Unattached
from moldau.raft.voters import VoterSet

__all__ = [
    "fetch",
    "look_for_leader",
    "on_fetch_reply",
    "on_fetch_snapshot_reply",
    "on_snapshot_failed",
    "on_snapshot_installed",
    "on_update_reply",
    "pause_ms",
    "update_voter",
]


# --- asking -----------------------------------------------------------------------------------------


def look_for_leader(replica: Replica, role: Unattached, now_ms: int) -> None:
    """Fetch from whoever may know the leader: the reply names it."""
    for peer in role.outreach.take_due(now_ms):
        if peer == NOBODY:
            role.outreach.postpone(peer, NEVER)
            continue
        role.outreach.sent(
            peer, replica.send(peer, _fetch_request(replica)), now_ms + replica.settings.request_timeout_ms
        )


def pause_ms(replica: Replica, role: Unattached) -> int:
    """The pause before another node is asked for the leader: longer each time."""
    return replica.settings.retry_backoff_ms << min(role.attempt, MAX_DOUBLINGS)


def fetch(replica: Replica, role: Follower, now_ms: int) -> None:
    for peer in role.outreach.take_due(now_ms):
        deadline_ms = now_ms + replica.settings.request_timeout_ms
        download = role.download
        if download is None:
            role.outreach.sent(peer, replica.send(peer, _fetch_request(replica)), deadline_ms)
        elif download.is_installing:
            role.outreach.postpone(peer, NEVER)
        else:
            request = FetchSnapshotRequest(
                replica.settings.cluster_id,
                replica.key,
                replica.epoch,
                download.snapshot,
                download.position,
                replica.settings.snapshot_part_bytes,
            )
            role.outreach.sent(peer, replica.send(peer, request), deadline_ms)


def _fetch_request(replica: Replica) -> FetchRequest:
    return FetchRequest(
        replica.settings.cluster_id,
        replica.key,
        replica.epoch,
        replica.log.end_offset,
        replica.log.last_epoch,
        replica.settings.fetch_max_wait_ms,
        replica.high_watermark,
    )


# --- answers ----------------------------------------------------------------------------------------


def on_fetch_reply(replica: Replica, peer: int, number: int, reply: FetchReply, now_ms: int) -> None:
    role = replica.role
    retry_ms = now_ms + replica.settings.retry_backoff_ms
    if isinstance(role, Unattached):
        if role.outreach.accept(peer, number, NEVER):
            replica.look_elsewhere(now_ms + pause_ms(replica, role))
        return
    if not isinstance(role, Follower):
        return
    is_good = reply.error is ErrorCode.NONE and reply.leader.epoch == replica.epoch
    if not role.outreach.accept(peer, number, now_ms if is_good else retry_ms) or not is_good:
        return
    _note_leader(replica, role, now_ms)
    if reply.diverging is not None:
        _cut_divergence(replica, reply.diverging)
    elif reply.snapshot is not None:
        role.download = Download(reply.snapshot)
    else:
        _append(replica, reply)


def _note_leader(replica: Replica, role: Follower, now_ms: int) -> None:
    """The leader answers. Once, tell it what this voter is like if the set of voters says otherwise, or nothing."""
    role.deadline_ms = now_ms + replica.settings.fetch_timeout_ms
    if not role.has_fetched:
        role.has_fetched = True
        latest = replica.voters.latest
        is_known = latest.kraft_version > 0 and latest.voters.by_id.get(replica.key.id) == replica.me
        if replica.is_voter and not is_known:
            role.update = Outreach((role.leader_id,), now_ms)


def _cut_divergence(replica: Replica, diverging: EpochEnd) -> None:
    """Cut the log to where it may still agree with the leader's."""
    own = replica.log.end_of(diverging.epoch)
    if own.epoch == diverging.epoch:
        replica.truncate(min(own.end_offset, diverging.end_offset))
    else:
        replica.truncate(own.end_offset)


def _append(replica: Replica, reply: FetchReply) -> None:
    batches = tuple(_following(replica, reply.batches))
    if batches:
        replica.append(batches)
        if replica.is_voter or replica.settings.always_flush:
            replica.effects.append(Flush(replica.log.end_offset, replica.epoch))
    replica.advance_high_watermark(min(reply.high_watermark, replica.log.end_offset))


def _following(replica: Replica, batches: tuple[Batch, ...]) -> list[Batch]:
    """The batches that continue the log; a damaged or foreign one ends them, and is fetched again."""
    end_offset, last_epoch, good = replica.log.end_offset, replica.log.last_epoch, []
    for batch in batches:
        is_next = batch.base_offset == end_offset and batch.last_offset >= batch.base_offset
        if not is_next or not last_epoch <= batch.epoch <= replica.epoch:
            break
        good.append(batch)
        end_offset, last_epoch = batch.last_offset + 1, batch.epoch
    return good


# --- snapshots --------------------------------------------------------------------------------------


def on_fetch_snapshot_reply(replica: Replica, peer: int, number: int, reply: FetchSnapshotReply, now_ms: int) -> None:
    role = replica.role
    if not isinstance(role, Follower) or role.download is None:
        return
    download = role.download
    is_good = reply.error is ErrorCode.NONE and reply.leader.epoch == replica.epoch
    retry_ms = now_ms + replica.settings.retry_backoff_ms
    if not role.outreach.accept(peer, number, now_ms if is_good else retry_ms):
        return
    if reply.error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
        role.download = None
    if not is_good or reply.snapshot != download.snapshot or reply.position != download.position:
        return
    _note_leader(replica, role, now_ms)
    replica.effects.append(WriteSnapshot(download.snapshot, download.position, reply.data))
    download.position += len(reply.data)
    if download.position >= reply.size:
        download.is_installing = True
        replica.effects.append(FinishSnapshot(download.snapshot))


def on_snapshot_installed(
    replica: Replica, snapshot: SnapshotId, kraft_version: int, voters: VoterSet | None, now_ms: int
) -> None:
    """The log begins anew behind the snapshot that the leader has sent."""
    replica.log.start_at(snapshot)
    replica.voters.start_at(snapshot.end_offset, kraft_version, voters)
    replica.advance_high_watermark(snapshot.end_offset)
    _end_download(replica, now_ms)


def on_snapshot_failed(replica: Replica, now_ms: int) -> None:
    _end_download(replica, now_ms + replica.settings.retry_backoff_ms)


def _end_download(replica: Replica, due_ms: int) -> None:
    role = replica.role
    if isinstance(role, Follower) and role.download is not None:
        role.download = None
        role.outreach.postpone(role.leader_id, due_ms)


# --- this voter's own entry -------------------------------------------------------------------------


def update_voter(replica: Replica, role: Follower, now_ms: int) -> None:
    """Tell the leader what this voter is like."""
    for peer in role.update.take_due(now_ms):
        request = UpdateVoterRequest(replica.settings.cluster_id, replica.epoch, replica.me)
        role.update.sent(peer, replica.send(peer, request), now_ms + replica.settings.request_timeout_ms)


def on_update_reply(replica: Replica, peer: int, number: int, reply: VoterReply, now_ms: int) -> None:
    role = replica.role
    if isinstance(role, Follower):
        is_done = reply.error is ErrorCode.NONE
        role.update.accept(peer, number, NEVER if is_done else now_ms + replica.settings.fetch_timeout_ms)
