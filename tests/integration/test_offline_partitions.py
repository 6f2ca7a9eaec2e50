"""Partitions whose log cannot be made or opened: offline for clients and operators, and back without a restart."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.free_ports import free_port
from tests.integration.server_process import wait_until
from tests.integration.stranger import Stranger, batch_of

from moldau.core.errors import ErrorCode
from moldau.log.files import Files
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.testing import Broker

OFFLINE = (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])
ONLINE = (ErrorCode.NONE, 1, [])


class Refusing(Files):
    """A disk that refuses to make or open whatever has one of these words in its path."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self.error = errno.ENOSPC
        self.may_make_folders = False

    def _check(self, path: str) -> None:
        if any(word in path for word in self.words):
            raise OSError(self.error, os.strerror(self.error), path)

    def make_directory(self, path: str) -> None:
        if not self.may_make_folders:
            self._check(path)
        super().make_directory(path)

    def open_append(self, path: str) -> int:
        self._check(path)
        return super().open_append(path)

    def open_existing(self, path: str) -> int:
        self._check(path)
        return super().open_existing(path)

    def names(self, path: str) -> list[str]:
        self._check(path)
        return super().names(path)


@pytest.fixture(scope="module")
def disk() -> Refusing:
    return Refusing()


@pytest.fixture(scope="module")
def broker(disk: Refusing) -> Iterator[Broker]:
    with Broker({"metrics.http.port": str(free_port())}, files=disk) as running:
        yield running


@pytest.fixture
def stranger(broker: Broker, disk: Refusing) -> Iterator[Stranger]:
    disk.words.clear()
    with Stranger(broker.port) as connected:
        yield connected
    disk.words.clear()
    wait_until(lambda: health(broker)[0] == 200, what="the broker's health")


def views(stranger: Stranger, topic: str) -> list[tuple[int, int, list[int]]]:
    answer = stranger.ask(ApiKey.METADATA, 9, topics=[Message(name=topic)], allow_auto_topic_creation=False)
    return [(one.error_code, one.leader_id, one.offline_replicas) for one in answer.topics[0].partitions]


