"""Reading without a group: which partitions are begun, and where."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from moldau.client.following import BEGINNING, END, Follower
from moldau.core.ids import TopicPartition


@dataclass
class FakeConsumer:
    """Knows topics by their number of partitions, and remembers what it was assigned."""

    counts: dict[str, int] = field(default_factory=dict)
    assigned: list[tuple[str, int, int]] = field(default_factory=list)
    is_reachable: bool = True

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        if not self.is_reachable:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        names = list(self.counts) if topic is None else [topic]
        return SimpleNamespace(topics={name: self._topic(name) for name in names})

    def _topic(self, name: str) -> Any:
        error = None if name in self.counts else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return SimpleNamespace(error=error, partitions=dict.fromkeys(range(self.counts.get(name, 0))))

    def incremental_assign(self, positions: list[Any]) -> None:
        self.assigned += [(position.topic, position.partition, position.offset) for position in positions]


def follower(consumer: FakeConsumer, topics: Any, **options: Any) -> Follower:
    return Follower(cast(Consumer, consumer), topics, **options)


def test_partitions_known_at_the_start_begin_where_asked_and_later_ones_at_their_beginning() -> None:
    consumer = FakeConsumer({"t": 2})
    following = follower(consumer, ["t"], start=END)
    assert following.refresh() == {}
    assert consumer.assigned == [("t", 0, END), ("t", 1, END)]
    consumer.counts["t"] = 3
    following.refresh()
    assert consumer.assigned[2:] == [("t", 2, BEGINNING)]
    following.refresh()
    assert len(consumer.assigned) == 3


def test_a_topic_that_comes_later_is_read_whole() -> None:
    consumer = FakeConsumer()
    following = follower(consumer, ["t"], start=END)
    assert following.refresh() == {"t": "UNKNOWN_TOPIC_OR_PARTITION"}
    consumer.counts["t"] = 1
    following.refresh()
    assert consumer.assigned == [("t", 0, BEGINNING)]


def test_an_offset_asked_for_holds_whenever_its_partition_appears() -> None:
    consumer = FakeConsumer()
    following = follower(consumer, ["t"], start=42, only_partition=1)
    following.refresh()
    consumer.counts["t"] = 3
    following.refresh()
    assert consumer.assigned == [("t", 1, 42)]


def test_offsets_by_partition() -> None:
    consumer = FakeConsumer({"t": 2})
    follower(consumer, ["t"], start={TopicPartition("t", 0): 5}).refresh()
    assert consumer.assigned == [("t", 0, 5), ("t", 1, BEGINNING)]


def test_a_pattern_follows_topics_and_skips_internal_ones() -> None:
    consumer = FakeConsumer({"a1": 1, "b": 1, "a-internal": 1})
    following = follower(consumer, re.compile("a.*"), start=BEGINNING, skipped=frozenset({"a-internal"}))
    following.refresh()
    consumer.counts["a2"] = 1
    following.refresh()
    assert [topic for topic, _, _ in consumer.assigned] == ["a1", "a2"]


def test_without_leave_to_create_a_topic_is_not_asked_for_by_name() -> None:
    consumer = FakeConsumer({"other": 1})
    following = follower(consumer, ["t"], may_create=False)
    assert following.refresh() == {"t": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert consumer.assigned == []


def test_a_cluster_out_of_reach_is_reported_and_asked_again() -> None:
    consumer = FakeConsumer({"t": 1}, is_reachable=False)
    following = follower(consumer, ["t"], start=BEGINNING)
    assert list(following.refresh()) == [""]
    consumer.is_reachable = True
    assert following.refresh() == {}
    assert len(consumer.assigned) == 1


@pytest.mark.parametrize("start", [BEGINNING, END])
def test_the_first_look_decides_what_is_new(start: int) -> None:
    consumer = FakeConsumer({"t": 1})
    follower(consumer, ["t"], start=start).refresh()
    assert consumer.assigned == [("t", 0, start)]
