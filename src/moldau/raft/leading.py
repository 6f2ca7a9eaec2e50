"""The leader: serves fetches, counts who has what, and moves the high watermark.

A fetch at an offset says that everything below it is on the follower's disk; so the fetch is the acknowledgement.
The high watermark is what a majority of the voters has, and moves only to records of the leader's own epoch: an older
record on a majority may still be replaced (Raft, section 5.4.2). Start at `on_fetch`.
"""

from __future__ import annotations

from typing import Final

from moldau.core.errors import ErrorCode
from moldau.raft.effects import Answer, Claim
from moldau.raft.messages import (
    UNKNOWN_OFFSET,
    BeginEpochRequest,
    EndEpochRequest,
    EpochReply,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
)
from moldau.raft.outreach import NEVER
from moldau.raft.replica import Replica
from moldau.raft.roles import Leader, ParkedFetch, Progress, Resigned
from moldau.raft.voters import ReplicaKey
from moldau.raft.voting import is_other_cluster

__all__ = [
    "OBSERVER_SESSION_MS",
    "announce",
    "leader_error",
    "on_epoch_reply",
    "on_fetch",
    "on_fetch_snapshot",
    "on_flushed",
    "say_goodbye",
    "serve_parked",
    "update_high_watermark",
]


OBSERVER_SESSION_MS: Final = 5 * 60_000
"""How long an observer that does not fetch is remembered."""


