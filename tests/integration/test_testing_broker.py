"""The broker for tests, as its users would use it."""

from __future__ import annotations

import gc
import random
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from moldau.client.admin import Admin
from moldau.core import ids
from moldau.testing import Broker, ManualClock

pytest_plugins = ["pytester"]


def topics_of(broker: Broker) -> set[str]:
    return set(AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10).topics)


def send(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"x")
    assert producer.flush(30) == 0


def read_one(broker: Broker, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    record = consumer.poll(30)
    consumer.close()
    return record.value() if record is not None else None


def test_two_brokers_share_nothing() -> None:
    with Broker() as one, Broker() as other:
        send(one, "only-here")
        assert topics_of(one) == {"only-here"}
        assert topics_of(other) == set()


def test_a_broker_leaves_no_folder_however_it_was_used() -> None:
    with Broker() as entered:
        pass
    never_started, stopped = Broker(), Broker()
    stopped.start()
    stopped.stop()
    folders = [entered.data, never_started.data, stopped.data]
    del never_started, stopped
    gc.collect()
    assert [folder for folder in folders if folder.exists()] == []


def test_a_restart_keeps_port_and_data() -> None:
    with Broker() as broker:
        send(broker, "kept")
        before = broker.bootstrap_servers
        broker.restart()
        assert broker.bootstrap_servers == before
        assert topics_of(broker) == {"kept"}


def test_offsets_are_told_again_after_a_restart() -> None:
    with Broker() as broker:
        send(broker, "kept")
        admin = Admin(broker.bootstrap_servers)
        end = {ids.TopicPartition("kept", 0): -1}
        assert list(admin.list_offsets(end).values()) == [1]
        broker.restart()
        deadline = time.monotonic() + 30
        while list(admin.try_list_offsets(end).values()) != [1]:
            assert time.monotonic() < deadline, admin.try_list_offsets(end)
            time.sleep(0.05)


def test_settings_are_the_brokers() -> None:
    with Broker({"num.partitions": "5"}) as broker:
        send(broker, "five")
        metadata = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10)
        assert len(metadata.topics["five"].partitions) == 5


def test_random_numbers_of_the_test_stay_its_own() -> None:
    before = random.getstate()
    with Broker() as broker:
        send(broker, "any")
        assert read_one(broker, "any") == b"x"
    assert random.getstate() == before


def test_a_temporary_folder_goes_and_a_given_one_stays(tmp_path: Path) -> None:
    with Broker() as broker:
        temporary = broker.data
        assert temporary.is_dir()
    assert not temporary.exists()
    with Broker(data=tmp_path / "mine"):
        pass
    assert (tmp_path / "mine/meta.properties").is_file()


def test_the_fixture_comes_with_the_package(moldau_broker: Broker) -> None:
    send(moldau_broker, "fixture")
    assert "fixture" in topics_of(moldau_broker)


def test_records_with_old_timestamps_outlive_the_first_minutes() -> None:
    """Fixed timestamps are usual in tests; seven days of retention would delete them 30 seconds after the start."""
    clock = ManualClock(int(time.time() * 1000))
    with Broker(clock=clock) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("old", b"of 2023", timestamp=1_700_000_000_000)
        assert producer.flush(30) == 0
        clock.advance(10 * 60_000)
        _run_due_maintenance(broker)
        assert read_one(broker, "old") == b"of 2023"


def _run_due_maintenance(broker: Broker) -> None:
    """Jobs handed over come first; when the second runs, everything due after the first has run."""
    assert broker.node is not None
    for _ in range(2):
        is_done = threading.Event()
        broker.node._maintenance.submit(is_done.set)
        assert is_done.wait(30)
