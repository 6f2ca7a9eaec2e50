"""Producer, consumer and offset store of the toolkit on a real broker."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests import open_clients

from moldau.client import (
    BYTES,
    INT,
    JSON,
    STRING,
    Admin,
    ClientError,
    Consumer,
    Delivery,
    InvalidConfigError,
    Producer,
    RebalanceListener,
    Record,
    SeekToStored,
    SerializationError,
    SqliteOffsetStore,
    TopicPartition,
    UnreachableError,
)
from moldau.core.errors import ErrorCode
from moldau.testing import Broker

NUMBERS = itertools.count()
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    """A topic of its own for each test, with three partitions."""
    name = f"topic-{next(NUMBERS)}"
    Admin(servers).create_topic(name, partitions=3)
    return name


def send_numbers(servers: str, topic: str, count: int, *, partition: int | None = 0) -> None:
    with Producer(servers, key_serializer=STRING, value_serializer=INT) as producer:
        for number in range(count):
            producer.send(topic, number, key=str(number), partition=partition)


def reader(servers: str, group: str, **properties: object) -> Consumer[str, int]:
    settings = {"auto.offset.reset": "earliest", "heartbeat.interval.ms": 200, **properties}
    return Consumer(servers, settings, group=group, value_deserializer=INT)


def take(consumer: Consumer[str, int], count: int) -> list[int]:
    return [record.value or 0 for _, record in zip(range(count), consumer, strict=False)]


def committed(servers: str, group: str, topic: str) -> Mapping[TopicPartition, int]:
    with Consumer[str, str](servers, group=group) as consumer:
        return consumer.committed(TopicPartition(topic, number) for number in range(3))


# Producer


def test_a_record_arrives_with_everything_it_had(servers: str, topic: str) -> None:
    with Producer(servers, key_serializer=STRING, value_serializer=JSON) as producer:
        stored = producer.send_and_wait(
            topic, {"a": 1}, key="k", partition=2, headers=[("h", b"1"), ("h", None)], timestamp_ms=1234
        )
    assert stored == Delivery(topic, 2, 0, 1234)
    with Consumer(servers, key_deserializer=STRING, value_deserializer=JSON) as consumer:
        consumer.assign({TopicPartition(topic, 2): 0})
        assert consumer.poll(PATIENCE_S) == Record(
            topic, 2, 0, 1234, "k", {"a": 1}, (("h", b"1"), ("h", None)), leader_epoch=0
        )


def test_callbacks_hear_of_every_record(servers: str, topic: str) -> None:
    heard: list[tuple[ClientError | None, Delivery]] = []
    with Producer(servers, on_delivery=lambda *told: heard.append(told)) as producer:
        for number in range(100):
            producer.send(topic, str(number))
    assert [error for error, _ in heard] == [None] * 100
    assert {delivery.offset for _, delivery in heard} >= {0}


def test_a_failure_nobody_listens_to_is_raised_by_flush(servers: str) -> None:
    producer: Producer[str, str] = Producer(servers, {"delivery.timeout.ms": 3000})
    producer.send("no-such-topic", "x")
    with pytest.raises(ClientError, match="no-such-topic") as failed:
        producer.flush()
    assert failed.value.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or failed.value.error_code is None
    producer.flush()


def test_a_partitioner_that_raises_refuses_the_record(servers: str, topic: str) -> None:
    def strict(*facts: object) -> int:
        raise ValueError("no key, no partition")

    with Producer[str, str](servers, partitioner=strict) as producer:
        with pytest.raises(ValueError, match="no key"):
            producer.send(topic, "x")
        producer.send(topic, "x", partition=1)


def test_a_partitioner_waits_for_its_topic_only_so_long(servers: str) -> None:
    with Producer[str, str](servers, {"max.block.ms": 300}, partitioner=lambda *facts: 0) as producer:
        with pytest.raises(ClientError, match="no-such-topic") as refused:
            producer.send("no-such-topic", "x")
        assert refused.value.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_exception_in_the_block_is_the_one_that_is_seen(servers: str, topic: str) -> None:
    def work() -> None:
        with Producer[str, str](servers) as producer:
            producer.send(topic, "sent all the same", partition=0)
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        work()
    with Consumer[str, str](servers) as consumer:
        assert consumer.watermarks(TopicPartition(topic, 0)) == (0, 1)


def test_a_cluster_that_is_not_there_is_told_in_time() -> None:
    producer: Producer[str, str] = Producer("127.0.0.1:1", {"max.block.ms": 500}, report=lambda *line: None)
    producer.send("t", "x")
    with pytest.raises(UnreachableError, match=r"1 records were not acknowledged within 0\.3 s"):
        producer.flush(0.3)
    producer.abandon()


def test_a_closed_producer_has_no_threads_and_sends_nothing(servers: str, topic: str) -> None:
    """Whoever still refers to it: tracebacks do, and callbacks that were never called."""
    before = open_clients.count()
    producer: Producer[str, str] = Producer(servers)
    producer.send(topic, "x")
    producer.close()
    producer.close()
    assert open_clients.count() == before
    with pytest.raises(ClientError, match="the producer is closed"):
        producer.send(topic, "y")
    with pytest.raises(ClientError, match="the producer is closed"):
        producer.flush()


def test_an_abandoned_producer_tells_which_records_are_lost_and_has_no_threads() -> None:
    told: list[str] = []
    before = open_clients.count()
    producer: Producer[str, str] = Producer("127.0.0.1:1", report=lambda level, text: told.append(text))
    producer.send("t", "x")
    producer.abandon()
    assert open_clients.count() == before
    assert [line for line in told if "record" in line] == [
        "1 record was not sent to topic t: the broker at 127.0.0.1:1 did not answer"
    ]


def test_a_producer_is_closed_while_another_thread_waits_for_it() -> None:
    outcome: list[BaseException] = []

    def wait() -> None:
        try:
            producer.flush()
        except BaseException as error:
            outcome.append(error)

    before = open_clients.count()
    producer: Producer[str, str] = Producer("127.0.0.1:1", report=lambda *line: None)
    producer.send("t", "x")
    waiting = threading.Thread(target=wait)
    waiting.start()
    producer.abandon()
    waiting.join(30)
    assert open_clients.count() == before
    assert [isinstance(error, ClientError) for error in outcome] == [True]


# Consumer


def test_a_record_is_done_when_the_next_is_asked_for(servers: str, topic: str) -> None:
    send_numbers(servers, topic, 10)
    with reader(servers, topic) as consumer:
        consumer.subscribe([topic])
        assert take(consumer, 4) == [0, 1, 2, 3]
    assert committed(servers, topic, topic) == {TopicPartition(topic, 0): 4}


def test_an_exception_leaves_the_last_record_undone(servers: str, topic: str) -> None:
    def work() -> None:
        with reader(servers, topic) as consumer:
            consumer.subscribe([topic])
            take(consumer, 4)
            raise LookupError

    send_numbers(servers, topic, 10)
    with pytest.raises(LookupError):
        work()
    assert committed(servers, topic, topic) == {TopicPartition(topic, 0): 3}


def test_manual_commits_are_the_only_ones(servers: str, topic: str) -> None:
    send_numbers(servers, topic, 10)
    with reader(servers, topic, **{"enable.auto.commit": False}) as consumer:
        consumer.subscribe([topic])
        batch: list[Record[str, int]] = []
        while len(batch) < 3:
            batch += consumer.poll_batch(3 - len(batch))
        consumer.commit()
        record = consumer.poll(PATIENCE_S)
        assert record is not None
        consumer.commit_record(record)
        take(consumer, 3)
    assert committed(servers, topic, topic) == {TopicPartition(topic, 0): 4}


def test_seeking_goes_back_to_the_beginning_and_to_a_time(servers: str, topic: str) -> None:
    zero = TopicPartition(topic, 0)
    with Producer(servers, value_serializer=INT) as producer:
        for number in range(5):
            producer.send(topic, number, partition=0, timestamp_ms=1000 + number)
    with reader(servers, topic) as consumer:
        consumer.subscribe([topic])
        assert take(consumer, 5) == [0, 1, 2, 3, 4]
        consumer.seek_to_beginning()
        assert take(consumer, 2) == [0, 1]
        consumer.seek(zero, consumer.offsets_for_time([zero], 1003)[zero])
        assert take(consumer, 1) == [3]
        assert consumer.position(zero) == 4
        consumer.seek_to_end([zero])
        assert consumer.poll(0.3) is None


def test_an_unreadable_record_is_reported_and_passed(servers: str, topic: str) -> None:
    with Producer(servers, value_serializer=BYTES) as producer:
        for value in (b"1", b"broken", b"2"):
            producer.send(topic, value, partition=0)
    with Consumer(servers, value_deserializer=JSON) as consumer:
        consumer.assign({TopicPartition(topic, 0): 0})
        seen: list[object] = []
        while len(seen) < 3:
            try:
                seen += [record.value for record in consumer.poll_batch(10, PATIENCE_S)]
            except SerializationError as error:
                seen.append((error.partition, error.offset, error.part))
        assert seen == [1, (0, 1, "value"), 2]


def test_wakeup_ends_the_wait_from_another_thread(servers: str, topic: str) -> None:
    with reader(servers, topic) as consumer:
        consumer.subscribe([topic])
        threading.Timer(0.3, consumer.wakeup).start()
        assert list(consumer) == []


def test_a_pattern_finds_its_topics(servers: str, topic: str) -> None:
    send_numbers(servers, topic, 3)
    with reader(servers, topic) as consumer:
        consumer.subscribe(re.compile(re.escape(topic)[:-1] + "."))
        assert take(consumer, 3) == [0, 1, 2]


@pytest.mark.parametrize(
    "properties",
    [
        {"partition.assignment.strategy": "range"},
        {"partition.assignment.strategy": "cooperative-sticky"},
        {"group.protocol": "consumer", "heartbeat.interval.ms": None},
    ],
    ids=["eager", "cooperative", "consumer protocol"],
)
def test_a_listener_may_seek_when_partitions_come(servers: str, topic: str, properties: dict[str, str | None]) -> None:
    told: list[tuple[str, set[TopicPartition]]] = []

    class Skipping(RebalanceListener):
        def partitions_assigned(self, consumer: object, partitions: set[TopicPartition]) -> None:
            told.append(("assigned", partitions))
            assert isinstance(consumer, Consumer)
            consumer.seek(TopicPartition(topic, 0), 7)

        def partitions_revoked(self, consumer: object, partitions: set[TopicPartition]) -> None:
            told.append(("revoked", partitions))

    send_numbers(servers, topic, 10)
    everything = {TopicPartition(topic, number) for number in range(3)}
    with reader(servers, topic, **properties) as consumer:
        consumer.subscribe([topic], listener=Skipping())
        assert take(consumer, 3) == [7, 8, 9]
        assert consumer.assignment() == everything
    assert told == [("assigned", everything), ("revoked", everything)]


def test_what_a_listener_raises_is_raised_by_poll(servers: str, topic: str) -> None:
    class Failing(RebalanceListener):
        def partitions_assigned(self, consumer: object, partitions: set[TopicPartition]) -> None:
            raise LookupError("no store")

    with reader(servers, topic) as consumer:
        consumer.subscribe([topic], listener=Failing())
        with pytest.raises(LookupError, match="no store"):
            consumer.poll(PATIENCE_S)


def test_without_an_offset_to_start_at_none_means_an_error(servers: str, topic: str) -> None:
    with reader(servers, topic, **{"auto.offset.reset": "none"}) as consumer:
        consumer.subscribe([topic])
        with pytest.raises(ClientError, match="offset"):
            consumer.poll(PATIENCE_S)


def test_two_members_share_and_the_rest_goes_to_who_stays(servers: str, topic: str) -> None:
    everything = {TopicPartition(topic, number) for number in range(3)}
    with reader(servers, topic) as stays:
        stays.subscribe([topic])
        with reader(servers, topic) as leaves:
            leaves.subscribe([topic])
            while not (stays.assignment() and leaves.assignment()) or stays.assignment() & leaves.assignment():
                stays.poll(0.05)
                leaves.poll(0.05)
            assert stays.assignment() | leaves.assignment() == everything
        while stays.assignment() != everything:
            stays.poll(0.05)


# External offsets


def test_the_store_decides_where_reading_starts(servers: str, topic: str, tmp_path: Path) -> None:
    send_numbers(servers, topic, 6)
    with SqliteOffsetStore(tmp_path / "store.db", group="g") as store:
        store.database.execute("CREATE TABLE numbers (number INTEGER)")
        for count in (2, 3, 1):
            with reader(servers, f"{topic}-{count}", **{"enable.auto.commit": False}) as consumer:
                consumer.subscribe([topic], listener=SeekToStored(store))
                for _, record in zip(range(count), consumer, strict=False):
                    with store.transaction(record) as database:
                        database.execute("INSERT INTO numbers VALUES (?)", (record.value,))
        assert [row[0] for row in store.database.execute("SELECT number FROM numbers")] == [0, 1, 2, 3, 4, 5]


def test_a_bad_setting_names_itself() -> None:
    with pytest.raises(InvalidConfigError, match=r"linger\.ms"):
        Producer("localhost:9092", {"linger.ms": "soon"})
