"""A heartbeat of the consumer protocol (KIP-848): one request that joins, changes, acknowledges and asks.

Works on a `Draft` and the time; `coordinator.group.consumer.membership` finds the group and keeps the deadlines.

Reconciliation is one step of a member from its current assignment towards its target: it first revokes partitions that
are not in the target, staying in its epoch; then it moves to the target's epoch and gets the partitions that no other
member holds; the rest follows on later heartbeats. So a partition never has two holders, and no member waits for all
others.

Start at `heartbeat` and `reconcile_member`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple
from uuid import UUID

from moldau.coordinator.group.consumer.assignment import (
    NOTHING,
    Assignment,
    common,
    is_within,
    overlaps,
    union,
    without,
)
from moldau.coordinator.group.consumer.assignors import ASSIGNORS, Subscriber
from moldau.coordinator.group.consumer.draft import Draft
from moldau.coordinator.group.consumer.group import ConsumerGroup
from moldau.coordinator.group.consumer.member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    NOT_TOLD,
    ConsumerMember,
    MemberState,
)
from moldau.coordinator.group.consumer.requests import ConsumerHeartbeat
from moldau.coordinator.group.consumer.settings import ConsumerSettings
from moldau.coordinator.group.consumer.topics import Topics, check_regex, matching, metadata_hash, subscribed_topics
from moldau.coordinator.group.group import RefusedError
from moldau.core.errors import ErrorCode
from moldau.protocol.coordinator_records import ConsumerGroupMemberMetadataValue

__all__ = [
    "Surroundings",
    "advance",
    "assignor_of",
    "check_request",
    "heartbeat",
    "leave",
    "reconcile",
    "reconcile_member",
    "remove_member",
    "retarget",
    "take_static_place",
]


MAX_TEXT_BYTES: Final = 2**15 - 1
"""The longest string a record's key can hold."""


class Surroundings(NamedTuple):
    """What a decision depends on besides the group."""

    topics: Topics
    settings: ConsumerSettings
    now_ms: int


def check_request(request: ConsumerHeartbeat, settings: ConsumerSettings) -> None:
    """Reject requests that are invalid in any state of the group."""
    if not request.group_id:
        raise _invalid("GroupId must not be empty.")
    told = (request.group_id, request.member_id, request.instance_id, request.rack_id, request.subscribed_topic_regex)
    if any(text is not None and len(text.encode()) > MAX_TEXT_BYTES for text in told):
        raise _invalid(f"Ids and patterns may have at most {MAX_TEXT_BYTES} bytes.")
    may_lack_id = request.member_epoch == JOINING and not request.brings_member_id
    if not request.member_id and not may_lack_id:
        raise _invalid("MemberId must not be empty.")
    if request.instance_id == "" or request.rack_id == "":
        raise _invalid("InstanceId and RackId must be null or not empty.")
    if request.member_epoch < LEAVING_FOR_A_WHILE:
        raise _invalid(f"MemberEpoch {request.member_epoch} is invalid: -2, -1, 0 or more is expected.")
    if request.member_epoch == LEAVING_FOR_A_WHILE and request.instance_id is None:
        raise _invalid("MemberEpoch -2 (to leave for a while) needs an InstanceId.")
    if request.member_epoch == JOINING:
        _check_joining(request)
    assignors = settings.group_consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise RefusedError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )
    if request.subscribed_topic_regex:
        check_regex(request.subscribed_topic_regex)


def _check_joining(request: ConsumerHeartbeat) -> None:
    if request.rebalance_timeout_ms <= 0:
        raise _invalid("RebalanceTimeoutMs must be above 0 in the request that joins the group.")
    if request.owned is None or request.owned:
        raise _invalid("TopicPartitions must be an empty list in the request that joins the group.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid(
            "SubscribedTopicNames or SubscribedTopicRegex must be given in the request that joins the group."
        )


def _invalid(message: str) -> RefusedError:
    return RefusedError(ErrorCode.INVALID_REQUEST, message)


def heartbeat(draft: Draft, request: ConsumerHeartbeat, member_id: str, around: Surroundings) -> ConsumerMember:
    """Write what this heartbeat of `member_id` changes and return the member as it then is."""
    before = _member(draft, request, member_id).metadata
    draft.put_metadata(member_id, _updated_metadata(before, request))
    is_newcomer = before is NOT_TOLD
    has_changed = is_newcomer or _subscription(draft.group.members[member_id].metadata) != _subscription(before)
    advance(draft, around, has_changed=has_changed)
    return reconcile(draft, member_id, request.owned)


def _subscription(metadata: ConsumerGroupMemberMetadataValue) -> tuple[frozenset[str], str | None]:
    return frozenset(metadata.subscribed_topic_names), metadata.subscribed_topic_regex


