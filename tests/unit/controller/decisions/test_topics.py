"""Creating, growing and deleting topics: what is decided, and with which words it is refused."""

from __future__ import annotations

import uuid
from random import Random

import pytest

from moldau.controller.decisions.topics import (
    Assignment,
    MorePartitions,
    NewTopic,
    TopicRef,
    TopicResult,
    decide_partition_creation,
    decide_topic_creation,
    decide_topic_deletion,
)
from moldau.controller.image import BrokerImage, Endpoint, MetadataImage
from moldau.controller.replay import replay_records
from moldau.core.config import BrokerConfig
from moldau.core.errors import ErrorCode

DIRECTORY = uuid.uuid4()


def broker(node_id: int, *, fenced: bool = False) -> BrokerImage:
    return BrokerImage(
        node_id=node_id,
        epoch=1,
        incarnation_id=uuid.uuid4(),
        endpoints={"PLAINTEXT": Endpoint("PLAINTEXT", "h", 9092)},
        is_fenced=fenced,
        log_dirs=(DIRECTORY,),
    )


def cluster(*node_ids: int) -> MetadataImage:
    return MetadataImage(brokers={node_id: broker(node_id) for node_id in node_ids or (1,)})


def with_topics(image: MetadataImage, *topics: NewTopic) -> MetadataImage:
    decision = decide_topic_creation(image, topics, BrokerConfig(), random=Random(1))
    assert all(result.error is ErrorCode.NONE for result in decision.results)
    return replay_records(image, decision.records, offset=10, epoch=1).image


def refused(topic: NewTopic, image: MetadataImage | None = None) -> TopicResult:
    decision = decide_topic_creation(image or cluster(), [topic], BrokerConfig(), random=Random(1))
    assert decision.records == []
    (result,) = decision.results
    return result


def test_a_topic_gets_an_id_partitions_a_leader_and_its_settings() -> None:
    image = with_topics(cluster(1), NewTopic(name="t", partitions=2, replication_factor=1, configs={"segment.ms": "5"}))
    topic = image.topics["t"]
    assert image.topic_by_id(topic.topic_id) is topic
    assert sorted(topic.partitions) == [0, 1]
    partition = topic.partitions[0]
    assert (partition.replicas, partition.isr, partition.leader, partition.leader_epoch) == ((1,), (1,), 1, 0)
    assert partition.directories == (DIRECTORY,)
    assert image.topic_config("t") == {"segment.ms": "5"}


def test_minus_one_means_the_brokers_defaults() -> None:
    config = BrokerConfig({"num.partitions": "4", "default.replication.factor": "2"})
    decision = decide_topic_creation(cluster(1, 2, 3), [NewTopic(name="t")], config, random=Random(1))
    (result,) = decision.results
    assert (result.partitions, result.replication_factor) == (4, 2)


