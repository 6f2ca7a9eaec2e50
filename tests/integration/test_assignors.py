"""Assignors of real clients: three share six partitions, one is killed, one comes; no partition has two owners.

Who owns what is asked of the coordinator, again and again, never waited for by the clock.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.integration.both_brokers import create_topic
from tests.integration.group_consumer import HEARTBEAT_MS, SESSION_MS
from tests.integration.group_members import coordinator_is_ready
from tests.integration.server_process import wait_until
from tests.oracle.apache_kafka import java_command, needs_apache_kafka

from moldau.client.wire import WireClient
from moldau.protocol.api import ApiKey
from moldau.protocol.consumer_protocol import decode_assignment
from moldau.protocol.messages import Message
from moldau.testing import Broker

SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "offsets.topic.num.partitions": "1",
}
REPOSITORY = Path(__file__).parent.parent.parent
LIBRARIES = [
    *(("librdkafka", assignor) for assignor in ("range", "roundrobin", "cooperative-sticky", "consumer")),
    *(("kafka-python", assignor) for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky")),
]
JAVA = ("RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor", "consumer")
_serial = itertools.count()

Owners = dict[str, set[int]]
"""Partitions by member id."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


class Group:
    """Processes that consume one topic together, and what the coordinator says of them."""

    def __init__(self, broker: Broker, command: Callable[[str, str], Sequence[str]], protocol: str, partitions: int):
        self.name = self.topic = f"assigned-{next(_serial)}"
        self.wire = WireClient("127.0.0.1", broker.port)
        self._protocol = protocol
        self._command = command(self.name, self.topic)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        self._members: list[subprocess.Popen[bytes]] = []
        self._outputs: list[Path] = []
        self._folder = Path(tempfile.mkdtemp(prefix="moldau-assignors-"))
        self.sent: list[str] = []
        self.partitions = partitions
        create_topic(self.wire, self.topic, partitions)
        coordinator_is_ready(self.wire, self.name)

    def add(self) -> None:
        self._outputs.append(self._folder / f"{len(self._outputs)}.out")
        with self._outputs[-1].open("wb") as output:
            self._members.append(
                subprocess.Popen(self._command, stdout=output, stderr=subprocess.STDOUT, cwd=REPOSITORY)
            )

    def kill_one(self) -> None:
        member = self._members.pop(0)
        member.send_signal(signal.SIGKILL)
        member.wait()

    def produce(self, count: int) -> None:
        for number in range(count):
            value = f"record-{len(self.sent)}"
            self.sent.append(value)
            self._producer.produce(self.topic, value, partition=number % self.partitions)
        assert self._producer.flush(30) == 0

    def seen(self) -> set[str]:
        return set().union(*(_values(path.read_text(errors="replace")) for path in self._outputs))

    def settle(self, *shares: int) -> None:
        """Wait until the coordinator calls the group stable and the members' shares are these."""
        try:
            wait_until(lambda: self._shares() == Counter(shares), timeout_s=120, what=f"shares of {shares}")
        except TimeoutError as error:
            alive = [member.poll() is None for member in self._members]
            last_words = [path.read_text(errors="replace")[-500:] for path in self._outputs]
            raise TimeoutError(f"{error}: {self._described()}, alive: {alive}, said: {last_words}") from None

    def _shares(self) -> Counter[int]:
        """How many partitions each member has. Whenever it is asked, nothing may be owned twice."""
        state, owners = self._described()
        counts = Counter(partition for owned in owners.values() for partition in owned)
        assert all(count == 1 for count in counts.values()), f"owned twice: {owners}"
        return Counter(len(owned) for owned in owners.values()) if state == "Stable" else Counter()

    def _described(self) -> tuple[str, Owners]:
        if self._protocol == "consumer":
            request = Message(group_ids=[self.name], include_authorized_operations=False)
            (group,) = self.wire.send(ApiKey.CONSUMER_GROUP_DESCRIBE, request).groups
            return group.group_state, {
                one.member_id: {n for topic in one.assignment.topic_partitions for n in topic.partitions}
                for one in group.members
            }
        request = Message(groups=[self.name], include_authorized_operations=False)
        (group,) = self.wire.send(ApiKey.DESCRIBE_GROUPS, request).groups
        return group.group_state, {one.member_id: _decoded(one.member_assignment) for one in group.members}

    def close(self) -> None:
        for member in self._members:
            member.kill()
            member.wait()
        self.wire.close()
        shutil.rmtree(self._folder)


def _decoded(assignment: bytes) -> set[int]:
    if not assignment:
        return set()
    return {number for topic in decode_assignment(assignment)[1].assigned_partitions for number in topic.partitions}


def _values(output: str) -> set[str]:
    """Plain lines, or the JSON lines of Kafka's verifiable consumer."""
    lines = [line for line in output.splitlines() if "record" in line]
    return {json.loads(line).get("value", "") if line.startswith("{") else line for line in lines}


def three_on_six_partitions(group: Group) -> None:
    with contextlib.closing(group):
        for _ in range(3):
            group.add()
        group.produce(30)
        group.settle(2, 2, 2)
        group.produce(30)
        group.kill_one()
        group.produce(30)
        group.settle(3, 3)
        group.produce(30)
        group.add()
        group.settle(2, 2, 2)
        group.produce(30)
        wait_until(lambda: group.seen() >= set(group.sent), timeout_s=120, what="every record's arrival")


def python_command(broker: Broker, library: str, assignor: str) -> Callable[[str, str], Sequence[str]]:
    module = "tests.integration.group_consumer"
    return lambda group, topic: [
        *(sys.executable, "-m", module, library, broker.bootstrap_servers, group, topic, assignor)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("library", "assignor"), LIBRARIES)
def test_three_consumers_share_six_partitions_whoever_comes_or_goes(
    broker: Broker, library: str, assignor: str
) -> None:
    three_on_six_partitions(Group(broker, python_command(broker, library, assignor), assignor, partitions=6))


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky", "consumer"])
def test_consumers_beyond_the_partitions_stay_idle(broker: Broker, assignor: str) -> None:
    group = Group(broker, python_command(broker, "librdkafka", assignor), assignor, partitions=2)
    with contextlib.closing(group):
        for _ in range(3):
            group.add()
        group.settle(1, 1, 0)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize("assignor", JAVA)
def test_three_java_consumers_share_six_partitions_whoever_comes_or_goes(
    broker: Broker, assignor: str, tmp_path: Path
) -> None:
    needs_apache_kafka()
    options = ["--group-protocol", "consumer"]
    if assignor != "consumer":
        strategy = f"org.apache.kafka.clients.consumer.{assignor}"
        options = ["--session-timeout", str(SESSION_MS), "--assignment-strategy", strategy]
    properties = tmp_path / "consumer.properties"
    properties.write_text("" if assignor == "consumer" else f"heartbeat.interval.ms={HEARTBEAT_MS}\n")

    def command(group: str, topic: str) -> Sequence[str]:
        servers = ["--bootstrap-server", broker.bootstrap_servers, "--topic", topic, "--group-id", group]
        rest = ["--reset-policy", "earliest", "--verbose", "--command-config", str(properties)]
        return java_command("org.apache.kafka.tools.VerifiableConsumer", [*servers, *rest, *options])

    three_on_six_partitions(Group(broker, command, assignor, partitions=6))
