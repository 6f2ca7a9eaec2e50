"""What Spark says, and what it still reads, when records it counted on are gone."""

from __future__ import annotations

import pytest
from tests.compat.spark.seen import Seen, rows_of, summary
from tests.compat.spark.source import Kafka, error_of
from tests.compat.spark.workload import Topics, produce, records


def test_a_table_reads_what_is_left(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(600))
    topics.delete_records(topic, {0: 30, 1: -1, 5: 99})

    rows = rows_of(kafka.read(subscribe=topic, startingOffsets="earliest"))

    assert [sum(row.partition == p for row in rows) for p in range(6)] == [70, 0, 100, 100, 100, 1]
    assert min(row.offset for row in rows if row.partition == 0) == 30
    seen(rows=summary(rows))


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_table_begins_before_the_first_record_left(kafka: Kafka, topics: Topics, seen: Seen, fail: str) -> None:
    topic = topics.filled(records(600))
    topics.delete_records(topic, {0: 30, 3: 60})
    first = {topic: {str(partition): 10 for partition in range(6)}}
    frame = kafka.read(subscribe=topic, startingOffsets=first, failOnDataLoss=fail)

    if fail == "true":
        with pytest.raises(Exception, match="10") as refused:
            rows_of(frame)
        seen(error=error_of(refused.value))
    else:
        rows = rows_of(frame)
        assert [sum(row.partition == p for row in rows) for p in range(6)] == [70, 90, 90, 40, 90, 90]
        seen(rows=summary(rows))


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_stream_resumes_after_records_were_deleted(kafka: Kafka, topics: Topics, seen: Seen, fail: str) -> None:
    topic = topics.filled(records(600))
    stream = kafka.read_stream(subscribe=topic, failOnDataLoss=fail)
    kafka.run(stream)
    produce(topics.bootstrap, topic, records(600, first=600))
    topics.delete_records(topic, {0: 150, 1: 200, 2: 50})

    if fail == "true":
        with pytest.raises(Exception, match=r"loss|lost") as refused:
            kafka.run(stream)
        seen(error=error_of(refused.value))
    else:
        rows, batches = kafka.run(stream)
        assert [sum(row.partition == p for row in rows) for p in range(6)] == [150, 100, 200, 200, 200, 200]
        seen(rows=summary(rows), batches=batches)


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_stream_resumes_after_its_topic_was_made_anew(kafka: Kafka, topics: Topics, seen: Seen, fail: str) -> None:
    topic = topics.filled(records(600))
    stream = kafka.read_stream(subscribe=topic, failOnDataLoss=fail)
    kafka.run(stream)
    topics.delete(topic)
    topics.create(name=topic)
    produce(topics.bootstrap, topic, records(300, first=5000))

    if fail == "true":
        with pytest.raises(Exception, match=r"loss|lost") as refused:
            kafka.run(stream)
        seen(error=error_of(refused.value))
    else:
        rows, batches = kafka.run(stream)
        seen(rows=len(rows), batches=batches)
