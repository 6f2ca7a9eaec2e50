"""Elections of partition leaders: decides from the image alone who leads, and who counts as in sync.

A leader must be an active broker and, unless data may be lost, in the ISR. The last member of an ISR stays in it when
its broker goes away: the partition then has no leader until that broker is back. Start at `leave` and `elect`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from moldau.controller.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_records import PartitionChangeRecord

__all__ = [
    "RECOVERED",
    "RECOVERING",
    "IsrProposal",
    "decide_isr",
    "elect",
    "elect_preferred",
    "is_electable",
    "leave",
    "return_to",
    "unbalanced",
]

RECOVERED: Final = 0
RECOVERING: Final = 1
"""The state of a leader elected without regard to lost records, until it has said that it goes on."""

LEADER_UNCHANGED: Final = PartitionChangeRecord.LEADER_UNCHANGED
UNCHANGED_STATE: Final = -1

MayLoseData = Callable[[str], bool]
"""Whether a topic's `unclean.leader.election.enable` is on."""


def never(topic: str) -> bool:
    return False


def is_electable(image: MetadataImage, partition: PartitionImage, node_id: int) -> bool:
    """Whether a broker is active and still has the log directory that the partition was placed in.

    A broker that comes back with an empty disk has a new directory: it may follow, and not lead.
    """
    broker = image.brokers.get(node_id)
    if broker is None or not broker.is_active or node_id not in partition.replicas:
        return False
    if len(partition.directories) != len(partition.replicas):
        return True
    directory = partition.directories[partition.replicas.index(node_id)]
    return directory is None or directory.int < _RESERVED or directory in broker.log_dirs


_RESERVED: Final = 100
"""Directory ids below it have meanings of their own, such as "not assigned yet"."""


class _Choice(NamedTuple):
    leader: int
    isr: tuple[int, ...]
    is_clean: bool = True


def _choose(
    image: MetadataImage, partition: PartitionImage, isr: tuple[int, ...], *, may_lose: bool, but: int = NO_LEADER
) -> _Choice | None:
    """The next leader: the first replica of the assignment that is in `isr`, else any, if that is allowed."""
    electable = [one for one in partition.replicas if one != but and is_electable(image, partition, one)]
    for one in electable:
        if one in isr:
            return _Choice(one, isr)
    if may_lose and electable:
        return _Choice(electable[0], (electable[0],), is_clean=False)
    return None


def leave(image: MetadataImage, node_id: int, may_lose_data: MayLoseData = never) -> Iterator[PartitionChangeRecord]:
    """A broker is fenced or about to stop: others lead what it led, and it leaves the ISRs it is not alone in."""
    for topic in image.topics.values():
        for number, partition in topic.partitions.items():
            if node_id != partition.leader and node_id not in partition.isr:
                continue
            rest = tuple(one for one in partition.isr if one != node_id)
            if partition.leader != node_id:
                if rest:
                    yield _change(topic.topic_id, number, isr=rest)
                continue
            choice = _choose(image, partition, rest, may_lose=may_lose_data(topic.name), but=node_id)
            if choice is None:
                yield _change(topic.topic_id, number, leader=NO_LEADER)
            else:
                yield _elected(topic.topic_id, number, partition, choice)


def return_to(
    image: MetadataImage, node_id: int, may_lose_data: MayLoseData = never
) -> Iterator[PartitionChangeRecord]:
    """A broker is unfenced (it is in `image` already): it leads the partitions that waited for it."""
    for topic in image.topics.values():
        for number, partition in topic.partitions.items():
            if partition.leader == NO_LEADER and node_id in partition.replicas:
                record = _without_leader(image, topic, number, may_lose=may_lose_data(topic.name))
                if record is not None:
                    yield record


def _without_leader(
    image: MetadataImage, topic: TopicImage, number: int, *, may_lose: bool
) -> PartitionChangeRecord | None:
    partition = topic.partitions[number]
    choice = _choose(image, partition, partition.isr, may_lose=may_lose)
    return None if choice is None else _elected(topic.topic_id, number, partition, choice)


def elect(image: MetadataImage, topic: TopicImage, number: int, *, may_lose: bool) -> PartitionChangeRecord | ErrorCode:
    """Elect a leader where there is none, on an operator's request."""
    if topic.partitions[number].leader != NO_LEADER:
        return ErrorCode.ELECTION_NOT_NEEDED
    return _without_leader(image, topic, number, may_lose=may_lose) or ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def elect_preferred(image: MetadataImage, topic: TopicImage, number: int) -> PartitionChangeRecord | ErrorCode:
    """Make the first replica of the assignment the leader, if it is in sync and active."""
    partition = topic.partitions[number]
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        return ErrorCode.ELECTION_NOT_NEEDED
    if preferred not in partition.isr or not is_electable(image, partition, preferred):
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    return _elected(topic.topic_id, number, partition, _Choice(preferred, partition.isr))


def unbalanced(image: MetadataImage) -> Iterator[PartitionChangeRecord]:
    """The changes that give every partition its preferred leader, where that is possible."""
    for topic in image.topics.values():
        for number in topic.partitions:
            record = elect_preferred(image, topic, number)
            if isinstance(record, PartitionChangeRecord):
                yield record


def _elected(topic_id: uuid.UUID, number: int, partition: PartitionImage, choice: _Choice) -> PartitionChangeRecord:
    return _change(
        topic_id,
        number,
        leader=choice.leader,
        isr=None if choice.isr == partition.isr else choice.isr,
        recovery_state=UNCHANGED_STATE if choice.is_clean else RECOVERING,
    )


def _change(
    topic_id: uuid.UUID,
    number: int,
    *,
    leader: int = LEADER_UNCHANGED,
    isr: tuple[int, ...] | None = None,
    recovery_state: int = UNCHANGED_STATE,
) -> PartitionChangeRecord:
    return PartitionChangeRecord(
        partition_id=number, topic_id=topic_id, leader=leader, isr=isr, leader_recovery_state=recovery_state
    )


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
    changes_state = proposal.recovery_state != partition.leader_recovery_state
    return _change(
        topic.topic_id,
        number,
        isr=tuple(one for one in partition.replicas if one in members),
        recovery_state=proposal.recovery_state if changes_state else UNCHANGED_STATE,
    )
