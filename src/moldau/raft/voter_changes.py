"""Changes of the voters of a dynamic quorum: add, remove, update, and making a static quorum a dynamic one.

Only one change is made at a time, by a leader that has committed a record of its own epoch, and each changes one voter:
so any majority before and any majority after it have a voter in common. A new set counts as soon as it is appended.
Start at `on_add_voter`.
"""

from __future__ import annotations

from typing import Final

from moldau.core.errors import ErrorCode
from moldau.raft.leading import leader_error, update_high_watermark
from moldau.raft.messages import (
    UNKNOWN_OFFSET,
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VersionsReply,
    VersionsRequest,
    VoterReply,
)
from moldau.raft.outreach import NEVER, Outreach
from moldau.raft.records import KRaftVersionRecord, VotersRecord
from moldau.raft.replica import Replica
from moldau.raft.roles import Leader, PendingChange
from moldau.raft.voters import ReplicaKey, Voter, VoterSet

__all__ = [
    "ask_new_voter",
    "next_deadline_ms",
    "on_add_voter",
    "on_remove_voter",
    "on_time",
    "on_update_voter",
    "on_versions_reply",
    "settle",
    "upgrade_kraft_version",
]

CAUGHT_UP_MS: Final = 60 * 60_000
"""A replica that has been at the end of the log within this time may become a voter."""
NEW_KRAFT_VERSION: Final = 1


# --- requests ---------------------------------------------------------------------------------------


def on_add_voter(replica: Replica, ticket: object, request: AddVoterRequest, now_ms: int) -> None:
    """Ask the new voter which versions it supports; the rest follows from its answer."""
    role = _change_role(replica, ticket, request.cluster_id)
    if role is None:
        return
    if request.voter.id in replica.voter_set.by_id:
        text = f"Node {request.voter.id} is a voter already; remove it first if its directory has changed."
        _refuse(replica, ticket, ErrorCode.DUPLICATE_VOTER, text)
    elif request.voter.directory_id is None or not request.endpoints:
        text = f"Node {request.voter.id} needs a directory id and at least one listener to become a voter."
        _refuse(replica, ticket, ErrorCode.INVALID_REQUEST, text)
    else:
        voter = Voter(request.voter, request.endpoints)
        role.change = PendingChange(ticket, now_ms + request.timeout_ms, voter)
        if not request.ack_when_committed:
            role.change.is_early = True
        replica.endpoints = {**replica.endpoints, voter.key.id: voter.endpoints}
        role.probe = Outreach((voter.key.id,), now_ms)


def on_versions_reply(replica: Replica, peer: int, number: int, reply: VersionsReply, now_ms: int) -> None:
    role = replica.role
    if not isinstance(role, Leader) or role.change is None or role.change.voter is None:
        return
    retry_ms = now_ms + replica.settings.retry_backoff_ms
    is_good = reply.error is ErrorCode.NONE
    if not role.probe.accept(peer, number, NEVER if is_good else retry_ms) or not is_good:
        return
    change, voter = role.change, role.change.voter
    if not reply.min_kraft_version <= replica.voters.latest.kraft_version <= reply.max_kraft_version:
        text = f"Node {voter.key.id} supports kraft.version {reply.min_kraft_version} to {reply.max_kraft_version}."
        _end(replica, role, ErrorCode.INVALID_REQUEST, text)
    elif not _is_caught_up(role, voter.key, now_ms):
        text = f"Node {voter.key.id} has not caught up with the metadata log; try again when it has."
        _end(replica, role, ErrorCode.REQUEST_TIMED_OUT, text)
    else:
        change.voter = None
        added = voter._replace(min_kraft_version=reply.min_kraft_version, max_kraft_version=reply.max_kraft_version)
        _append_voters(replica, role, change, replica.voter_set.with_voter(added), now_ms)


def on_remove_voter(replica: Replica, ticket: object, request: RemoveVoterRequest, now_ms: int) -> None:
    """Remove a voter, this leader included: it goes on until that is committed, by the others."""
    role = _change_role(replica, ticket, request.cluster_id)
    if role is None:
        return
    voters = replica.voter_set
    if not voters.has(request.voter):
        text = f"Node {request.voter.id} with directory {request.voter.directory_id} is not a voter."
        _refuse(replica, ticket, ErrorCode.VOTER_NOT_FOUND, text)
    elif len(voters) == 1:
        text = f"Node {request.voter.id} is the last voter; add another one first."
        _refuse(replica, ticket, ErrorCode.INVALID_REQUEST, text)
    else:
        role.change = change = PendingChange(ticket, now_ms + request.timeout_ms)
        _append_voters(replica, role, change, voters.without(request.voter.id), now_ms)


def on_update_voter(replica: Replica, ticket: object, request: UpdateVoterRequest, now_ms: int) -> None:
    """Take over a voter's new endpoints and versions; in a static quorum only remember them."""
    error = leader_error(replica, request.cluster_id, request.epoch)
    role = replica.role
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        _refuse(replica, ticket, error)
        return
    voter = request.voter
    level = replica.voters.latest.kraft_version
    if not voter.min_kraft_version <= level <= voter.max_kraft_version or not voter.endpoints:
        _refuse(
            replica, ticket, ErrorCode.INVALID_REQUEST, f"Node {voter.key.id} does not support kraft.version {level}."
        )
    elif not replica.voter_set.has(voter.key):
        _refuse(replica, ticket, ErrorCode.VOTER_NOT_FOUND, f"Node {voter.key.id} is not a voter.")
    elif level == 0:
        role.announced[voter.key.id] = voter
        replica.answer(ticket, VoterReply(ErrorCode.NONE, replica.hint()))
    elif replica.voter_set.by_id[voter.key.id] == voter:
        replica.answer(ticket, VoterReply(ErrorCode.NONE, replica.hint()))
    elif _change_role(replica, ticket, request.cluster_id) is not None:
        role.change = change = PendingChange(ticket, now_ms + replica.settings.request_timeout_ms)
        _append_voters(replica, role, change, replica.voter_set.with_voter(voter), now_ms)