@pytest.mark.parametrize(
    ("topic", "error", "words"),
    [
        (NewTopic(name=""), ErrorCode.INVALID_TOPIC_EXCEPTION, "empty"),
        (NewTopic(name=".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "not allowed"),
        (NewTopic(name="a b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "characters other than"),
        (NewTopic(name="ü"), ErrorCode.INVALID_TOPIC_EXCEPTION, "characters other than"),
        (NewTopic(name="x\n"), ErrorCode.INVALID_TOPIC_EXCEPTION, "characters other than"),
        (NewTopic(name="x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "at most 249"),
        (NewTopic(name="__cluster_metadata"), ErrorCode.INVALID_TOPIC_EXCEPTION, "internal topic of the cluster"),
        (NewTopic(name="t", partitions=0), ErrorCode.INVALID_PARTITIONS, "larger than 0"),
        (NewTopic(name="t", partitions=-2), ErrorCode.INVALID_PARTITIONS, "larger than 0"),
        (NewTopic(name="t", partitions=10_001), ErrorCode.POLICY_VIOLATION, "10000"),
        (NewTopic(name="t", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (NewTopic(name="t", replication_factor=2), ErrorCode.INVALID_REPLICATION_FACTOR, "available brokers: 1"),
        (NewTopic(name="t", configs={"x": "1"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: x"),
        (NewTopic(name="t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG, "Null value"),
        (NewTopic(name="t", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG, "64-bit number"),
        (
            NewTopic(name="t", partitions=1, assignments=(Assignment(0, (1,)),)),
            ErrorCode.INVALID_REQUEST,
            "not both",
        ),
        (NewTopic(name="t", assignments=(Assignment(1, (1,)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "from 0 on"),
        (NewTopic(name="t", assignments=(Assignment(0, (1, 1)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "twice"),
        (NewTopic(name="t", assignments=(Assignment(0, ()),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no replicas"),
        (
            NewTopic(name="t", assignments=(Assignment(0, (9,)),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "not registered",
        ),
    ],
)
def test_what_cannot_be_created_is_refused_with_the_reason(topic: NewTopic, error: ErrorCode, words: str) -> None:
    result = refused(topic)
    assert result.error is error
    assert words in (result.message or "")


def test_an_existing_topic_is_not_created_again() -> None:
    image = with_topics(cluster(), NewTopic(name="t"))
    result = refused(NewTopic(name="t"), image)
    assert (result.error, result.message) == (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.")


def test_names_that_differ_in_dots_and_underscores_only_collide() -> None:
    image = with_topics(cluster(), NewTopic(name="a.b_c"))
    assert refused(NewTopic(name="a_b.c"), image).error is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_names_also_collide_within_one_request() -> None:
    decision = decide_topic_creation(
        cluster(), [NewTopic(name="a.b"), NewTopic(name="a_b")], BrokerConfig(), random=Random(1)
    )
    assert [result.error for result in decision.results] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_a_name_asked_for_twice_is_refused_and_the_others_are_not() -> None:
    topics = [NewTopic(name="t"), NewTopic(name="u"), NewTopic(name="t")]
    decision = decide_topic_creation(cluster(), topics, BrokerConfig(), random=Random(1))
    errors = {result.name: result.error for result in decision.results}
    assert errors == {"t": ErrorCode.INVALID_REQUEST, "u": ErrorCode.NONE}
    assert len(decision.results) == 2


def test_an_assignment_decides_replicas_and_leader() -> None:
    assigned = NewTopic(name="t", assignments=(Assignment(1, (3, 1)), Assignment(0, (2, 3))))
    image = with_topics(cluster(1, 2, 3), assigned)
    partitions = image.topics["t"].partitions
    assert [(partitions[number].replicas, partitions[number].leader) for number in (0, 1)] == [((2, 3), 2), ((3, 1), 3)]


def test_replicas_on_fenced_brokers_are_not_in_sync() -> None:
    image = MetadataImage(brokers={1: broker(1, fenced=True), 2: broker(2)})
    image = with_topics(image, NewTopic(name="t", assignments=(Assignment(0, (1, 2)),)))
    partition = image.topics["t"].partitions[0]
    assert (partition.isr, partition.leader) == ((2,), 2)


def test_partitions_are_added_after_those_there_are() -> None:
    image = with_topics(cluster(), NewTopic(name="t", partitions=2))
    decision = decide_partition_creation(image, [MorePartitions(name="t", total=5)], random=Random(1))
    grown = replay_records(image, decision.records, offset=20, epoch=1).image
    assert sorted(grown.topics["t"].partitions) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        (MorePartitions(name="t", total=3), ErrorCode.INVALID_PARTITIONS, "Topic already has 3 partition(s)."),
        (
            MorePartitions(name="t", total=2),
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 3 partition(s); 2 would not be an increase.",
        ),
        (MorePartitions(name="u", total=2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Topic 'u' does not exist."),
        (
            MorePartitions(name="t", total=5, assignments=((1,),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "2 partition(s) are to be added, but 1 are assigned.",
        ),
        (
            MorePartitions(name="t", total=4, assignments=((7,),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The assignment of partition 3 names a broker that is not registered: [7].",
        ),
    ],
)
def test_growth_that_is_none_is_refused(more: MorePartitions, error: ErrorCode, message: str) -> None:
    image = with_topics(cluster(), NewTopic(name="t", partitions=3))
    decision = decide_partition_creation(image, [more], random=Random(1))
    assert decision.records == []
    assert [(result.error, result.message) for result in decision.results] == [(error, message)]


def test_topics_are_deleted_by_name_or_id_with_their_settings() -> None:
    image = with_topics(cluster(), NewTopic(name="a", configs={"segment.ms": "5"}), NewTopic(name="b"))
    refs = [TopicRef("a"), TopicRef(None, image.topics["b"].topic_id)]
    decision = decide_topic_deletion(image, refs)
    delta = replay_records(image, decision.records, offset=20, epoch=1)
    assert [result.name for result in decision.results] == ["a", "b"]
    assert delta.image.topics == {}
    assert delta.image.topic_names == {}
    assert delta.image.configs == {}
    assert [topic.name for topic in delta.deleted_topics] == ["a", "b"]


def test_a_topic_named_twice_is_not_deleted_and_answered_once() -> None:
    image = with_topics(cluster(), NewTopic(name="a"), NewTopic(name="b"))
    decision = decide_topic_deletion(image, [TopicRef("a"), TopicRef("b"), TopicRef(None, image.topics["a"].topic_id)])
    assert {result.name: result.error for result in decision.results} == {
        "a": ErrorCode.INVALID_REQUEST,
        "b": ErrorCode.NONE,
    }
    assert len(decision.records) == 1


def test_what_cannot_be_deleted_says_why() -> None:
    image = with_topics(cluster(), NewTopic(name="a"))
    unknown = uuid.uuid4()
    refs = [TopicRef("x"), TopicRef(None, unknown), TopicRef("a", image.topics["a"].topic_id), TopicRef(None)]
    errors = [result.error for result in decide_topic_deletion(image, refs).results]
    assert errors == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
