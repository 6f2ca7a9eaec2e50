"""Cores for the quorum's tests, and what they decide."""

from __future__ import annotations

import uuid
from random import Random
from typing import Any, TypeVar

from moldau.core.errors import ErrorCode
from moldau.raft.core import QuorumCore
from moldau.raft.effects import Answer, Effect, ElectionState, Flush, Send
from moldau.raft.log_history import LogHistory
from moldau.raft.messages import FetchRequest, LeaderHint, Reply, VoteReply
from moldau.raft.settings import QuorumSettings
from moldau.raft.voter_history import VoterHistory
from moldau.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

NOW = 10_000
Found = TypeVar("Found")


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, uuid.UUID(int=node_id))


def voter(node_id: int) -> Voter:
    return Voter(key(node_id), (Endpoint("CONTROLLER", f"host{node_id}", 9093),))


def new_core(
    node_id: int = 1,
    voters: int | tuple[int, ...] = 3,
    *,
    election: ElectionState | None = None,
    log: LogHistory | None = None,
    kraft_version: int = 1,
    **settings: Any,
) -> QuorumCore:
    ids = range(1, voters + 1) if isinstance(voters, int) else voters
    members = [voter(one) if kraft_version else voter(one)._replace(key=ReplicaKey(one)) for one in ids]
    return QuorumCore(
        voter(node_id),
        QuorumSettings("c", **settings),
        log=log or LogHistory(),
        voters=VoterHistory(VoterSet.of(members), kraft_version),
        election=election or ElectionState(),
        random=Random(1),
    )


def only(kind: type[Found], effects: list[Effect]) -> list[Found]:
    return [one for one in effects if isinstance(one, kind)]


def answer_of(effects: list[Effect]) -> Any:
    """The one reply among the effects."""
    (answer,) = only(Answer, effects)
    return answer.reply


def deliver(core: QuorumCore, sent: list[Effect], reply: Reply, to: int) -> list[Effect]:
    """Answer the request among `sent` that went to this peer."""
    (request,) = [one for one in only(Send, sent) if one.to == to]
    return core.on_reply(to, request.number, reply, NOW)


def granted(epoch: int, *, is_granted: bool = True) -> VoteReply:
    return VoteReply(ErrorCode.NONE, LeaderHint(epoch), is_granted)


def elected(core: QuorumCore, peers: tuple[int, ...] = (2,)) -> list[Effect]:
    """Let a core win an election by the votes of some peers."""
    core.start(NOW)
    sent = core.on_time(core.next_deadline_ms() if core.next_deadline_ms() > NOW + 900 else NOW + 3000)
    while not core.is_leader:
        for peer in peers:
            replies = [one for one in only(Send, sent) if one.to == peer]
            if replies and not core.is_leader:
                sent = core.on_reply(peer, replies[0].number, granted(core.replica.epoch), NOW)
    return sent


def flush(core: QuorumCore, effects: list[Effect]) -> list[Effect]:
    """Sync what was appended."""
    decided: list[Effect] = []
    for one in only(Flush, effects):
        decided += core.flushed(one.end_offset, one.epoch, NOW)
    return decided


def fetched(core: QuorumCore, node_id: int, offset: int | None = None, **kw: Any) -> list[Effect]:
    """A fetch of a follower that has everything below `offset`, by default all."""
    log = core.replica.log
    at = log.end_offset if offset is None else offset
    request = FetchRequest("c", key(node_id), core.replica.epoch, at, log.epoch_before(at), **kw)
    return core.on_request(f"fetch of {node_id}", request, kw.pop("now_ms", NOW))


def committed_leader(voters: int | tuple[int, ...] = 3, **kw: Any) -> QuorumCore:
    """A leader whose first record is committed."""
    core = new_core(1, voters, **kw)
    ids = [one.key.id for one in core.replica.voter_set.others(key(1))]
    flush(core, elected(core, tuple(ids)) if ids else core.start(NOW))
    for peer in ids:
        fetched(core, peer)
    return core


__all__ = [
    "NOW",
    "answer_of",
    "committed_leader",
    "deliver",
    "elected",
    "fetched",
    "flush",
    "granted",
    "key",
    "new_core",
    "only",
    "voter",
]
