"""Reconciliation: one step of a member from what it has towards its target.

A member first lets go of what it must not have any more, staying in its epoch; then it moves to the target's epoch
and gets what nobody else holds; what others still hold follows on later heartbeats. So a partition never has two
holders, and no member waits for all others. Start at `reconciled`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from moldau.coordinator.group.consumer_assignment import NOTHING, Assignment, common, joined, overlaps, without
from moldau.coordinator.group.consumer_member import ConsumerMember, MemberState

__all__ = ["reconciled"]

IsFree = Callable[[UUID, int], bool]


def reconciled(
    member: ConsumerMember, target: Assignment, target_epoch: int, *, owned: Assignment | None, is_free: IsFree
) -> ConsumerMember:
    """The member after this heartbeat; the same object if nothing changes.

    `owned` is what the member says it uses, `None` if it says nothing about it. `is_free` tells whether nobody else
    holds a partition.
    """
    if member.state is MemberState.STABLE and member.member_epoch == target_epoch:
        return member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _still_owns(owned, member.pending_revocation):
        return member
    next_member = _next_step(member, target, target_epoch, owned=owned, is_free=is_free)
    return member if next_member == member else next_member


def _next_step(
    member: ConsumerMember, target: Assignment, target_epoch: int, *, owned: Assignment | None, is_free: IsFree
) -> ConsumerMember:
    kept = common(member.assigned, target)
    to_revoke = without(member.assigned, target)
    if to_revoke and _still_owns(owned, to_revoke):
        return replace(member, state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=to_revoke)
    missing = without(target, kept)
    free = _free(missing, is_free)
    state = MemberState.STABLE if free == missing else MemberState.UNRELEASED_PARTITIONS
    moved = member if member.member_epoch == target_epoch else member.at_epoch(target_epoch)
    return replace(moved, state=state, assigned=joined(kept, free), pending_revocation=NOTHING)


def _still_owns(owned: Assignment | None, partitions: Assignment) -> bool:
    """A member that says nothing about what it owns still owns it."""
    return owned is None or overlaps(owned, partitions)


def _free(partitions: Assignment, is_free: IsFree) -> Assignment:
    return {
        topic: free
        for topic, numbers in partitions.items()
        if (free := frozenset(number for number in numbers if is_free(topic, number)))
    }
