"""What a controller does when a broker says where its replicas are."""

from __future__ import annotations

import uuid

from moldau.controller.decisions.partition_changes import LOST
from moldau.controller.decisions.replica_places import ReplicaPlace, decide_place
from moldau.controller.features import ELIGIBLE_LEADER_REPLICAS
from moldau.controller.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from moldau.controller.replay import replay_records
from moldau.core.errors import ErrorCode

TOPIC_ID = uuid.UUID(int=700)


def directory(node_id: int) -> uuid.UUID:
    return uuid.UUID(int=1000 + node_id)


def image_of(*replicas: int) -> MetadataImage:
    partition = PartitionImage(replicas, replicas, replicas[0], directories=tuple(directory(one) for one in replicas))
    return MetadataImage(
        topics={"t": TopicImage("t", TOPIC_ID, {0: partition})},
        topic_names={TOPIC_ID: "t"},
        brokers={one: BrokerImage(one, one, None, {}, is_fenced=False, log_dirs=(directory(one),)) for one in replicas},
        features={ELIGIBLE_LEADER_REPLICAS: 1},
    )


def placed(image: MetadataImage, node_id: int, where: uuid.UUID) -> MetadataImage:
    records = decide_place(image, node_id, ReplicaPlace(where, TOPIC_ID, 0))
    assert not isinstance(records, ErrorCode)
    return replay_records(image, records, offset=image.offset + 1, epoch=1).image


def state(image: MetadataImage) -> PartitionImage:
    return image.topics["t"].partitions[0]


def test_others_lead_what_a_broker_cannot_use_and_it_does_not_lead_until_it_is_in_sync() -> None:
    image = placed(image_of(1, 2, 3), 1, LOST)
    assert (state(image).leader, state(image).isr) == (2, (2, 3))
    assert state(image).directories == (LOST, directory(2), directory(3))
    back = state(placed(image, 1, directory(1)))
    assert (back.leader, back.isr, back.directories[0]) == (2, (2, 3), directory(1))


def test_the_only_replica_leads_again_when_its_directory_can_be_used() -> None:
    image = placed(image_of(1), 1, LOST)
    assert (state(image).leader, state(image).last_known_elr) == (-1, (1,))
    assert state(placed(image, 1, directory(1))).leader == 1


def test_strange_places_are_refused() -> None:
    image = image_of(1, 2)
    assert decide_place(image, 3, ReplicaPlace(LOST, TOPIC_ID, 0)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert decide_place(image, 1, ReplicaPlace(LOST, TOPIC_ID, 5)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert decide_place(image, 1, ReplicaPlace(LOST, uuid.UUID(int=3), 0)) is ErrorCode.UNKNOWN_TOPIC_ID