def advance(draft: Draft, around: Surroundings, *, has_changed: bool) -> None:
    """Start the next epoch if the group or its topics have changed, and compute the target if it is behind."""
    has_changed |= _look_at_patterns(draft, around)
    if has_changed or draft.group.looked.topics is not around.topics.moment:
        found = metadata_hash(subscribed_topics(draft.group.all_subscribed_names(), around.topics))
        if has_changed or found != draft.group.metadata_hash:
            draft.put_epoch(draft.group.epoch + 1, found)
        else:
            draft.group.looked.topics = around.topics.moment
    if draft.group.epoch > draft.group.assignment_epoch:
        retarget(draft, around)


def reconcile(draft: Draft, member_id: str, owned: Assignment | None) -> ConsumerMember:
    group = draft.group
    member = group.members[member_id]
    moved = reconcile_member(
        member, group.target_of(member_id), group.assignment_epoch, owned=owned, is_free=group.is_free(member_id)
    )
    if moved is not member:
        draft.put_current(moved)
    return moved


# --- who is it ----------------------------------------------------------------------------------------


def _member(draft: Draft, request: ConsumerHeartbeat, member_id: str) -> ConsumerMember:
    """The member that sent the request: known, new, or the replacement of a static one."""
    group = draft.group
    if request.instance_id is not None:
        _claim_instance(draft, request, request.instance_id, member_id)
        group = draft.group
    member = group.members.get(member_id)
    if member is None:
        if request.member_epoch != JOINING:
            raise _unknown(group, member_id)
        return ConsumerMember(member_id)
    _check_epoch(group, member, request)
    if member.is_away:
        member = replace(member, member_epoch=JOINING, previous_member_epoch=JOINING)
        draft.put_current(member)
    return member


def _claim_instance(draft: Draft, request: ConsumerHeartbeat, instance_id: str, member_id: str) -> None:
    group = draft.group
    present = group.static_member(instance_id)
    if request.member_epoch != JOINING:
        if present is None:
            raise _unknown(group, member_id)
        if present.member_id != member_id:
            raise RefusedError(
                ErrorCode.FENCED_INSTANCE_ID, f"The instance {instance_id} is now member {present.member_id}."
            )
    elif present is not None and present.member_id != member_id:
        if not (present.is_away or present.uses_classic_protocol):
            raise RefusedError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"The instance {instance_id} is in use by member {present.member_id}.",
            )
        take_static_place(draft, present, member_id)


def take_static_place(draft: Draft, present: ConsumerMember, member_id: str) -> None:
    """Let the new member take over the instance id's place: the other members are not affected."""
    target = draft.group.target_of(present.member_id)
    draft.delete_member(present.member_id)
    draft.put_metadata(member_id, present.metadata)
    draft.put_target(member_id, target)
    draft.put_current(replace(present, member_id=member_id, member_epoch=JOINING, previous_member_epoch=JOINING))


def _check_epoch(group: ConsumerGroup, member: ConsumerMember, request: ConsumerHeartbeat) -> None:
    epoch = request.member_epoch
    if epoch in (JOINING, member.member_epoch):
        return
    missed_a_reply = epoch == member.previous_member_epoch and request.owned is not None
    if missed_a_reply and is_within(request.owned or NOTHING, member.assigned):
        return
    raise RefusedError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"Member {member.member_id} of {group.group_id} is at epoch {member.member_epoch}, not {epoch}; "
        "it has to join again.",
    )


def _unknown(group: ConsumerGroup, member_id: str) -> RefusedError:
    return RefusedError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not in group {group.group_id}.")


