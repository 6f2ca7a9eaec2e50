"""Three brokers, each in a process of its own: replicated topics, transactions, kills, restarts.

The long version with many kills is `scripts/cluster-kills`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from tests.free_ports import free_port
from tests.integration.cli_commands import run_line
from tests.integration.cluster import CLUSTER_ID, Cluster, eventually
from tests.integration.cluster_kills import run as run_kills
from tests.integration.killable import KillableProcess

from moldau.cli.storage.command import main as kafka_storage
from moldau.cli.topics.command import main as kafka_topics
from moldau.client import wire_admin
from moldau.client.wire import WireClient
from moldau.core.ids import TopicPartition as WirePartition

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def produce(cluster: Cluster, topic: str, values: range, **settings: object) -> list[KafkaError | None]:
    """Send numbers over all partitions; the outcome of each."""
    outcomes: list[KafkaError | None] = []
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "log_level": 0, **settings},
        error_cb=lambda error: None,
    )
    for value in values:
        producer.produce(topic, str(value), key=str(value), on_delivery=lambda error, _: outcomes.append(error))
        producer.poll(0)
    producer.flush(90)
    return outcomes


def read(cluster: Cluster, topic: str, partitions: int, count: int, **settings: object) -> list[int]:
    """Read until `count` numbers were found, or nothing came for long."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"reader-of-{topic}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[int] = []
    deadline = time.monotonic() + 90
    try:
        while len(found) < count and time.monotonic() < deadline:
            found += [int(one.value() or b"") for one in consumer.consume(500, 0.2) if one.error() is None]
    finally:
        consumer.close()
    return found


def test_leaders_move_when_a_broker_is_killed_and_the_isr_completes_when_it_is_back(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = cluster.bootstrap_servers
    created = ["--create", "--topic", "many_reps", "--partitions", "6", "--replication-factor", "3"]
    assert kafka_topics(["--bootstrap-server", bootstrap, *created]) == 0
    cluster.wait_until_in_sync("many_reps")
    assert sorted(set(cluster.leaders("many_reps").values())) == [1, 2, 3]
    assert produce(cluster, "many_reps", range(100)) == [None] * 100

    victim = cluster.leaders("many_reps")[0]
    cluster.kill(victim)
    eventually(lambda: _all_led(cluster, "many_reps", but=victim), "other leaders")
    assert produce(cluster, "many_reps", range(100, 200)) == [None] * 100
    assert sorted(read(cluster, "many_reps", 6, 200)) == list(range(200))

    cluster.spawn(victim)
    cluster.wait_until_in_sync("many_reps")
    capsys.readouterr()
    assert kafka_topics(["--bootstrap-server", bootstrap, "--describe", "--topic", "many_reps"]) == 0
    shown = capsys.readouterr().out
    assert "PartitionCount: 6\tReplicationFactor: 3" in shown
    assert all(len(line.split("Isr: ")[1].split("\t")[0].split(",")) == 3 for line in shown.splitlines()[1:])


def _all_led(cluster: Cluster, topic: str, *, but: int) -> bool:
    leaders = cluster.leaders(topic)
    return len(leaders) == 6 and but not in leaders.values()


def test_too_few_replicas_in_sync_are_told_and_reads_go_on(cluster: Cluster) -> None:
    cluster.create_topic("two", 1, 2, min_insync_replicas="2")
    assert produce(cluster, "two", range(10)) == [None] * 10
    leader = cluster.leaders("two")[0]
    follower = next(one for one in cluster.isrs("two")[0] if one != leader)
    cluster.kill(follower)
    eventually(lambda: cluster.isrs("two").get(0) == [leader], "the ISR shrinks")
    with WireClient("127.0.0.1", cluster.ports[leader]) as client:
        assert wire_admin.is_elr_enabled(client)
        eventually(
            lambda: wire_admin.eligible_leader_replicas(client, ["two"])[WirePartition("two", 0)] == ((follower,), ()),
            "who was in sync last may still lead",
        )

    outcomes = produce(cluster, "two", range(10, 11), retries=0)
    assert [one.code() for one in outcomes if one is not None] == [KafkaError.NOT_ENOUGH_REPLICAS]
    assert sorted(read(cluster, "two", 1, 10)) == list(range(10))

    cluster.spawn(follower)
    eventually(lambda: len(cluster.isrs("two").get(0, ())) == 2, "the ISR is complete")
    assert produce(cluster, "two", range(10, 20)) == [None] * 10
    cluster.wait_for_brokers(3)


def test_transactions_over_partitions_of_all_brokers_are_whole(cluster: Cluster) -> None:
    cluster.create_topic("moved", 6, 3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "mover", "log_level": 0})
    producer.init_transactions(60)
    for number, is_committed in ((0, True), (100, False), (200, True)):
        producer.begin_transaction()
        for value in range(number, number + 60):
            producer.produce("moved", str(value), key=str(value))
        if is_committed:
            producer.commit_transaction(60)
        else:
            producer.flush(60)
            producer.abort_transaction(60)
    wanted = [*range(60), *range(200, 260)]
    assert sorted(read(cluster, "moved", 6, 120, **{"isolation.level": "read_committed"})) == wanted


