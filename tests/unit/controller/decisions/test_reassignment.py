"""Reassignment of replicas, as decisions over the image: begin, progress, completion, cancelling, refusals."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.controller.decisions.elections import IsrProposal, decide_isr
from moldau.controller.decisions.reassignment import Reassignment, decide_reassignments, is_reassigned
from moldau.controller.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from moldau.controller.replay import replay_records
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_records import PartitionChangeRecord

TOPIC_ID = uuid.UUID(int=700)


def directory(node_id: int) -> uuid.UUID:
    return uuid.UUID(int=1000 + node_id)


def image_of(partition: PartitionImage, brokers: int = 5, fenced: tuple[int, ...] = ()) -> MetadataImage:
    return MetadataImage(
        topics={"t": TopicImage("t", TOPIC_ID, {0: partition})},
        topic_names={TOPIC_ID: "t"},
        brokers={
            node_id: BrokerImage(
                node_id, node_id, None, {}, is_fenced=node_id in fenced, log_dirs=(directory(node_id),)
            )
            for node_id in range(1, brokers + 1)
        },
    )


def three_replicas(**changes: object) -> PartitionImage:
    replicas = (1, 2, 3)
    directories = tuple(directory(one) for one in replicas)
    return PartitionImage(replicas, replicas, 1, 4, 9, directories=directories)._replace(**changes)


def reassign(image: MetadataImage, *target: int, cancel: bool = False) -> MetadataImage:
    decision = decide_reassignments(image, [Reassignment("t", 0, None if cancel else target)])
    assert [one.error for one in decision.results] == [ErrorCode.NONE]
    return replay_records(image, decision.records, offset=image.offset + 1, epoch=1).image


def in_sync(image: MetadataImage, *isr: int) -> MetadataImage:
    """The leader reports this ISR."""
    topic = image.topics["t"]
    now = topic.partitions[0]
    proposal = IsrProposal(now.leader, now.leader_epoch, now.partition_epoch, tuple((one, -1) for one in isr))
    record = decide_isr(image, topic, 0, proposal)
    assert isinstance(record, PartitionChangeRecord)
    return replay_records(image, [record], offset=image.offset + 1, epoch=1).image


def state(image: MetadataImage) -> PartitionImage:
    return image.topics["t"].partitions[0]


def test_new_replicas_are_added_first_and_the_old_ones_go_when_the_new_ones_are_in_sync() -> None:
    image = reassign(image_of(three_replicas()), 3, 4, 5)
    begun = state(image)
    assert begun.replicas == (3, 4, 5, 1, 2)
    assert (begun.adding_replicas, begun.removing_replicas) == ((4, 5), (1, 2))
    assert begun.directories == tuple(directory(one) for one in begun.replicas)
    assert (begun.leader, begun.leader_epoch, begun.partition_epoch) == (1, 4, 10)

    image = in_sync(image, 1, 2, 3, 4)
    assert is_reassigned(state(image))

    image = in_sync(image, 1, 2, 3, 4, 5)
    done = state(image)
    assert (done.replicas, done.isr) == ((3, 4, 5), (3, 4, 5))
    assert (done.leader, done.leader_epoch) == (3, 5)
    assert not is_reassigned(done)
    assert done.directories == tuple(directory(one) for one in done.replicas)


def test_lowering_the_replication_factor_is_done_at_once_and_starts_a_leader_epoch() -> None:
    done = state(reassign(image_of(three_replicas()), 1, 3))
    assert (done.replicas, done.isr, done.leader, done.leader_epoch) == ((1, 3), (1, 3), 1, 5)
    assert not is_reassigned(done)


def test_another_order_of_the_same_replicas_is_no_reassignment() -> None:
    done = state(reassign(image_of(three_replicas()), 3, 1, 2))
    assert (done.replicas, done.leader, done.leader_epoch) == ((3, 1, 2), 1, 4)
    assert done.directories == tuple(directory(one) for one in (3, 1, 2))


def test_the_old_replicas_stay_while_none_of_the_wanted_is_in_sync() -> None:
    image = reassign(image_of(three_replicas(isr=(1,))), 2, 3)
    waiting = state(image)
    assert (waiting.replicas, waiting.removing_replicas, waiting.leader) == ((2, 3, 1), (1,), 1)
    done = state(in_sync(image, 1, 2))
    assert (done.replicas, done.isr, done.leader) == ((2, 3), (2,), 2)


def test_cancelling_gives_the_replicas_back_that_were_there() -> None:
    image = reassign(image_of(three_replicas()), 1, 4, 5)
    image = in_sync(image, 1, 2, 3, 4)
    back = state(reassign(image, cancel=True))
    assert sorted(back.replicas) == [1, 2, 3]
    assert sorted(back.isr) == [1, 2, 3]
    assert (back.leader, back.leader_epoch) == (1, 5)
    assert not is_reassigned(back)


def test_a_reassignment_can_be_replaced_by_another() -> None:
    image = reassign(image_of(three_replicas()), 1, 2, 4)
    image = reassign(image, 1, 4, 5)
    now = state(image)
    assert (set(now.adding_replicas), set(now.removing_replicas)) == ({4, 5}, {2, 3})
    assert state(in_sync(image, 1, 2, 3, 4, 5)).replicas == (1, 4, 5)


def refused(image: MetadataImage, *wanted: Reassignment, **how: bool) -> list[ErrorCode]:
    decision = decide_reassignments(image, wanted, **how)
    assert decision.records == []
    return [one.error for one in decision.results]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (Reassignment("u", 0, (1,)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Reassignment("t", 7, (1,)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Reassignment("t", 0, ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Reassignment("t", 0, (1, 1)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Reassignment("t", 0, (-1, 1)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Reassignment("t", 0, (1, 9)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Reassignment("t", 0, None), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_what_cannot_be_is_refused(wanted: Reassignment, code: ErrorCode) -> None:
    assert refused(image_of(three_replicas()), wanted) == [code]


def test_a_request_may_forbid_another_replication_factor() -> None:
    image = image_of(three_replicas())
    wanted = Reassignment("t", 0, (1, 2))
    assert refused(image, wanted, may_change_factor=False) == [ErrorCode.INVALID_REPLICATION_FACTOR]


def test_cancelling_is_refused_if_only_an_added_replica_is_in_sync() -> None:
    lonely = three_replicas(
        replicas=(4, 1), isr=(4,), leader=4, adding_replicas=(4,), directories=(directory(4), directory(1))
    )
    image = image_of(lonely)
    assert refused(image, Reassignment("t", 0, None)) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]

    lossy: Callable[[str], bool] = lambda topic: True  # noqa: E731
    decision = decide_reassignments(image, [Reassignment("t", 0, None)], may_lose_data=lossy)
    after = replay_records(image, decision.records, offset=1, epoch=1).image
    assert (state(after).replicas, state(after).leader, state(after).leader_recovery_state) == ((1,), 1, 1)


@given(
    targets=st.lists(
        st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True) | st.none(), min_size=1, max_size=6
    ),
    joins=st.lists(st.sets(st.integers(1, 5)), min_size=6, max_size=6),
)
def test_whatever_is_asked_a_leader_is_in_sync_and_in_sync_replicas_are_assigned(
    targets: list[list[int] | None], joins: list[set[int]]
) -> None:
    image = image_of(three_replicas())
    for target, join in zip(targets, joins, strict=False):
        wanted = Reassignment("t", 0, None if target is None else tuple(target))
        decision = decide_reassignments(image, [wanted])
        image = replay_records(image, decision.records, offset=image.offset + 1, epoch=1).image
        for members in ((), join):
            now = state(image)
            assert now.leader in now.isr
            assert set(now.isr) <= set(now.replicas)
            assert len(set(now.replicas)) == len(now.replicas)
            assert set(now.adding_replicas) <= set(now.replicas)
            assert set(now.removing_replicas) <= set(now.replicas)
            assert len(now.directories) == len(now.replicas)
            image = in_sync(image, *{*now.isr, *(members & set(now.replicas) if members else ())})
    target = next((one for one in reversed(targets[:6]) if one), None)
    now = state(image)
    everyone = state(in_sync(image, *now.replicas))
    assert not is_reassigned(everyone)
    assert target is None or targets[:6][-1] is None or everyone.replicas == tuple(target)