def leader_error(replica: Replica, cluster_id: str | None, epoch: int | None = None) -> ErrorCode:
    """Why a request that only a leader answers is refused. `epoch` is the one the asker knows."""
    if is_other_cluster(replica, cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if replica.is_closing:
        return ErrorCode.BROKER_NOT_AVAILABLE
    if epoch is not None and epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch is not None and epoch > replica.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(replica.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


# --- fetches ----------------------------------------------------------------------------------------


def on_fetch(replica: Replica, ticket: object, request: FetchRequest, now_ms: int) -> None:
    error = leader_error(replica, request.cluster_id, None if request.epoch < 0 else request.epoch)
    role = replica.role
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        replica.answer(ticket, FetchReply(error, replica.hint()))
        return
    if request.fetch_offset < 0 or request.last_fetched_epoch < 0 or request.epoch < 0:
        replica.answer(ticket, FetchReply(ErrorCode.INVALID_REQUEST, replica.hint()))
        return
    reply = _answer_about_position(replica, request)
    if reply is not None:
        _note_contact(replica, role, request.replica, now_ms)
        replica.answer(ticket, reply)
        return
    _note_fetch(replica, role, request, now_ms)
    wait_ms = min(request.max_wait_ms, replica.settings.fetch_max_wait_ms)
    if _is_news(replica, request) or wait_ms <= 0:
        _answer_with_records(replica, ticket, request)
    else:
        role.parked.append(ParkedFetch(ticket, request, now_ms + wait_ms))


def _answer_about_position(replica: Replica, request: FetchRequest) -> FetchReply | None:
    """The answer to a follower whose log is not the beginning of this one; `None` if it is."""
    log = replica.log
    offset, epoch = request.fetch_offset, request.last_fetched_epoch
    snapshot = log.snapshot
    if snapshot is not None and snapshot.end_offset > 0:
        is_behind = offset < log.start_offset or offset == 0 or epoch < log.start_epoch
        if is_behind or (offset == log.start_offset and epoch != log.start_epoch):
            return FetchReply(ErrorCode.NONE, replica.hint(), replica.high_watermark, snapshot=snapshot)
    if log.is_prefix(offset, epoch):
        return None
    return FetchReply(ErrorCode.NONE, replica.hint(), replica.high_watermark, diverging=log.end_of(epoch))


def _is_news(replica: Replica, request: FetchRequest) -> bool:
    return request.fetch_offset < replica.log.end_offset or request.high_watermark < replica.high_watermark


def _answer_with_records(replica: Replica, ticket: object, request: FetchRequest) -> None:
    reply = FetchReply(ErrorCode.NONE, replica.hint(), replica.high_watermark)
    replica.effects.append(Answer(ticket, reply, read_from=request.fetch_offset))


def serve_parked(replica: Replica, role: Leader, now_ms: int) -> None:
    """Answer fetches that have waited for what there is now, or for long enough."""
    waiting, role.parked = role.parked, []
    for parked in waiting:
        if parked.deadline_ms <= now_ms or _is_news(replica, parked.request):
            _answer_with_records(replica, parked.ticket, parked.request)
        else:
            role.parked.append(parked)


def _note_contact(replica: Replica, role: Leader, key: ReplicaKey, now_ms: int) -> Progress:
    """A replica is there. A majority of voters that fetches keeps the leader in office."""
    progress = role.progress.get(key)
    if progress is None:
        _forget_silent_observers(replica, role, now_ms)
        progress = role.progress[key] = Progress(key)
    progress.last_fetch_ms = now_ms
    if replica.voter_set.has(key) and key.id != replica.key.id:
        role.fetched.add(key.id)
        _renew_check(replica, role, now_ms)
    return progress


def _forget_silent_observers(replica: Replica, role: Leader, now_ms: int) -> None:
    limit_ms = now_ms - OBSERVER_SESSION_MS
    role.progress = {
        key: one for key, one in role.progress.items() if one.last_fetch_ms >= limit_ms or replica.voter_set.has(key)
    }


def _renew_check(replica: Replica, role: Leader, now_ms: int) -> None:
    voters = replica.voter_set
    present = len(role.fetched & voters.by_id.keys()) + replica.is_voter
    if present >= voters.majority:
        role.fetched.clear()
        role.check_deadline_ms = now_ms + replica.settings.check_quorum_ms


def _note_fetch(replica: Replica, role: Leader, request: FetchRequest, now_ms: int) -> None:
    last_fetch_ms = role.progress[request.replica].last_fetch_ms if request.replica in role.progress else -1
    progress = _note_contact(replica, role, request.replica, now_ms)
    end_offset = replica.log.end_offset
    if request.fetch_offset >= end_offset:
        progress.last_caught_up_ms = now_ms
    elif progress.leader_end_offset != UNKNOWN_OFFSET and request.fetch_offset >= progress.leader_end_offset:
        progress.last_caught_up_ms = max(progress.last_caught_up_ms, last_fetch_ms)
    progress.leader_end_offset = end_offset
    progress.end_offset = request.fetch_offset
    update_high_watermark(replica, now_ms)


# --- the high watermark -----------------------------------------------------------------------------


def on_flushed(replica: Replica, end_offset: int, epoch: int, now_ms: int) -> None:
    """The log is on disk up to `end_offset`: a leader's own share of the majority.

    News from before its epoch says nothing: the log may have been cut since.
    """
    role = replica.role
    if isinstance(role, Leader) and epoch == role.epoch and end_offset > role.flushed_offset:
        role.flushed_offset = end_offset
        update_high_watermark(replica, now_ms)


def update_high_watermark(replica: Replica, now_ms: int) -> None:
    role = replica.role
    assert isinstance(role, Leader), role
    offset = _replicated_by_majority(replica, role)
    if offset <= role.epoch_start_offset:
        return
    is_moved = replica.advance_high_watermark(offset)
    if not role.is_claimed:
        role.is_claimed = True
        replica.effects.append(Claim(role.epoch))
    if is_moved:
        serve_parked(replica, role, now_ms)


def _replicated_by_majority(replica: Replica, role: Leader) -> int:
    """The largest offset below which a majority of the present voters has everything on disk."""
    offsets = []
    for voter in replica.voter_set:
        if voter.is_replica(replica.key):
            offsets.append(role.flushed_offset)
        else:
            known = [one.end_offset for key, one in role.progress.items() if voter.is_replica(key)]
            offsets.append(max(known, default=UNKNOWN_OFFSET))
    offsets.sort(reverse=True)
    return offsets[replica.voter_set.majority - 1] if offsets else UNKNOWN_OFFSET


# --- snapshots --------------------------------------------------------------------------------------


def on_fetch_snapshot(replica: Replica, ticket: object, request: FetchSnapshotRequest, now_ms: int) -> None:
    """Let a follower read a part of a snapshot; the shell adds size and bytes, or finds that the snapshot is gone."""
    error = leader_error(replica, request.cluster_id, request.epoch)
    role = replica.role
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        replica.answer(ticket, FetchSnapshotReply(error, replica.hint(), request.snapshot))
        return
    _note_contact(replica, role, request.replica, now_ms)
    if request.position < 0:
        reply = FetchSnapshotReply(ErrorCode.POSITION_OUT_OF_RANGE, replica.hint(), request.snapshot)
        replica.answer(ticket, reply)
        return
    reply = FetchSnapshotReply(ErrorCode.NONE, replica.hint(), request.snapshot, position=request.position)
    replica.effects.append(Answer(ticket, reply, read_from=request.position))


# --- telling the voters -----------------------------------------------------------------------------


def announce(replica: Replica, role: Leader, now_ms: int) -> None:
    """Tell voters who leads, again and again those that do not fetch."""
    interval_ms = replica.settings.fetch_timeout_ms // 2
    last_fetch_ms = {key.id: one.last_fetch_ms for key, one in role.progress.items()}
    for peer in role.outreach.take_due(now_ms):
        heard_ms = last_fetch_ms.get(peer, -1)
        if heard_ms >= 0 and heard_ms + interval_ms > now_ms:
            role.outreach.postpone(peer, heard_ms + interval_ms)
            continue
        request = BeginEpochRequest(
            replica.settings.cluster_id,
            replica.key.id,
            replica.epoch,
            replica.me.endpoints,
            replica.voter_set.by_id[peer].key,
        )
        role.outreach.sent(peer, replica.send(peer, request), now_ms + replica.settings.request_timeout_ms)


def say_goodbye(replica: Replica, role: Resigned, now_ms: int) -> None:
    for peer in role.outreach.take_due(now_ms):
        request = EndEpochRequest(
            replica.settings.cluster_id, replica.key.id, replica.epoch, role.successors, replica.me.endpoints
        )
        role.outreach.sent(peer, replica.send(peer, request), now_ms + replica.settings.request_timeout_ms)


def on_epoch_reply(replica: Replica, peer: int, number: int, reply: EpochReply, now_ms: int) -> None:
    role = replica.role
    retry_ms = now_ms + replica.settings.retry_backoff_ms
    if isinstance(role, Leader):
        again_ms = now_ms + replica.settings.fetch_timeout_ms // 2
        role.outreach.accept(peer, number, again_ms if reply.error is ErrorCode.NONE else retry_ms)
    elif isinstance(role, Resigned):
        role.outreach.accept(peer, number, NEVER if reply.error is ErrorCode.NONE else retry_ms)
