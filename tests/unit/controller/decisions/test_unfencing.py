"""Which partitions a broker leads once it is unfenced."""

from __future__ import annotations

import uuid

import pytest

from moldau.controller.decisions.brokers import unfencing
from moldau.controller.image import NO_LEADER, MetadataImage
from moldau.controller.replay import replay_records
from moldau.protocol.metadata_records import PartitionChangeRecord, PartitionRecord, TopicRecord

TOPIC_ID = uuid.UUID(int=7)


def image_with(*, leader: int, isr: tuple[int, ...], elr: tuple[int, ...] | None = None) -> MetadataImage:
    records = [
        TopicRecord(name="orders", topic_id=TOPIC_ID),
        PartitionRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            replicas=(1, 2),
            isr=isr,
            leader=leader,
            leader_epoch=4,
            partition_epoch=4,
            eligible_leader_replicas=elr,
        ),
    ]
    return replay_records(MetadataImage(), records, offset=1, epoch=1).image


@pytest.mark.parametrize(
    ("leader", "isr", "leads"),
    [(1, (1, 2), True), (NO_LEADER, (1,), True), (NO_LEADER, (2,), False), (2, (1, 2), False)],
)
def test_a_broker_takes_up_what_it_led_or_what_nobody_leads(leader: int, isr: tuple[int, ...], leads: bool) -> None:
    elections = [record for record in unfencing(image_with(leader=leader, isr=isr), 1, 9) if _is_election(record)]
    assert bool(elections) is leads


def test_the_last_replica_to_leave_comes_back_as_leader() -> None:
    """Kafka 4.1 and later empty the set in sync when the last broker stops, and remember it as eligible."""
    image = image_with(leader=NO_LEADER, isr=(), elr=(1,))
    elections = [record for record in unfencing(image, 1, 9) if _is_election(record)]
    changed = replay_records(image, elections, offset=3, epoch=2).image
    partition = changed.topics["orders"].partitions[0]
    assert (partition.leader, partition.isr, partition.eligible_leader_replicas) == (1, (1,), ())
    assert partition.leader_epoch == 5


def test_a_replica_that_fell_behind_does_not_lead() -> None:
    assert not any(_is_election(record) for record in unfencing(image_with(leader=NO_LEADER, isr=(), elr=(2,)), 1, 9))


def _is_election(record: object) -> bool:
    return isinstance(record, PartitionChangeRecord)
