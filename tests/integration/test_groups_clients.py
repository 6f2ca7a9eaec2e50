"""Real consumers in groups, in processes that die: all partitions always find an owner, and all records a reader."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.free_ports import free_port
from tests.integration.group_member import HEARTBEAT_MS, SESSION_MS
from tests.integration.server_process import ServerProcess, wait_until
from tests.oracle.apache_kafka import java_command, needs_apache_kafka

from moldau.testing import Broker

MEMBER = Path(__file__).with_name("group_member.py")
PARTITIONS = 6
RECORDS = 120
EVERY_VALUE = {str(number) for number in range(RECORDS)}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.min.session.timeout.ms": "1000"}) as running:
        yield running


def create_and_fill(bootstrap: str, partitions: int = PARTITIONS, records: int = RECORDS) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic("t", partitions, 1)]).values():
        created.result(30)
    produce(bootstrap, records, partitions)


def produce(bootstrap: str, records: int, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(records):
        producer.produce("t", str(number), partition=number % partitions)
    assert producer.flush(30) == 0


class Members:
    """Consumers of one kind, each a process, judged by what the broker says of the group."""

    def __init__(self, broker: Broker, folder: Path, client: str, assignor: str) -> None:
        self._broker, self._folder = broker, folder
        self._client, self._assignor = client, assignor
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def _command(self, name: str) -> list[str]:
        bootstrap = self._broker.bootstrap_servers
        if self._client != "java":
            return [sys.executable, str(MEMBER), self._client, bootstrap, name, self._assignor]
        properties = {
            "client.id": name,
            "partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{self._assignor}",
            "session.timeout.ms": str(SESSION_MS),
            "heartbeat.interval.ms": str(HEARTBEAT_MS),
        }
        arguments = ["--bootstrap-server", bootstrap, "--topic", "t", "--group", "g", "--from-beginning"]
        for key, value in properties.items():
            arguments += ["--consumer-property", f"{key}={value}"]
        return java_command("org.apache.kafka.tools.consumer.ConsoleConsumer", arguments)

    def start(self, *names: str) -> None:
        for name in names:
            command = self._command(name)
            with (self._folder / name).open("wb") as out, (self._folder / f"{name}.err").open("wb") as err:
                self.processes[name] = subprocess.Popen(command, stdout=out, stderr=err)

    def shares(self) -> dict[str, list[int]] | None:
        """What each member has; `None` while that is being settled."""
        group = self._admin.describe_consumer_groups(["g"])["g"].result(30)
        if group.state is not ConsumerGroupState.STABLE:
            return None
        return {one.client_id: [it.partition for it in one.assignment.topic_partitions] for one in group.members}

    def wait_for(self, *names: str) -> dict[str, list[int]]:
        """Wait until exactly these are members and every partition has exactly one owner among them."""
        found: dict[str, list[int]] = {}

        def is_settled() -> bool:
            shares = self.shares()
            if shares is None or set(shares) != set(names):
                return False
            owned = sorted(partition for share in shares.values() for partition in share)
            assert len(owned) == len(set(owned)), f"owned twice: {shares}"
            found.update(shares)
            return owned == list(range(PARTITIONS))

        wait_until(is_settled, timeout_s=60, what=f"a settled group of {names}")
        return found

    def seen(self) -> set[str]:
        return {value for name in self.processes for value in (self._folder / name).read_text().split()}

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "assignor"),
    [
        ("librdkafka", "range"),
        ("librdkafka", "roundrobin"),
        ("librdkafka", "cooperative-sticky"),
        ("kafka-python", "range"),
        ("kafka-python", "roundrobin"),
        ("kafka-python", "sticky"),
        ("kafka-python", "cooperative-sticky"),
        pytest.param("java", "RangeAssignor", marks=pytest.mark.java),
        pytest.param("java", "RoundRobinAssignor", marks=pytest.mark.java),
        pytest.param("java", "StickyAssignor", marks=pytest.mark.java),
        pytest.param("java", "CooperativeStickyAssignor", marks=pytest.mark.java),
    ],
)
def test_members_come_die_and_leave_and_every_record_is_read(
    broker: Broker, tmp_path: Path, client: str, assignor: str
) -> None:
    if client == "java":
        needs_apache_kafka()
    create_and_fill(broker.bootstrap_servers)
    members = Members(broker, tmp_path, client, assignor)
    try:
        members.start("a", "b", "c")
        assert sorted(map(len, members.wait_for("a", "b", "c").values())) == [2, 2, 2]
        members.processes["a"].kill()
        assert sorted(map(len, members.wait_for("b", "c").values())) == [3, 3]
        members.start("d")
        assert sorted(map(len, members.wait_for("b", "c", "d").values())) == [2, 2, 2]
        members.processes["b"].terminate()
        members.wait_for("c", "d")
        produce(broker.bootstrap_servers, RECORDS, PARTITIONS)
        wait_until(lambda: len(members.seen() & EVERY_VALUE) == RECORDS, what="all records")
    finally:
        members.end()


def test_members_beyond_the_partitions_stay_idle(broker: Broker, tmp_path: Path) -> None:
    create_and_fill(broker.bootstrap_servers)
    members = Members(broker, tmp_path, "librdkafka", "range")
    try:
        names = "abcdefgh"
        members.start(*names)
        assert sorted(map(len, members.wait_for(*names).values())) == [0, 0, 1, 1, 1, 1, 1, 1]
    finally:
        members.end()


def group_consumer(bootstrap: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def read(consumer: Consumer, count: int) -> list[int]:
    values: list[int] = []

    def has_read() -> bool:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            values.append(int(message.value() or b""))
        return len(values) >= count

    wait_until(has_read, timeout_s=60, what=f"{count} records")
    return values


def test_a_consumer_goes_on_where_its_group_stopped(broker: Broker) -> None:
    create_and_fill(broker.bootstrap_servers, partitions=1, records=30)
    for first in (0, 10, 20):
        consumer = group_consumer(broker.bootstrap_servers)
        consumer.subscribe(["t"])
        assert read(consumer, 10) == list(range(first, first + 10))
        consumer.commit(offsets=[TopicPartition("t", 0, first + 10)], asynchronous=False)
        consumer.close()


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
def test_members_offsets_and_generation_outlive_the_broker(tmp_path: Path, how: str) -> None:
    settings = ("moldau.flush.on.ack=true", "group.initial.rebalance.delay.ms=0", f"log.dirs={tmp_path / 'data'}")
    overrides = [f"--override={one}" for one in (*settings, f"listeners=PLAINTEXT://127.0.0.1:{free_port()}")]
    events: list[str] = []
    with ServerProcess(overrides) as server:
        bootstrap = server.bootstrap_servers
        create_and_fill(bootstrap, partitions=1, records=10)
        consumer = group_consumer(bootstrap)
        consumer.subscribe(
            ["t"],
            on_assign=lambda _, partitions: events.append("assigned"),
            on_revoke=lambda _, partitions: events.append("revoked"),
            on_lost=lambda _, partitions: events.append("lost"),
        )
        read(consumer, 10)
        consumer.commit(asynchronous=False)
        member_id = consumer.memberid()
        assert server.process is not None
        if how == "SIGTERM":
            assert server.terminate() == 0
        else:
            server.process.kill()
            server.wait()
    with ServerProcess(overrides) as server:
        assert server.bootstrap_servers == bootstrap
        produce(bootstrap, 10, 1)
        assert read(consumer, 10) == list(range(10))
        consumer.commit(asynchronous=False)
        (committed,) = consumer.committed([TopicPartition("t", 0)], timeout=30)
        assert committed.offset == 20
        assert consumer.memberid() == member_id
        assert events == ["assigned"]
        consumer.close()


def test_closing_a_consumer_that_never_joined_takes_no_time(broker: Broker) -> None:
    import time

    create_and_fill(broker.bootstrap_servers, partitions=1, records=1)
    consumer = group_consumer(broker.bootstrap_servers, enable_auto_commit=True)
    consumer.assign([TopicPartition("t", 0, 0)])
    read(consumer, 1)
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < 2
    again = group_consumer(broker.bootstrap_servers)
    assert again.committed([TopicPartition("t", 0)], timeout=30)[0].offset == 1
    again.close()


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_reads_as_a_group(broker: Broker) -> None:
    create_and_fill(broker.bootstrap_servers)
    command = ["kcat", "-b", broker.bootstrap_servers, "-G", "g", "-X", "auto.offset.reset=earliest", "-e", "t"]
    counts = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        counts.append(len(done.stdout.split()))
    assert counts == [RECORDS, 0]
