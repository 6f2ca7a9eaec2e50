"""Listeners on a real broker: threads, commits, retries, dead letters, and an orderly end."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from moldau.client import (
    BYTES,
    INT,
    JSON,
    STRING,
    Admin,
    Consumer,
    Failure,
    InvalidConfigError,
    ListenerApp,
    ListenerError,
    Producer,
    Received,
    Record,
    RetryPolicy,
    TopicPartition,
    UnreachableError,
)
from moldau.core.errors import ServiceError
from moldau.testing import Broker

NUMBERS = itertools.count()
PATIENCE_S = 30.0
QUICK = {"heartbeat.interval.ms": 200}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    name = f"topic-{next(NUMBERS)}"
    Admin(servers).create_topic(name, partitions=3)
    return name


def app_of(servers: str, **options: Any) -> ListenerApp:
    return ListenerApp(servers, consumer_properties=QUICK, **options)


def send_numbers(servers: str, topic: str, count: int) -> None:
    with Producer(servers, key_serializer=STRING, value_serializer=INT) as producer:
        for number in range(count):
            producer.send(topic, number, key=str(number))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.01)


def is_closed(app: ListenerApp) -> bool:
    try:
        app.close()
    except UnreachableError:
        return False
    return True


def committed(servers: str, group: str, topic: str) -> Mapping[TopicPartition, int]:
    with Consumer[str, str](servers, group=group) as consumer:
        return consumer.committed(TopicPartition(topic, number) for number in range(3))


def everything_in(servers: str, topic: str) -> list[Record[bytes, bytes]]:
    with Consumer(servers, key_deserializer=BYTES, value_deserializer=BYTES) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(3)]
        left = sum(consumer.watermarks(partition)[1] for partition in partitions)
        consumer.assign(dict.fromkeys(partitions, 0))
        return [record for _, record in zip(range(left), consumer, strict=False)]


def test_every_record_is_heard_and_committed(servers: str, topic: str) -> None:
    app, heard, threads = app_of(servers), [], set()

    @app.listener(topic, group=topic, concurrency=3, value_deserializer=INT)
    def listen(record: Received[str, int]) -> None:
        threads.add(threading.current_thread().name)
        heard.append(record.value)

    send_numbers(servers, topic, 60)
    with app:
        wait_for(lambda: len(heard) >= 60)
        app.wait_until_assigned()
    assert sorted(number for number in heard if number is not None) == list(range(60))
    assert sum(committed(servers, topic, topic).values()) == 60
    assert all(name.startswith("listener-") for name in threads)


def test_three_threads_have_a_partition_each(servers: str, topic: str) -> None:
    app = app_of(servers)
    owners: dict[int, set[str]] = {}

    @app.listener(topic, group=topic, concurrency=3, value_deserializer=INT, retry=None)
    def listen(record: Received[str, int]) -> None:
        owners.setdefault(record.partition, set()).add(threading.current_thread().name)

    with app:
        group = Admin(servers).client

        def members_with_one_each() -> bool:
            found = group.describe_consumer_groups([topic])[topic].result()
            return [len(member.assignment.topic_partitions) for member in found.members] == [1, 1, 1]

        wait_for(members_with_one_each)
        send_numbers(servers, topic, 30)
        wait_for(lambda: len(owners) == 3)
    assert len(set.union(*owners.values())) == 3
    assert all(len(names) == 1 for names in owners.values())


def test_a_failing_record_is_retried_without_holding_up_the_others(servers: str, topic: str) -> None:
    app = app_of(servers)
    heard: list[tuple[int, int, str]] = []

    @app.listener(topic, group=topic, value_deserializer=INT, retry=RetryPolicy(attempts=3, backoff_ms=300))
    def listen(record: Received[str, int]) -> None:
        assert record.value is not None
        heard.append((record.value, record.attempt, record.origin.topic))
        if record.value == 0 and record.attempt < 3:
            raise TimeoutError("later")

    with app:
        send_numbers(servers, topic, 20)
        wait_for(lambda: (0, 3, topic) in heard)
    firsts = [number for number, attempt, _ in heard if attempt == 1]
    assert sorted(firsts) == list(range(20))
    assert heard.index((0, 2, topic)) >= 20, "the others went first"
    assert [entry for entry in heard if entry[1] > 1] == [(0, 2, topic), (0, 3, topic)]
    assert everything_in(servers, f"{topic}-dlt") == []


def test_a_dead_letter_says_what_failed_where_and_why(servers: str, topic: str) -> None:
    app = app_of(servers)

    @app.listener(topic, group="billing", value_deserializer=JSON, retry=RetryPolicy(attempts=2, backoff_ms=10))
    def bill(record: Received[str, dict[str, int]]) -> None:
        raise PermissionError("not today")

    with Producer(servers, value_serializer=JSON) as producer:
        sent = producer.send_and_wait(topic, {"a": 1}, key="k", headers={"mine": b"1"}, timestamp_ms=1234)
    with app:
        wait_for(lambda: len(everything_in(servers, f"{topic}-dlt")) == 1)
    [letter] = everything_in(servers, f"{topic}-dlt")
    assert (letter.key, letter.value, letter.header("mine"), letter.timestamp_ms) == (b"k", b'{"a":1}', b"1", 1234)
    failure = Failure.of(letter)
    assert failure is not None
    assert failure.origin == (topic, sent.partition, sent.offset, 1234)
    assert (failure.group, failure.attempts, failure.stage) == ("billing", 2, "listener")
    assert (failure.error_class, failure.error_message) == ("PermissionError", "not today")
    assert "bill" in failure.listener
    assert "not today" in failure.trace
    assert sum(committed(servers, "billing", topic).values()) == 1


def test_a_listener_on_dead_letters_makes_no_dead_letters_of_them(
    servers: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    letters = f"{topic}-dlt"
    Admin(servers).create_topic(letters, partitions=1)
    app, heard = app_of(servers), []

    @app.listener(letters, group="mending", retry=RetryPolicy(attempts=2, backoff_ms=10))
    def mend(record: Received[str, str]) -> None:
        heard.append((record.value, record.attempt))
        if record.value == "bad":
            raise PermissionError("not even now")

    with Producer(servers) as producer:
        producer.send(letters, "bad")
        producer.send(letters, "good")
    with app:
        wait_for(lambda: any("is skipped" in line for line in caplog.messages) and ("good", 1) in heard)
        wait_for(lambda: len(heard) == 3)
    assert sorted(heard) == [("bad", 1), ("bad", 2), ("good", 1)]
    [skipped] = [line for line in caplog.messages if "is skipped" in line]
    assert f"it stays in the dead-letter topic {letters} as record 0 of partition 0" in skipped
    assert sum(committed(servers, "mending", letters).values()) == 2
    assert not [name for name in Admin(servers).topic_names() if name.startswith(letters) and name.endswith("-dlt-dlt")]


def test_an_unreadable_record_is_dead_at_once(servers: str, topic: str) -> None:
    app, heard = app_of(servers), []

    @app.listener(topic, group=topic, value_deserializer=JSON)
    def listen(record: Received[str, Any]) -> None:
        heard.append(record.value)

    with Producer(servers, value_serializer=BYTES) as producer:
        for value in (b"1", b"{broken", b"2"):
            producer.send(topic, value, partition=0)
    with app:
        wait_for(lambda: len(heard) == 2 and len(everything_in(servers, f"{topic}-dlt")) == 1)
    assert heard == [1, 2]
    failure = Failure.of(everything_in(servers, f"{topic}-dlt")[0])
    assert failure is not None
    assert (failure.stage, failure.attempts, failure.error_class) == ("value", 1, "moldau.serdes.serde.SerdeError")


def test_groups_take_back_only_what_they_put_into_the_retry_topics(servers: str, topic: str) -> None:
    app, calm, cross = app_of(servers), [], []
    policy = RetryPolicy(attempts=2, backoff_ms=10)

    @app.listener(topic, group=f"{topic}-calm", value_deserializer=INT, retry=policy)
    def stay_calm(record: Received[str, int]) -> None:
        calm.append((record.value, record.attempt))

    @app.listener(topic, group=f"{topic}-cross", value_deserializer=INT, retry=policy)
    def get_cross(record: Received[str, int]) -> None:
        cross.append((record.value, record.attempt))
        raise ValueError

    with app:
        send_numbers(servers, topic, 1)
        wait_for(lambda: len(everything_in(servers, f"{topic}-dlt")) == 1 and len(calm) == 1)
        retry_offset = len(everything_in(servers, f"{topic}-retry-0"))
        assert retry_offset == 1
    assert (calm, cross) == ([(0, 1)], [(0, 1), (0, 2)])


def test_manual_commits_wait_for_the_acknowledgement(servers: str, topic: str) -> None:
    app, heard = app_of(servers), []

    @app.listener(topic, group=topic, value_deserializer=INT, commits="manual")
    def listen(record: Received[str, int]) -> None:
        heard.append(record)
        if record.offset % 2 == 0:
            record.acknowledge()

    with Producer(servers, value_serializer=INT) as producer:
        for number in range(4):
            producer.send(topic, number, partition=0)
    with app:
        wait_for(lambda: len(heard) == 4)
    assert committed(servers, topic, topic) == {TopicPartition(topic, 0): 3}


def test_without_retries_a_failure_ends_the_app_and_keeps_the_record(servers: str, topic: str) -> None:
    app = app_of(servers)

    @app.listener(topic, group=topic, value_deserializer=INT, retry=None)
    def listen(record: Received[str, int]) -> None:
        if record.offset == 2:
            raise LookupError("no such account")

    with Producer(servers, value_serializer=INT) as producer:
        for number in range(4):
            producer.send(topic, number, partition=0)
    with pytest.raises(ListenerError, match="no such account") as failed:
        app.run()
    assert isinstance(failed.value.__cause__, LookupError)
    assert committed(servers, topic, topic) == {TopicPartition(topic, 0): 2}


def test_a_signal_ends_the_app_after_the_record_at_hand(servers: str, topic: str) -> None:
    app, done = app_of(servers), []
    before = signal.getsignal(signal.SIGTERM)

    @app.listener(topic, group=topic, value_deserializer=INT)
    def listen(record: Received[str, int]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.5)
        done.append(record.value)

    with Producer(servers, value_serializer=INT) as producer:
        producer.send_and_wait(topic, 1)
    app.run()
    assert done == [1]
    assert sum(committed(servers, topic, topic).values()) == 1
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_listener_that_does_not_end_is_named_and_waited_for_again(servers: str, topic: str) -> None:
    app, begun, may_end = app_of(servers, shutdown_timeout_s=0.2), threading.Event(), threading.Event()

    @app.listener(topic, group=topic, value_deserializer=INT)
    def linger(record: Received[str, int]) -> None:
        begun.set()
        may_end.wait(PATIENCE_S)

    send_numbers(servers, topic, 1)
    app.start()
    begun.wait(PATIENCE_S)
    with pytest.raises(UnreachableError, match=r"Listeners still running after 0\.2 s: .*linger"):
        app.close()
    may_end.set()
    wait_for(lambda: is_closed(app))


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"commits": "sometimes"}], ids=str)
def test_a_declaration_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        ListenerApp("localhost:9092").listener("t", group="g", **wrong)


def test_a_record_waits_for_a_service_that_is_away(servers: str, topic: str) -> None:
    """A registry that does not answer makes no dead letters, and ends no listener either."""

    class Away:
        calls = 0

        def deserialize(self, of_topic: str, data: bytes, headers: Any = None) -> str:
            self.calls += 1
            if self.calls == 1:
                raise ServiceError("the registry does not answer")
            return data.decode()

    app, heard, serde = app_of(servers), [], Away()

    @app.listener(topic, group=topic, value_deserializer=serde, retry=RetryPolicy(attempts=2, backoff_ms=1))
    def listen(record: Received[str, str]) -> None:
        heard.append((record.value, record.attempt, record.topic))

    with Producer(servers) as producer:
        producer.send(topic, "hello")
    with app:
        wait_for(lambda: bool(heard))
    assert heard == [("hello", 1, topic)]
    assert everything_in(servers, f"{topic}-dlt") == []
