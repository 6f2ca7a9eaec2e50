"""Reassignment: decides from the image alone how a partition gets other replicas, or keeps those it had.

The new replicas are added first; the controller removes the old ones when a leader reports the added ones as in sync
(`controller.decisions.partition_changes`). Start at `decide_reassignments`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from moldau.controller.decisions.partition_changes import PartitionDraft
from moldau.controller.errors import RefusedError, refusal_of
from moldau.controller.image import MetadataImage, PartitionImage, TopicImage
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.metadata_records import MetadataRecord, PartitionChangeRecord

__all__ = ["Reassignment", "ReassignmentDecision", "ReassignmentResult", "decide_reassignments", "is_reassigned"]


class Reassignment(NamedTuple):
    """The replicas that one partition is to have."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None
    """`None` cancels a reassignment that is under way."""


class ReassignmentResult(NamedTuple):
    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class ReassignmentDecision(NamedTuple):
    records: list[MetadataRecord]
    results: list[ReassignmentResult]


def is_reassigned(partition: PartitionImage) -> bool:
    """Whether a reassignment is under way."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def decide_reassignments(
    image: MetadataImage,
    wanted: Sequence[Reassignment],
    *,
    may_change_factor: bool = True,
    may_lose_data: Callable[[str], bool] = lambda topic: False,
) -> ReassignmentDecision:
    """Begin or cancel reassignments; one result for each, in order."""
    decision = ReassignmentDecision([], [])
    seen: set[tuple[str, int]] = set()
    for one in wanted:
        try:
            if (one.topic, one.partition) in seen:
                text = f"Partition {one.topic}-{one.partition} is in the request more than once."
                raise RefusedError(ErrorCode.INVALID_REQUEST, text)
            seen.add((one.topic, one.partition))
            topic = _find(image, one)
            if one.replicas is None:
                record = _cancellation(image, topic, one.partition, may_lose=may_lose_data(one.topic))
            else:
                _check_replicas(image, one.replicas)
                if not may_change_factor:
                    _check_factor(topic.partitions[one.partition], one.replicas)
                record = _beginning(image, topic, one.partition, one.replicas)
        except MoldauError as error:
            decision.results.append(ReassignmentResult(one.topic, one.partition, *refusal_of(error)))
            continue
        if record is not None:
            decision.records.append(record)
        decision.results.append(ReassignmentResult(one.topic, one.partition))
    return decision


def _find(image: MetadataImage, wanted: Reassignment) -> TopicImage:
    topic = image.topics.get(wanted.topic)
    if topic is None:
        raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {wanted.topic}.")
    if wanted.partition not in topic.partitions:
        text = f"Unable to find partition {wanted.topic}:{wanted.partition}."
        raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return topic


def _check_replicas(image: MetadataImage, replicas: tuple[int, ...]) -> None:
    prefix = "The manual partition assignment includes"
    problem = None
    if not replicas:
        problem = f"{prefix} an empty replica list."
    for node_id in sorted(replicas):
        if node_id < 0:
            problem = f"{prefix} an invalid broker id {node_id}."
        elif replicas.count(node_id) > 1:
            problem = f"{prefix} the broker {node_id} more than once."
        elif node_id not in image.brokers:
            problem = f"{prefix} broker {node_id}, but no such broker is registered."
        if problem is not None:
            break
    if problem is not None:
        raise RefusedError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def _check_factor(partition: PartitionImage, replicas: tuple[int, ...]) -> None:
    present = len(set(partition.replicas) - set(partition.removing_replicas))
    if present != len(replicas):
        raise RefusedError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor would change from {present} to {len(replicas)}, and the request forbids that.",
        )


def _beginning(
    image: MetadataImage, topic: TopicImage, number: int, target: tuple[int, ...]
) -> PartitionChangeRecord | None:
    """Add what is missing. What another reassignment was adding goes on if it is still wanted."""
    present = topic.partitions[number]
    draft = PartitionDraft(image, topic, number)
    draft.removing = tuple(one for one in present.replicas if one not in target)
    draft.adding = tuple(one for one in target if one not in present.replicas or one in present.adding_replicas)
    draft.replicas = (*target, *draft.removing)
    return draft.record()


def _cancellation(
    image: MetadataImage, topic: TopicImage, number: int, *, may_lose: bool
) -> PartitionChangeRecord | None:
    present = topic.partitions[number]
    if not is_reassigned(present):
        raise RefusedError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    draft = PartitionDraft(image, topic, number)
    draft.adding = draft.removing = ()
    draft.replicas = tuple(one for one in present.replicas if one not in present.adding_replicas)
    draft.isr = tuple(one for one in present.isr if one in draft.replicas)
    draft.may_lose_data = may_lose
    if not draft.isr and not may_lose:
        raise RefusedError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {topic.name}:{number} because it would require an unclean "
            "leader election.",
        )
    return draft.record()