def _updated_metadata(
    metadata: ConsumerGroupMemberMetadataValue, request: ConsumerHeartbeat
) -> ConsumerGroupMemberMetadataValue:
    """The member's metadata after this request."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    if metadata is not NOT_TOLD and not _says_something(request) and metadata.client_id == request.client_id:
        return metadata
    return ConsumerGroupMemberMetadataValue(
        instance_id=metadata.instance_id if request.instance_id is None else request.instance_id,
        rack_id=metadata.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        subscribed_topic_names=metadata.subscribed_topic_names if names is None else tuple(sorted(set(names))),
        subscribed_topic_regex=metadata.subscribed_topic_regex if regex is None else regex or None,
        rebalance_timeout_ms=(
            metadata.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        server_assignor=metadata.server_assignor if request.server_assignor is None else request.server_assignor,
        classic_member_metadata=None,
    )


def _says_something(request: ConsumerHeartbeat) -> bool:
    said = (request.rack_id, request.subscribed_topic_names, request.subscribed_topic_regex, request.server_assignor)
    return request.rebalance_timeout_ms != -1 or any(one is not None for one in said)


# --- what it subscribes to ----------------------------------------------------------------------------


def _look_at_patterns(draft: Draft, around: Surroundings) -> bool:
    """Resolve the group's patterns again if that is due; returns whether some match other topics than before."""
    group = draft.group
    used = {regex for member in group.members.values() if (regex := member.metadata.subscribed_topic_regex)}
    if not used and not group.regexes:
        return False
    for regex in group.regexes.keys() - used:
        draft.delete_regex(regex)
    refresh_ms = draft.group.looked.patterns_ms + around.settings.group_consumer_regex_refresh_interval_ms
    is_due = draft.group.looked.patterns is not around.topics.moment or around.now_ms >= refresh_ms
    has_changed = False
    for regex in sorted(used if is_due else used - group.regexes.keys()):
        found = matching(regex, around.topics.names())
        present = draft.group.regexes.get(regex)
        if present is None or present.topics != found:
            draft.put_regex(regex, found, around.now_ms)
            has_changed = True
    if is_due and not has_changed:
        draft.group.looked.patterns, draft.group.looked.patterns_ms = around.topics.moment, around.now_ms
    return has_changed


# --- targets ------------------------------------------------------------------------------------------


def retarget(draft: Draft, around: Surroundings) -> None:
    """Compute the target assignment of the group's epoch and write what differs from before."""
    group = draft.group
    topics = subscribed_topics(group.all_subscribed_names(), around.topics)
    subscribers = {
        member.member_id: Subscriber(
            frozenset(topics.ids[name] for name in group.subscribed_names(member) if name in topics.ids),
            member.metadata.instance_id,
        )
        for member in group.members.values()
    }
    targets = ASSIGNORS[assignor_of(group, around.settings)](subscribers, topics.partition_counts, group.targets)
    for member_id, target in targets.items():
        if group.targets.get(member_id) != target:
            draft.put_target(member_id, target)
    draft.put_assignment_epoch(group.epoch, around.now_ms)


def assignor_of(group: ConsumerGroup, settings: ConsumerSettings) -> str:
    """The assignor that most members request if it is offered, else the first one offered."""
    offered = [name for name in settings.group_consumer_assignors if name in ASSIGNORS]
    preferred = group.preferred_assignor()
    return preferred if preferred in offered else next(iter(offered), "uniform")


# --- leaving ------------------------------------------------------------------------------------------


def remove_member(draft: Draft, member_id: str, around: Surroundings) -> None:
    """Remove a member and start the next epoch; the target is computed at the next heartbeat of any member."""
    draft.delete_member(member_id)
    group = draft.group
    used = {member.metadata.subscribed_topic_regex for member in group.members.values()}
    for regex in group.regexes.keys() - used:
        draft.delete_regex(regex)
    found = metadata_hash(subscribed_topics(draft.group.all_subscribed_names(), around.topics))
    draft.put_epoch(group.epoch + 1, found)


def leave(draft: Draft, request: ConsumerHeartbeat, around: Surroundings) -> str:
    """Remove a leaving member, or mark a static one as temporarily away; returns its id."""
    group = draft.group
    member = group.members.get(request.member_id)
    if request.instance_id is not None:
        present = group.static_member(request.instance_id)
        if present is not None and present.member_id != request.member_id:
            raise RefusedError(
                ErrorCode.FENCED_INSTANCE_ID, f"The instance {request.instance_id} is now member {present.member_id}."
            )
        member = present
    if member is None:
        raise _unknown(group, request.member_id)
    if request.member_epoch == LEAVING:
        remove_member(draft, member.member_id, around)
    else:
        away = replace(member, member_epoch=LEAVING_FOR_A_WHILE, pending_revocation=NOTHING)
        draft.put_current(away)
    return member.member_id


IsFree = Callable[[UUID, int], bool]


def reconcile_member(
    member: ConsumerMember, target: Assignment, target_epoch: int, *, owned: Assignment | None, is_free: IsFree
) -> ConsumerMember:
    """The member after this heartbeat; the same object if nothing changes.

    `owned` is what the member reports as owned, `None` if the request does not contain it. `is_free` returns whether
    no other member holds a partition.
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
    return replace(moved, state=state, assigned=union(kept, free), pending_revocation=NOTHING)


def _still_owns(owned: Assignment | None, partitions: Assignment) -> bool:
    """A member that does not report what it owns still owns it."""
    return owned is None or overlaps(owned, partitions)


def _free(partitions: Assignment, is_free: IsFree) -> Assignment:
    return {
        topic: free
        for topic, numbers in partitions.items()
        if (free := frozenset(number for number in numbers if is_free(topic, number)))
    }