def health(broker: Broker) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"{broker.metrics_url}/healthz", timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def metric(broker: Broker, name: str) -> float:
    with urllib.request.urlopen(f"{broker.metrics_url}/metrics", timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
    raise KeyError(name)


def list_offsets(stranger: Stranger, topic: str, timestamp: int = -1) -> Message:
    partition = Message(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    asked = [Message(name=topic, partitions=[partition])]
    answer = stranger.ask(ApiKey.LIST_OFFSETS, 5, replica_id=-1, isolation_level=0, topics=asked)
    found: Message = answer.topics[0].partitions[0]
    return found


def is_back(stranger: Stranger, topic: str) -> bool:
    return all(view == ONLINE for view in views(stranger, topic))


def test_a_topic_without_a_folder_is_offline_until_there_is_room(
    broker: Broker, disk: Refusing, stranger: Stranger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "moldau.broker.metadata.offline_partitions")
    disk.words.add("/roomless-")
    stranger.create_topic("roomless", partitions=3)
    assert views(stranger, "roomless") == [OFFLINE] * 3
    produced = stranger.produce("roomless", batch_of(b"early"))
    assert produced.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "No space left" in produced.error_message
    # A producer that was here before is not told that its sequence is wrong: nobody knows it.
    idempotent = batch_of(b"early", producer_id=7, producer_epoch=0, base_sequence=9)
    assert stranger.produce("roomless", idempotent).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert stranger.fetch("roomless", 0, max_wait_ms=60_000).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    for timestamp in (-1, -2, -3, 0):
        assert list_offsets(stranger, "roomless", timestamp).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert metric(broker, "kafka_server_replicamanager_offlinereplicacount") == 3
    assert metric(broker, "kafka_controller_kafkacontroller_offlinepartitionscount") == 3
    assert metric(broker, "kafka_log_logmanager_offlinelogdirectorycount") == 0
    status, answer = health(broker)
    assert status == 503
    assert answer["healthy"] is False
    assert answer["offline_partition_count"] == 3
    reasons = answer["offline_partitions"]
    assert isinstance(reasons, dict)
    assert "No space left on device" in reasons["roomless-0"]

    disk.words.clear()
    wait_until(lambda: is_back(stranger, "roomless"), what="the topic's return")
    assert stranger.produce("roomless", batch_of(b"late")).error_code == 0
    assert stranger.values("roomless") == [b"late"]
    assert health(broker)[0] == 200
    assert metric(broker, "kafka_server_replicamanager_offlinereplicacount") == 0
    assert metric(broker, "kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2, lines
    assert lines[0].startswith("roomless-0, roomless-1, roomless-2 cannot be used yet: cannot create ")
    assert lines[1] == "roomless-0, roomless-1, roomless-2 can be used again"


def test_partitions_added_without_room_leave_the_others_alone(disk: Refusing, stranger: Stranger) -> None:
    stranger.create_topic("grows")
    disk.words.add("/grows-1")
    disk.error = errno.EMFILE
    grown = Message(name="grows", count=3, assignments=None)
    answer = stranger.ask(ApiKey.CREATE_PARTITIONS, 2, topics=[grown], timeout_ms=10_000, validate_only=False)
    assert answer.results[0].error_code == 0
    assert views(stranger, "grows") == [ONLINE, OFFLINE, ONLINE]
    assert stranger.produce("grows", batch_of(b"x"), partition=2).error_code == 0
    assert stranger.produce("grows", batch_of(b"x"), partition=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.words.clear()
    wait_until(lambda: is_back(stranger, "grows"), what="the partition's return")
    assert stranger.produce("grows", batch_of(b"x"), partition=1).error_code == 0


def test_many_partitions_and_a_half_made_folder(broker: Broker, disk: Refusing, stranger: Stranger) -> None:
    disk.words.add("/many-")
    disk.may_make_folders = True
    stranger.create_topic("many", partitions=30)
    assert (broker.data / "many-0").is_dir()
    assert views(stranger, "many") == [OFFLINE] * 30
    disk.words.clear()
    wait_until(lambda: is_back(stranger, "many"), what="the topic's return")
    assert "topic_id" in (broker.data / "many-0/partition.metadata").read_text()
    assert stranger.produce("many", batch_of(b"x"), partition=29).error_code == 0


def test_an_auto_created_topic_serves_a_waiting_producer_once_there_is_room(
    broker: Broker, disk: Refusing, stranger: Stranger
) -> None:
    disk.words.add("/made-on-demand-")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 60_000})
    producer.produce("made-on-demand", b"patient")
    wait_until(lambda: (producer.poll(0), views(stranger, "made-on-demand"))[1] == [OFFLINE], what="the topic")
    assert len(producer) == 1
    disk.words.clear()
    assert producer.flush(30) == 0
    assert stranger.values("made-on-demand") == [b"patient"]


def test_a_topic_deleted_while_offline_leaves_nothing_and_can_be_made_again(
    broker: Broker, disk: Refusing, stranger: Stranger
) -> None:
    disk.words.add("/short-lived-")
    disk.may_make_folders = True
    stranger.create_topic("short-lived", partitions=2)
    assert views(stranger, "short-lived") == [OFFLINE] * 2
    stranger.ask(ApiKey.DELETE_TOPICS, 5, topic_names=["short-lived"], timeout_ms=10_000)
    assert not list(broker.data.glob("short-lived-[01]"))
    assert health(broker)[0] == 200
    disk.words.clear()
    stranger.create_topic("short-lived")
    assert views(stranger, "short-lived") == [ONLINE]
    assert stranger.produce("short-lived", batch_of(b"new")).error_code == 0
    assert stranger.values("short-lived") == [b"new"]


def test_settings_changed_while_offline_are_in_force_afterwards(disk: Refusing, stranger: Stranger) -> None:
    disk.words.add("/configured-")
    stranger.create_topic("configured")
    setting = Message(name="max.message.bytes", config_operation=0, value="200")
    resource = Message(resource_type=2, resource_name="configured", configs=[setting])
    answer = stranger.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
    assert answer.responses[0].error_code == 0
    disk.words.clear()
    wait_until(lambda: is_back(stranger, "configured"), what="the topic's return")
    too_large = stranger.produce("configured", batch_of(b"x" * 500))
    assert too_large.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_groups_and_transactions_work_once_there_is_room(broker: Broker, disk: Refusing, stranger: Stranger) -> None:
    stranger.create_topic("grouped")
    assert stranger.produce("grouped", batch_of(b"x")).error_code == 0
    disk.words.update({"/__consumer_offsets-", "/__transaction_state-"})
    for key_type in (0, 1):
        found = stranger.ask(ApiKey.FIND_COORDINATOR, 3, key="k", key_type=key_type)
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    asked = Message(group_id="k", topics=[Message(name="grouped", partition_indexes=[0])])
    offsets = stranger.ask(ApiKey.OFFSET_FETCH, 5, asked)
    assert offsets.error_code == ErrorCode.NOT_COORDINATOR  # and never "no offset", which would reset the group
    disk.words.clear()
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "k", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["grouped"])
    (message,) = consumer.consume(1, timeout=30)
    assert message.value() == b"x"
    consumer.commit(message, asynchronous=False)
    consumer.close()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "k"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("grouped", b"y")
    producer.commit_transaction(30)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC])
