"""Topics that come, grow and go, as lines of the server's log."""

from __future__ import annotations

import uuid
from random import Random

from moldau.controller.decisions.topics import (
    MorePartitions,
    NewTopic,
    TopicDecision,
    TopicRef,
    decide_partition_creation,
    decide_topic_creation,
    decide_topic_deletion,
)
from moldau.controller.image import BrokerImage, Endpoint, MetadataImage
from moldau.controller.replay import ImageDelta, replay_records
from moldau.core.config import BrokerConfig
from moldau.core.ids import render_uuid
from moldau.server.topic_changes import topic_changes

BROKER = BrokerImage(
    node_id=1,
    epoch=1,
    incarnation_id=uuid.uuid4(),
    endpoints={"PLAINTEXT": Endpoint("PLAINTEXT", "h", 9092)},
    is_fenced=False,
    log_dirs=(uuid.uuid4(),),
)
EMPTY = MetadataImage(brokers={1: BROKER})


def applied(image: MetadataImage, decision: TopicDecision) -> ImageDelta:
    return replay_records(image, decision.records, offset=image.offset + 1, epoch=1)


def created(image: MetadataImage, *topics: NewTopic) -> ImageDelta:
    return applied(image, decide_topic_creation(image, topics, BrokerConfig(), random=Random(1)))


def test_a_topic_that_comes_grows_and_goes() -> None:
    delta = created(EMPTY, NewTopic("t", 3, 1, configs={"segment.ms": "5000", "cleanup.policy": "compact"}))
    topic_id = render_uuid(delta.image.topics["t"].topic_id)
    assert topic_changes(delta) == [
        f"created topic t with 3 partitions (id {topic_id}), cleanup.policy=compact, segment.ms=5000"
    ]
    grown = applied(delta.image, decide_partition_creation(delta.image, [MorePartitions("t", 4)], random=Random(1)))
    assert topic_changes(grown) == ["topic t has 4 partitions, 3 before"]
    gone = applied(grown.image, decide_topic_deletion(grown.image, [TopicRef("t")]))
    assert topic_changes(gone) == [f"deleted topic t (id {topic_id})"]


def test_many_at_once_are_one_line() -> None:
    delta = created(EMPTY, *(NewTopic(f"t{number:04}", 1, 1) for number in range(1000)))
    assert topic_changes(delta) == ["created 1000 topics: t0000, t0001, t0002 and 997 more"]


def test_other_changes_are_not_about_topics() -> None:
    delta = created(EMPTY, NewTopic("t", 1, 1))
    assert topic_changes(replay_records(delta.image, [], offset=9, epoch=1)) == []
