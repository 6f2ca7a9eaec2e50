"""The consumer protocol with Apache Kafka's own consumer and tools, which also read the records moldau wrote."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.consumer_groups import (
    QUICK,
    create_topic,
    describe,
    heartbeat,
    join,
    new_consumer,
    owners,
    poll_until,
    produce,
    wire,
)
from tests.oracle.apache_kafka import ApacheKafka, java_command, needs_apache_kafka, run_tool

from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.testing import Broker

pytestmark = pytest.mark.java

STARTING = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSUMER_TOOL = "org.apache.kafka.tools.consumer.ConsoleConsumer"


@pytest.fixture
def broker() -> Iterator[Broker]:
    needs_apache_kafka()
    with Broker(QUICK) as running:
        create_topic(running, "t", 6)
        produce(running, "t", range(60), 6)
        yield running


def consumer_options(broker: Broker, *options: str) -> list[str]:
    return [
        *("--bootstrap-server", broker.bootstrap_servers, "--group", "g", "--from-beginning"),
        *("--consumer-property", "group.protocol=consumer", *options),
    ]


@contextmanager
def java_consumer(broker: Broker, *options: str) -> Iterator[None]:
    command = java_command(CONSUMER_TOOL, consumer_options(broker, *options))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def test_the_console_consumer_reads_commits_and_is_described(broker: Broker) -> None:
    options = consumer_options(broker, "--topic", "t", "--max-messages", "60", "--timeout-ms", "30000")
    done = run_tool(CONSUMER_TOOL, options)
    assert set(map(str, range(60))) <= set(done.stdout.split()), done.stderr
    shown = run_tool(GROUPS_TOOL, ["--bootstrap-server", broker.bootstrap_servers, "--describe", "--group", "g"])
    rows = [line.split() for line in shown.stdout.splitlines() if line.startswith("g ")]
    assert [(row[1], row[2], row[3], row[5]) for row in rows] == [("t", str(n), "10", "0") for n in range(6)]


def test_java_and_librdkafka_share_a_group(broker: Broker) -> None:
    consumer = new_consumer(broker, ["t"])
    with wire(broker) as client, java_consumer(broker, "--topic", "t"):
        poll_until([consumer], lambda: sorted(load(describe(client))) == [3, 3])
        shown = run_tool(
            GROUPS_TOOL,
            ["--bootstrap-server", broker.bootstrap_servers, "--describe", "--group", "g", "--members", "--verbose"],
        )
        assert sum(line.startswith("g ") for line in shown.stdout.splitlines()) == 2, shown.stdout
        poll_until([consumer], lambda: describe(client).group_state == "Stable")
    with wire(broker) as client:
        poll_until([consumer], lambda: load(describe(client)) == [6])
    consumer.close()


def load(group: object) -> list[int]:
    found = list(owners(group).values())  # type: ignore[arg-type]
    return [found.count(member) for member in set(found)]


def test_a_java_consumer_of_the_classic_protocol_shares_the_group_meanwhile(broker: Broker) -> None:
    consumer = new_consumer(broker, ["t"])
    with (
        wire(broker) as client,
        java_consumer(broker, "--topic", "t", "--consumer-property", "group.protocol=classic"),
    ):
        poll_until([consumer], lambda: sorted(load(describe(client))) == [3, 3])
        assert sorted(member.member_type for member in describe(client).members) == [0, 1]
    consumer.close()


def test_kafkas_dump_reads_the_records_of_a_group(tmp_path: Path) -> None:
    needs_apache_kafka()
    with Broker({**QUICK, "offsets.topic.num.partitions": "1"}, data=tmp_path) as broker:
        create_topic(broker, "t", 6)
        consumer = new_consumer(broker, ["^t$"], group_instance_id="one")
        poll_until([consumer], lambda: len(consumer.assignment()) == 6)
        consumer.close()
    (file,) = tmp_path.rglob("__consumer_offsets-0/00000000000000000000.log")
    done = run_tool("org.apache.kafka.tools.DumpLogSegments", ["--files", str(file), "--offsets-decoder"])
    for expected in (
        '"type":"3","data":{"groupId":"g"}',
        '"subscribedTopicRegex":"(^t$)"',
        '"instanceId":"one"',
        '"assignmentEpoch":1',
        '"memberEpoch":-2',
        '"regularExpression":"(^t$)"',
        '"partitions":[0,1,2,3,4,5]',
    ):
        assert expected in done.stdout, (expected, done.stdout[:3000], done.stderr)


def test_members_stay_in_their_group_under_the_other_broker(tmp_path: Path) -> None:
    needs_apache_kafka()
    few = {**QUICK, "group.consumer.session.timeout.ms": "60000", "offsets.topic.num.partitions": "1"}
    with Broker(few, data=tmp_path / "data") as broker:
        create_topic(broker, "t", 6)
        with wire(broker) as client:
            assert join(client, "gone").member_epoch == 1
            assert heartbeat(client, "gone", -1).error_code == ErrorCode.NONE
            epoch = join(client, "stays").member_epoch
            assert len(owners(describe(client))) == 6
    settings = few | {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
    with ApacheKafka(tmp_path, settings) as kafka, WireClient("127.0.0.1", kafka.port) as client:
        epoch = still_in(client, "stays", epoch)
        assert len(owners(describe(client))) == 6
        assert join(client, "came").error_code == ErrorCode.NONE
    with Broker(few, data=tmp_path / "data") as broker, wire(broker) as client:
        still_in(client, "stays", epoch)
        assert {member.member_id for member in describe(client).members} == {"stays", "came"}


def still_in(client: WireClient, member_id: str, epoch: int) -> int:
    """Have a member heard again once its coordinator is there; its epoch, which may have risen."""
    while True:
        reply = heartbeat(client, member_id, epoch)
        if reply.error_code == ErrorCode.NONE:
            return int(reply.member_epoch)
        assert reply.error_code in STARTING, reply