@pytest.mark.parametrize("ends_in_order", [True, False])
def test_logs_that_cannot_be_opened_at_start_come_back_with_all_they_had(
    tmp_path: Path, code: int, ends_in_order: bool
) -> None:
    with Broker(data=tmp_path) as first, Stranger(first.port) as stranger:
        stranger.create_topic("kept")
        for number in range(5):
            assert stranger.produce("kept", batch_of(b"%d" % number)).error_code == 0
        deleted = Message(name="kept", partitions=[Message(partition_index=0, offset=2)])
        stranger.ask(ApiKey.DELETE_RECORDS, 1, topics=[deleted], timeout_ms=10_000)
        consumer = Consumer({"bootstrap.servers": first.bootstrap_servers, "group.id": "g"})
        consumer.assign([])
        commit_offset(consumer, "kept", 4)
        consumer.close()
    if not ends_in_order:
        (tmp_path / ".kafka_cleanshutdown").unlink()
    disk = Refusing()
    disk.words, disk.error = {"/kept-0", "/__consumer_offsets-"}, code
    # A start that never gets to open them must not make the next one forget what the checkpoints say.
    with Broker(data=tmp_path, files=disk) as second, Stranger(second.port) as stranger:
        assert views(stranger, "kept") == [OFFLINE]
    with Broker(data=tmp_path, files=disk) as third, Stranger(third.port) as stranger:
        assert views(stranger, "kept") == [OFFLINE]
        found = stranger.ask(ApiKey.FIND_COORDINATOR, 3, key="g", key_type=0)
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        disk.words.clear()
        wait_until(lambda: is_back(stranger, "kept"), what="the log's return")
        earliest, latest = list_offsets(stranger, "kept", -2), list_offsets(stranger, "kept", -1)
        assert (earliest.offset, latest.offset) == (2, 5)
        assert stranger.produce("kept", batch_of(b"5")).base_offset == 5
        wait_until(lambda: committed_offset(stranger, "g", "kept") == 4, what="the group's offsets")


def commit_offset(consumer: Consumer, topic: str, offset: int) -> None:
    from confluent_kafka import TopicPartition

    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)


def committed_offset(stranger: Stranger, group: str, topic: str) -> int | None:
    asked = Message(group_id=group, topics=[Message(name=topic, partition_indexes=[0])])
    answer = stranger.ask(ApiKey.OFFSET_FETCH, 5, asked)
    if answer.error_code:
        assert answer.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return None
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


def test_a_folder_of_an_older_topic_is_set_aside_and_not_written_to(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker, Stranger(broker.port) as stranger:
        old = tmp_path / "again-0"
        old.mkdir()
        (old / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
        (old / "00000000000000000000.log").write_bytes(b"old")
        stranger.create_topic("again")
        assert stranger.produce("again", batch_of(b"new")).error_code == 0
        assert stranger.values("again") == [b"new"]
        (aside,) = tmp_path.glob("again-0.*-stray")
        assert (aside / "00000000000000000000.log").read_bytes() == b"old"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system with little room, where we may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=100", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_real_disk_without_room_for_another_folder(small_disk: Path) -> None:
    with Broker(data=small_disk) as broker, Stranger(broker.port) as stranger:
        stranger.create_topic("crowded", partitions=60)
        seen = views(stranger, "crowded")
        assert {ONLINE[0], OFFLINE[0]} == {view[0] for view in seen}
        last = len(seen) - 1
        assert seen[last] == OFFLINE
        assert stranger.produce("crowded", batch_of(b"x"), partition=last).error_code == 56
        subprocess.run(["mount", "-o", "remount,nr_inodes=600", str(small_disk)], check=True)
        wait_until(lambda: is_back(stranger, "crowded"), what="the topic's return")
        assert stranger.produce("crowded", batch_of(b"x"), partition=last).error_code == 0
    with Broker(data=small_disk) as broker, Stranger(broker.port) as stranger:
        assert is_back(stranger, "crowded")


def test_a_real_disk_without_a_byte_left(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Broker(data=small_disk) as broker, Stranger(broker.port) as stranger:
        filler = small_disk / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(small_disk).free))
        # What the metadata log takes is acknowledged and offline; it has the rest of a page left, or refuses.
        topic = Message(name="late", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        answer = stranger.ask(ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout_ms=10_000, validate_only=False)
        is_acknowledged = answer.topics[0].error_code == 0
        if is_acknowledged:
            assert views(stranger, "late") == [OFFLINE]
        filler.unlink()
        if not is_acknowledged:
            stranger.create_topic("late")
        wait_until(lambda: is_back(stranger, "late"), what="the topic's return")
        assert stranger.produce("late", batch_of(b"x")).error_code == 0
        assert stranger.values("late") == [b"x"]
    assert "corrupt" not in caplog.text
