"""The lines of kafka-topics --describe, to the tab."""

from __future__ import annotations

from moldau.cli.topics.describe import Described, partition_line, topic_line
from moldau.client.admin import PartitionDescription, TopicDescription
from moldau.client.wire_admin import Reassignment
from moldau.core.ids import TopicPartition

TOPIC = TopicDescription(
    "first_topic",
    "ogRgIlPDRmSmdx3gdAAgFA",
    False,
    (PartitionDescription(0, 0, (0, 2, 1), (0, 2, 1)), PartitionDescription(1, None, (1, 0, 2), ())),
)


def test_a_topic_line_has_tabs_between_its_parts_and_nothing_after_configs_when_there_are_none() -> None:
    assert topic_line(Described(TOPIC, {})) == (
        "Topic: first_topic\tTopicId: ogRgIlPDRmSmdx3gdAAgFA\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: "
    )


def test_configs_of_the_topic_stand_in_javas_order() -> None:
    overrides = {"segment.ms": "5000", "min.cleanable.dirty.ratio": "0.001", "cleanup.policy": "compact"}
    assert topic_line(Described(TOPIC, overrides)).endswith(
        "\tConfigs: cleanup.policy=compact,segment.ms=5000,min.cleanable.dirty.ratio=0.001"
    )


def test_a_partition_line_begins_with_a_tab() -> None:
    assert partition_line(Described(TOPIC, {}), TOPIC.partitions[0]) == (
        "\tTopic: first_topic\tPartition: 0\tLeader: 0\tReplicas: 0,2,1\tIsr: 0,2,1"
    )


def test_a_partition_without_a_leader_says_none() -> None:
    assert "\tLeader: none\t" in partition_line(Described(TOPIC, {}), TOPIC.partitions[1])


def test_a_reassignment_shows_what_comes_and_goes_and_counts_as_done() -> None:
    moving = {TopicPartition("first_topic", 0): Reassignment((2,), (1,))}
    described = Described(TOPIC, {}, reassignments=moving)
    assert partition_line(described, TOPIC.partitions[0]).endswith("\tAdding Replicas: 2\tRemoving Replicas: 1")
    assert "\tReplicationFactor: 2\t" in topic_line(described)


def test_eligible_leaders_show_only_where_the_cluster_keeps_them() -> None:
    described = Described(TOPIC, {}, eligible={TopicPartition("first_topic", 1): ((2,), (0,))})
    assert partition_line(described, TOPIC.partitions[1]).endswith("\tIsr: \tElr: 2\tLastKnownElr: 0")
