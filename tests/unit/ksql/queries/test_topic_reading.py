from __future__ import annotations

from moldau.ksql.queries.topic_reading import TopicRecord, in_time_order


def record(topic: str, partition: int, timestamp: int, offset: int = 0) -> TopicRecord:
    return TopicRecord(topic, partition, None, None, timestamp, offset)


def test_the_oldest_of_the_first_records_is_next() -> None:
    left = [record("a", 0, 10), record("a", 0, 5, 1), record("a", 0, 30, 2)]
    right = [record("b", 0, 7), record("b", 0, 20, 1)]
    assert in_time_order([*left, *right]) == [right[0], left[0], left[1], right[1], left[2]]


def test_one_partition_keeps_its_order() -> None:
    records = [record("a", 0, 10), record("a", 0, 5, 1)]
    assert in_time_order(records) == records
    assert in_time_order([]) == []
