"""Elections of partition leaders: decides from the image alone who leads, and who counts as in sync.

A leader must be an active broker and, unless data may be lost, in the ISR. When the last member of an ISR goes away the
partition has no leader until that broker is back: it stays in the ISR or, in a cluster that keeps them, becomes an
eligible leader replica. Start at `leave` and `elect`; `controller.decisions.partition_changes` has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from moldau.controller.decisions.partition_changes import RECOVERED, RECOVERING, PartitionDraft
from moldau.controller.image import NO_LEADER, MetadataImage, TopicImage
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_records import PartitionChangeRecord

__all__ = [
    "IsrProposal",
    "decide_isr",
    "elect",
    "elect_preferred",
    "leave",
    "return_to",
    "unbalanced",
]

MayLoseData = Callable[[str], bool]
"""Whether a topic's `unclean.leader.election.enable` is on."""


def never(topic: str) -> bool:
    return False


def leave(
    image: MetadataImage, node_id: int, may_lose_data: MayLoseData = never, *, is_orderly: bool = True
) -> Iterator[PartitionChangeRecord]:
    """A broker is not active any more in `image`: others lead what it led, and it leaves the ISRs.

    Without order it may have lost the end of its logs, so it is no eligible leader either.
    """
    for topic in image.topics.values():
        for number, partition in topic.partitions.items():
            is_eligible = node_id in partition.eligible_leader_replicas
            if node_id != partition.leader and node_id not in partition.isr and (is_orderly or not is_eligible):
                continue
            draft = PartitionDraft(image, topic, number)
            draft.isr = tuple(one for one in partition.isr if one != node_id)
            draft.lost = frozenset() if is_orderly else frozenset({node_id})
            draft.may_lose_data = may_lose_data(topic.name)
            record = draft.record()
            if record is not None:
                yield record


def return_to(
    image: MetadataImage, node_id: int, may_lose_data: MayLoseData = never
) -> Iterator[PartitionChangeRecord]:
    """A broker is unfenced (it is in `image` already): it leads the partitions that waited for it."""
    for topic in image.topics.values():
        for number, partition in topic.partitions.items():
            if partition.leader == NO_LEADER and node_id in partition.replicas:
                record = _with_leader(image, topic, number, may_lose=may_lose_data(topic.name))
                if record is not None:
                    yield record


def _with_leader(
    image: MetadataImage, topic: TopicImage, number: int, *, may_lose: bool
) -> PartitionChangeRecord | None:
    draft = PartitionDraft(image, topic, number)
    draft.may_lose_data = may_lose
    record = draft.record()
    return None if draft.leader == NO_LEADER else record


def elect(image: MetadataImage, topic: TopicImage, number: int, *, may_lose: bool) -> PartitionChangeRecord | ErrorCode:
    """Elect a leader where there is none, on an operator's request."""
    if topic.partitions[number].leader != NO_LEADER:
        return ErrorCode.ELECTION_NOT_NEEDED
    return _with_leader(image, topic, number, may_lose=may_lose) or ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def elect_preferred(image: MetadataImage, topic: TopicImage, number: int) -> PartitionChangeRecord | ErrorCode:
    """Make the first replica of the assignment the leader, if it is in sync and active."""
    partition = topic.partitions[number]
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        return ErrorCode.ELECTION_NOT_NEEDED
    draft = PartitionDraft(image, topic, number)
    draft.prefers_first = True
    record = draft.record()
    return record if record is not None and draft.leader == preferred else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


def unbalanced(image: MetadataImage) -> Iterator[PartitionChangeRecord]:
    """The changes that give every partition its preferred leader, where that is possible."""
    for topic in image.topics.values():
        for number in topic.partitions:
            record = elect_preferred(image, topic, number)
            if isinstance(record, PartitionChangeRecord):
                yield record


# --- what leaders ask for ---------------------------------------------------------------------------


class IsrProposal(NamedTuple):
    """A leader's AlterPartition for one partition."""

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """Brokers, each with the broker epoch under which it fetched; -1 if that is not known."""
    recovery_state: int = RECOVERED


def decide_isr(
    image: MetadataImage, topic: TopicImage, number: int, proposal: IsrProposal
) -> PartitionChangeRecord | ErrorCode:
    """Accept a leader's in-sync replicas, or say why not.

    Epochs are compared first, so INELIGIBLE_REPLICA tells the leader that nothing it proposed before took effect.
    """
    partition = topic.partitions[number]
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if proposal.leader_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = [one for one, _ in proposal.isr]
    if (
        proposal.leader_id not in members
        or len(set(members)) != len(members)
        or not set(members) <= set(partition.replicas)
        or proposal.recovery_state not in (RECOVERED, RECOVERING)
        or (proposal.recovery_state == RECOVERING and partition.leader_recovery_state == RECOVERED)
        or (proposal.recovery_state == RECOVERING and len(members) > 1)
    ):
        return ErrorCode.INVALID_REQUEST
    for node_id, broker_epoch in proposal.isr:
        broker = image.brokers.get(node_id)
        if broker is None or not broker.is_active or (broker_epoch >= 0 and broker_epoch != broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    draft = PartitionDraft(image, topic, number)
    draft.isr = tuple(one for one in partition.replicas if one in members)
    draft.recovery_state = proposal.recovery_state
    return draft.record() or PartitionChangeRecord(partition_id=number, topic_id=topic.topic_id)