def upgrade_kraft_version(replica: Replica, ticket: object, version: int, now_ms: int, timeout_ms: int) -> None:
    """Make a static quorum a dynamic one: write the voters, with their directories, into the log."""
    role = _change_role(replica, ticket, None, is_dynamic=False)
    if role is None:
        return
    level = replica.voters.latest.kraft_version
    if version != NEW_KRAFT_VERSION or level >= version:
        is_done = level == version
        error = ErrorCode.NONE if is_done else ErrorCode.INVALID_UPDATE_VERSION
        _refuse(replica, ticket, error, None if is_done else f"kraft.version is {level} and cannot become {version}.")
        return
    known = {**role.announced, replica.key.id: replica.me}
    voters = [known[one] for one in sorted(replica.voter_set.by_id) if one in known]
    missing = sorted(replica.voter_set.by_id.keys() - known.keys())
    if missing or any(one.key.directory_id is None or one.max_kraft_version < version for one in voters):
        text = f"Not every voter supports kraft.version {version}, or has said so yet; missing: {missing}."
        _refuse(replica, ticket, ErrorCode.INVALID_UPDATE_VERSION, text)
        return
    role.change = change = PendingChange(ticket, now_ms + timeout_ms)
    change.offset = replica.append_control((KRaftVersionRecord(version), VotersRecord(VoterSet.of(voters))))
    _follow_new_set(replica, role, now_ms)


# --- making a change --------------------------------------------------------------------------------


def _change_role(replica: Replica, ticket: object, cluster_id: str | None, *, is_dynamic: bool = True) -> Leader | None:
    """The leader's role, if it may begin a change now; else the request is answered."""
    error = leader_error(replica, cluster_id)
    role = replica.role
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        _refuse(replica, ticket, error)
    elif not role.is_claimed or role.change is not None or role.is_leaving:
        _refuse(replica, ticket, ErrorCode.REQUEST_TIMED_OUT, "Another change of the voters is not yet committed.")
    elif is_dynamic and replica.voters.latest.kraft_version == 0:
        text = "The voters are fixed by controller.quorum.voters; raise kraft.version to 1 to change them."
        _refuse(replica, ticket, ErrorCode.UNSUPPORTED_VERSION, text)
    else:
        return role
    return None


def _refuse(replica: Replica, ticket: object, error: ErrorCode, message: str | None = None) -> None:
    replica.answer(ticket, VoterReply(error, replica.hint(), message))


def _is_caught_up(role: Leader, key: ReplicaKey, now_ms: int) -> bool:
    progress = role.progress.get(key)
    if progress is None or progress.last_caught_up_ms < 0:
        return False
    return now_ms - progress.last_caught_up_ms <= CAUGHT_UP_MS


def _append_voters(replica: Replica, role: Leader, change: PendingChange, voters: VoterSet, now_ms: int) -> None:
    change.offset = replica.append_control((VotersRecord(voters),))
    if change.is_early:
        _answer(replica, change, ErrorCode.NONE, None)
    _follow_new_set(replica, role, now_ms)


def _follow_new_set(replica: Replica, role: Leader, now_ms: int) -> None:
    role.outreach.keep_only((one.key.id for one in replica.voter_set.others(replica.key)), now_ms)
    role.is_leaving = not replica.is_voter
    role.check_deadline_ms = now_ms + replica.settings.check_quorum_ms
    role.fetched.clear()
    update_high_watermark(replica, now_ms)


def _answer(replica: Replica, change: PendingChange, error: ErrorCode, message: str | None) -> None:
    if not change.is_answered:
        change.is_answered = True
        replica.answer(change.ticket, VoterReply(error, replica.hint(), message))


def _end(replica: Replica, role: Leader, error: ErrorCode, message: str | None = None) -> None:
    change = role.change
    assert change is not None
    role.change, role.probe = None, Outreach()
    _answer(replica, change, error, message)


# --- in the course of time --------------------------------------------------------------------------


def ask_new_voter(replica: Replica, role: Leader, now_ms: int) -> None:
    for peer in role.probe.take_due(now_ms):
        change = role.change
        if change is None or change.voter is None:
            role.probe.postpone(peer, NEVER)
            continue
        number = replica.send(peer, VersionsRequest(change.voter.key))
        role.probe.sent(peer, number, now_ms + replica.settings.request_timeout_ms)


def settle(replica: Replica, role: Leader, now_ms: int) -> None:
    """Finish a change that is committed; a leader that is no voter any more resigns then."""
    change = role.change
    if change is not None and change.offset != UNKNOWN_OFFSET and change.offset < replica.high_watermark:
        _end(replica, role, ErrorCode.NONE)
    if role.is_leaving and role.change is None and replica.voters.latest.offset < replica.high_watermark:
        replica.become_resigned(now_ms)


def on_time(replica: Replica, role: Leader, now_ms: int) -> None:
    """Answer a change that takes too long. Once it is appended it goes on, and blocks others until it is committed."""
    change = role.change
    if change is None or change.is_answered or change.deadline_ms > now_ms:
        return
    if change.offset == UNKNOWN_OFFSET:
        _end(replica, role, ErrorCode.REQUEST_TIMED_OUT, "The new voter does not answer.")
    else:
        _answer(replica, change, ErrorCode.REQUEST_TIMED_OUT, "The change is not committed yet.")


def next_deadline_ms(role: Leader) -> int:
    change = role.change
    return NEVER if change is None or change.is_answered else change.deadline_ms