def test_a_group_goes_on_where_it_was_when_its_coordinator_is_killed(cluster: Cluster) -> None:
    cluster.create_topic("grouped", 3, 3)
    produce(cluster, "grouped", range(30))

    def consumed(count: int) -> list[int]:
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "log_level": 0,
            }
        )
        consumer.subscribe(["grouped"])
        found: list[int] = []
        deadline = time.monotonic() + 90
        try:
            while len(found) < count and time.monotonic() < deadline:
                found += [int(one.value() or b"") for one in consumer.consume(100, 0.2) if one.error() is None]
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return found

    assert sorted(consumed(30)) == list(range(30))
    cluster.wait_until_in_sync("__consumer_offsets")
    victim = cluster.leaders("__consumer_offsets")[0]
    cluster.kill(victim)
    produce(cluster, "grouped", range(30, 60))
    assert sorted(consumed(30)) == list(range(30, 60))
    cluster.spawn(victim)
    cluster.wait_for_brokers(3)


def test_a_broker_alone_joins_takes_replicas_and_leaves_and_its_double_is_refused(
    cluster: Cluster, tmp_path: Path
) -> None:
    process, double, stranger = (
        _broker_alone(cluster, tmp_path / name, cluster_id)
        for name, cluster_id in (
            ("fourth", CLUSTER_ID),
            ("double", CLUSTER_ID),
            ("stranger", "AAAAhRAQFytWskYqtQduwA"),
        )
    )
    process.spawn()
    try:
        cluster.wait_for_brokers(4)
        cluster.create_topic("wide", 1, 4)
        assert produce(cluster, "wide", range(10)) == [None] * 10
        eventually(lambda: cluster.isrs("wide").get(0) == [1, 2, 3, 4], "four in sync")

        for refused, words in ((double, "a broker with id 4 runs already"), (stranger, "belongs to another cluster")):
            refused.spawn()
            eventually(lambda refused=refused: refused.exit_code is not None, "it is refused")  # type: ignore[misc]
            assert words in refused.last_words
            assert "Traceback" not in refused.last_words

        assert process.terminate() == 0
        eventually(lambda: cluster.isrs("wide").get(0) == [1, 2, 3], "three in sync")
        assert produce(cluster, "wide", range(10, 20)) == [None] * 10

        forget = f"kafka-cluster unregister --bootstrap-server {cluster.bootstrap_servers} --id 4"
        assert run_line(forget).stdout == "Broker 4 is no longer registered.\n"
        again = run_line(forget)
        assert (again.returncode, "Broker ID 4 is not currently registered" in again.stderr) == (1, True)
    finally:
        for one in (process, double, stranger):
            one.kill()
    cluster.wait_for_brokers(3)


def _broker_alone(cluster: Cluster, folder: Path, cluster_id: str) -> KillableProcess:
    """A node 4 that is no controller, formatted."""
    voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in cluster.controller_ports.items())
    folder.mkdir()
    file = folder / "server.properties"
    file.write_text(
        f"process.roles=broker\nnode.id=4\nlisteners=PLAINTEXT://127.0.0.1:{free_port()}\n"
        f"controller.listener.names=CONTROLLER\ncontroller.quorum.voters={voters}\nlog.dirs={folder / 'data'}\n"
        "broker.heartbeat.interval.ms=200\nbroker.session.timeout.ms=1500\n"
        "initial.broker.registration.timeout.ms=3000\n"
    )
    assert kafka_storage(["format", "-t", cluster_id, "-c", str(file)]) == 0
    return KillableProcess("moldau.cli.server.start", [str(file)], folder / "output")


def test_nothing_acknowledged_is_lost_when_brokers_are_ended_under_load(tmp_path: Path) -> None:
    report = run_kills(kills=2, seed=5, folder=tmp_path)

    assert report.problems == []
    assert report.acknowledged > 0
    assert len(report.ends) == 2
