"""Transactions of the toolkit on a real broker: together or not at all, and exactly once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import confluent_kafka
import pytest
from tests import open_clients

from moldau.client import (
    BYTES,
    INT,
    Admin,
    ClientError,
    Consumer,
    ExactlyOnce,
    FencedError,
    Producer,
    ProducerRecord,
    Record,
    TopicPartition,
)
from moldau.testing import Broker

NUMBERS = itertools.count()
QUICK = {"heartbeat.interval.ms": 200, "session.timeout.ms": 6000}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    name = f"topic-{next(NUMBERS)}"
    Admin(servers).create_topic(name, partitions=2)
    Admin(servers).create_topic(f"{name}-out", partitions=2)
    return name


def send_numbers(servers: str, topic: str, count: int) -> None:
    with Producer(servers, value_serializer=INT) as producer:
        for number in range(count):
            producer.send(topic, number, partition=number % 2)


def numbers_in(servers: str, topic: str, isolation: str = "read_committed") -> list[int]:
    """Everything there is, up to the end that this isolation level may see."""
    found: list[tuple[int | None, int | None, int]] = []
    settings = {"bootstrap.servers": servers, "group.id": "none", "enable.partition.eof": True}
    reader = confluent_kafka.Consumer({**settings, "isolation.level": isolation})
    reader.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(2)])
    ends = 0
    while ends < 2:
        message = reader.poll(30)
        assert message is not None
        error = message.error()
        if error is None:
            found.append((message.partition(), message.offset(), int.from_bytes(message.value() or b"")))
        else:
            assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
            ends += 1
    reader.close()
    return [number for _, _, number in sorted(found)]


def doubled(topic: str, record: Record[str, int]) -> list[ProducerRecord[str, int]]:
    return [ProducerRecord(topic=f"{topic}-out", value=2 * (record.value or 0), partition=record.partition)]


def processor(servers: str, topic: str, process: object = None, **options: object) -> ExactlyOnce[str, int, str, int]:
    settings: dict[str, object] = {
        "transactional_id": f"{topic}-1",
        "max_records": 10,
        "consumer_properties": QUICK,
        **options,
    }
    return ExactlyOnce(
        process or (lambda record: doubled(topic, record)),  # type: ignore[arg-type]
        [topic],
        group=topic,
        servers=servers,
        value_deserializer=INT,
        value_serializer=INT,
        **settings,  # type: ignore[arg-type]
    )


def run_until(processor: ExactlyOnce[str, int, str, int], count: int) -> None:
    done = 0
    while done < count:
        done += processor.run_once()


def transactional(servers: str, name: str) -> Producer[str, int]:
    producer = Producer[str, int](servers, {"transactional.id": name}, value_serializer=INT)
    producer.transactions.start()
    return producer


def test_a_transaction_is_seen_whole_or_not_at_all(servers: str, topic: str) -> None:
    def fail() -> None:
        with producer.transactions.begin():
            producer.send(topic, 2, partition=0)
            producer.flush()
            raise LookupError("changed my mind")

    with transactional(servers, topic) as producer:
        with producer.transactions.begin():
            producer.send(topic, 0, partition=0)
            producer.send(topic, 1, partition=1)
        with pytest.raises(LookupError, match="changed my mind"):
            fail()
        with producer.transactions.begin():
            producer.send(topic, 3, partition=0)
    assert numbers_in(servers, topic) == [0, 3, 1]
    assert numbers_in(servers, topic, "read_uncommitted") == [0, 2, 3, 1]


def test_a_successor_fences_its_predecessor(servers: str, topic: str) -> None:
    def go_on() -> None:
        with old.transactions.begin():
            old.send(topic, 2, partition=0)

    before = open_clients.count()
    old = transactional(servers, topic)
    with old.transactions.begin():
        old.send(topic, 0, partition=0)
    with transactional(servers, topic) as new:
        with new.transactions.begin():
            new.send(topic, 1, partition=0)
        with pytest.raises(FencedError):
            go_on()
        old.close()
        assert open_clients.count() == before + 1, "a fenced producer ends when it is closed"
    assert numbers_in(servers, topic) == [0, 1]


def test_a_closed_producer_begins_no_transaction(servers: str, topic: str) -> None:
    producer = transactional(servers, topic)
    producer.close()
    with pytest.raises(ClientError, match="closed"), producer.transactions.begin():
        pass


def test_transactions_need_an_id(servers: str) -> None:
    with Producer[str, str](servers) as producer, pytest.raises(ClientError, match=r"transactional\.id"):
        producer.transactions.start()


def test_every_input_has_one_output(servers: str, topic: str) -> None:
    send_numbers(servers, topic, 50)
    with processor(servers, topic) as doubling:
        run_until(doubling, 50)
    assert sorted(numbers_in(servers, f"{topic}-out")) == [2 * number for number in range(50)]
    with Consumer(servers, group=topic, value_deserializer=BYTES) as consumer:
        committed = consumer.committed(TopicPartition(topic, number) for number in range(2))
    assert committed == {TopicPartition(topic, 0): 25, TopicPartition(topic, 1): 25}


def test_an_error_undoes_the_batch_and_a_new_start_repeats_it(servers: str, topic: str) -> None:
    attempts: list[int] = []

    def failing_once(record: Record[str, int]) -> list[ProducerRecord[str, int]]:
        attempts.append(record.value or 0)
        if record.value == 7 and attempts.count(7) == 1:
            raise LookupError("not yet")
        return doubled(topic, record)

    send_numbers(servers, topic, 20)
    with processor(servers, topic, failing_once) as doubling, pytest.raises(LookupError, match="not yet"):
        run_until(doubling, 20)
    done = len(numbers_in(servers, f"{topic}-out"))
    with processor(servers, topic, failing_once) as doubling:
        run_until(doubling, 20 - done)
    assert sorted(numbers_in(servers, f"{topic}-out")) == [2 * number for number in range(20)]
    assert attempts.count(7) == 2


def test_the_same_instance_may_go_on_after_an_error(servers: str, topic: str) -> None:
    attempts: list[int] = []

    def failing_once(record: Record[str, int]) -> list[ProducerRecord[str, int]]:
        attempts.append(record.value or 0)
        if attempts.count(7) == 1 and record.value == 7:
            raise LookupError("not yet")
        return doubled(topic, record)

    send_numbers(servers, topic, 20)
    with processor(servers, topic, failing_once) as doubling:
        with pytest.raises(LookupError):
            run_until(doubling, 20)
        run_until(doubling, 20 - len(numbers_in(servers, f"{topic}-out")))
    assert sorted(numbers_in(servers, f"{topic}-out")) == [2 * number for number in range(20)]


def test_what_on_error_returns_is_part_of_the_transaction(servers: str, topic: str) -> None:
    def refuse_odd(record: Record[str, int]) -> Iterator[ProducerRecord[str, int]]:
        yield from doubled(topic, record)
        if (record.value or 0) % 2:
            raise ValueError

    def letter(record: Record[str, int], error: Exception) -> list[ProducerRecord[str, int]]:
        return [ProducerRecord(topic=f"{topic}-dlt", value=record.value, partition=0)]

    Admin(servers).create_topic(f"{topic}-dlt", partitions=2)
    send_numbers(servers, topic, 10)
    with processor(servers, topic, refuse_odd, on_error=letter) as doubling:
        run_until(doubling, 10)
    assert sorted(numbers_in(servers, f"{topic}-out")) == [0, 4, 8, 12, 16]
    assert sorted(numbers_in(servers, f"{topic}-dlt")) == [1, 3, 5, 7, 9]


@pytest.mark.slow
def test_an_instance_that_lost_its_place_in_the_group_changes_nothing(servers: str, topic: str) -> None:
    """It stalls in the middle of a batch until the group has given its partitions to another."""
    is_stalled, may_go_on = threading.Event(), threading.Event()

    def stall(record: Record[str, int]) -> list[ProducerRecord[str, int]]:
        is_stalled.set()
        may_go_on.wait(60)
        return doubled(topic, record)

    send_numbers(servers, topic, 10)
    # Nothing polls while it stalls, so the poll interval is how long the group puts up with it.
    impatient = {**QUICK, "max.poll.interval.ms": 6000}
    stalled = processor(servers, topic, stall, consumer_properties=impatient)
    outcome: list[int] = []

    def work() -> None:
        while not may_go_on.is_set():
            outcome.append(stalled.run_once())

    thread = threading.Thread(target=work)
    thread.start()
    assert is_stalled.wait(30)
    with processor(servers, topic, transactional_id=f"{topic}-2") as healthy:
        run_until(healthy, 10)
        may_go_on.set()
        thread.join(60)
    stalled.close()
    assert sum(outcome) == 0
    assert sorted(numbers_in(servers, f"{topic}-out")) == [2 * number for number in range(10)]


def test_two_instances_share_the_work_and_stop_in_good_order(servers: str, topic: str) -> None:
    send_numbers(servers, topic, 200)
    instances = [processor(servers, topic, transactional_id=f"{topic}-{number}") for number in range(2)]
    threads = [threading.Thread(target=instance.run) for instance in instances]
    for thread in threads:
        thread.start()
    while len(numbers_in(servers, f"{topic}-out")) < 200:
        pass
    for instance in instances:
        instance.stop()
    for thread in threads:
        thread.join(30)
    for instance in instances:
        instance.close()
    assert sorted(numbers_in(servers, f"{topic}-out")) == [2 * number for number in range(200)]


def test_a_restart_of_the_broker_doubles_and_loses_nothing() -> None:
    with Broker() as broker:
        servers, topic = broker.bootstrap_servers, "numbers"
        Admin(servers).create_topic(topic, partitions=2)
        Admin(servers).create_topic(f"{topic}-out", partitions=2)
        send_numbers(servers, topic, 300)
        instance = processor(servers, topic, max_records=5)
        thread = threading.Thread(target=instance.run)
        thread.start()
        for share in (50, 150):
            while len(numbers_in(servers, f"{topic}-out")) < share:
                pass
            broker.restart()
        while len(numbers_in(servers, f"{topic}-out")) < 300:
            pass
        instance.stop()
        thread.join(30)
        instance.close()
        assert sorted(numbers_in(servers, f"{topic}-out")) == [2 * number for number in range(300)]
