"""The tools for replicas and for the quorum on three brokers, and beside Apache Kafka's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli_commands import run_line
from tests.integration.cluster import Cluster, eventually
from tests.oracle.apache_kafka import needs_apache_kafka, run_tool


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.create_topic("orders", 3, 2)
        cluster.wait_for_brokers(3)
        yield cluster


def output(cluster: Cluster, line: str) -> str:
    done = run_line(f"{line} --bootstrap-server {cluster.bootstrap_servers}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def replicas(cluster: Cluster, topic: str) -> dict[int, list[int]]:
    lines = output(cluster, f"kafka-topics --describe --topic {topic}").splitlines()[1:]
    found = [re.search(r"Partition: (\d+)\t.*Replicas: ([\d,]+)\t", line) for line in lines]
    return {int(one[1]): [int(each) for each in one[2].split(",")] for one in found if one}


def test_a_topic_gets_a_third_replica_and_other_leaders(cluster: Cluster, tmp_path: Path) -> None:
    topics, moves = tmp_path / "topics.json", tmp_path / "moves.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "orders"}]}))
    proposed = output(
        cluster, f"kafka-reassign-partitions --generate --topics-to-move-json-file {topics} --broker-list 1,2,3"
    )
    current, plan = (json.loads(line) for line in proposed.splitlines() if line.startswith("{"))
    assert {one["partition"]: one["replicas"] for one in current["partitions"]} == replicas(cluster, "orders")
    assert all(len(set(one["replicas"])) == 2 for one in plan["partitions"])

    moved = [{"topic": "orders", "partition": number, "replicas": [3, 1, 2]} for number in range(3)]
    moves.write_text(json.dumps({"version": 1, "partitions": moved}))
    tool = f"kafka-reassign-partitions --reassignment-json-file {moves}"
    started = output(cluster, f"{tool} --execute")
    assert "Save this to use as the --reassignment-json-file option during rollback" in started
    assert "Successfully started partition reassignments for orders-0,orders-1,orders-2" in started
    eventually(lambda: "in progress" not in output(cluster, f"{tool} --verify"), "the moves")
    assert "Reassignment of partition orders-2 is completed." in output(cluster, f"{tool} --verify")
    assert replicas(cluster, "orders") == {number: [3, 1, 2] for number in range(3)}

    cluster.wait_until_in_sync("orders")
    output(cluster, "kafka-leader-election --election-type preferred --topic orders --partition 0")
    output(cluster, "kafka-preferred-replica-election")
    eventually(lambda: cluster.leaders("orders") == dict.fromkeys(range(3), 3), "preferred leaders")
    again = output(cluster, "kafka-leader-election --election-type preferred --topic orders --partition 0")
    assert again == "Valid replica already elected for partitions orders-0\n"
    assert output(cluster, "kafka-reassign-partitions --list") == "No partition reassignments found.\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("kafka-leader-election --election-type sideways --all-topic-partitions", "preferred or unclean"),
        ("kafka-leader-election --election-type preferred", "One and only one of the following options is required"),
        ("kafka-leader-election --election-type preferred --topic nothing --partition 0", "Error completing leader"),
        ("kafka-reassign-partitions", "Command must include exactly one action"),
        ("kafka-reassign-partitions --execute --reassignment-json-file nowhere.json", "nowhere.json: No such file"),
        ("kafka-reassign-partitions --execute --reassignment-json-file /dev/null", "not of the form"),
    ],
)
def test_mistakes_are_told(cluster: Cluster, line: str, said: str) -> None:
    done = run_line(f"{line} --bootstrap-server {cluster.bootstrap_servers}")
    assert done.returncode == 1
    assert said in done.stdout + done.stderr


def test_a_reassignment_to_a_broker_that_is_not_there_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    moves = tmp_path / "moves.json"
    moves.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 9]}]}))
    tool = f"kafka-reassign-partitions --bootstrap-server {cluster.bootstrap_servers} --reassignment-json-file {moves}"
    done = run_line(f"{tool} --execute")
    assert done.returncode == 1
    assert "Unknown broker id(s) 9" in done.stdout + done.stderr
    before = replicas(cluster, "orders")
    assert "rather than 1,9" in run_line(f"{tool} --verify").stdout
    assert replicas(cluster, "orders") == before


def test_the_quorum_is_described_by_brokers_and_by_controllers(cluster: Cluster) -> None:
    controllers = ",".join(f"127.0.0.1:{port}" for port in cluster.controller_ports.values())
    ways = (f"--bootstrap-server {cluster.bootstrap_servers}", f"--bootstrap-controller {controllers}")
    leaders = set()
    for way in ways:
        status = run_line(f"kafka-metadata-quorum {way} describe --status").stdout
        facts = dict(line.split(":", 1) for line in status.splitlines())
        leaders.add(facts["LeaderId"].strip())
        assert [one["id"] for one in json.loads(facts["CurrentVoters"])] == [1, 2, 3]
        table = run_line(f"kafka-metadata-quorum {way} describe --replication --human-readable").stdout
        assert sorted(line.split("\t")[-2].strip() for line in table.splitlines()[1:]) == [
            "Follower",
            "Follower",
            "Leader",
        ]
        assert "ms ago" in table
    assert len(leaders) == 1
    listed = run_line(f"kafka-cluster list-endpoints --bootstrap-controller {controllers}").stdout
    assert len(listed.splitlines()) == 4
    assert run_line(f"kafka-cluster cluster-id --bootstrap-controller {controllers}").stdout.startswith("Cluster ID: ")


def test_replicas_are_verified(cluster: Cluster) -> None:
    done = run_line(
        f"kafka-replica-verification --broker-list {cluster.bootstrap_servers} --topics-include orders --max-reports 1"
    )
    assert re.search(r"max lag is 0 for partition orders-\d among", done.stdout)


def features(words: str) -> str:
    done = run_line(f"kafka-features {words}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_eligible_leaders_are_turned_off_and_on_again(cluster: Cluster) -> None:
    name, brokers = "eligible.leader.replicas.version", f"--bootstrap-server {cluster.bootstrap_servers}"
    cluster.create_topic("ledger", 1, 2, min_insync_replicas="2")
    assert features(f"{brokers} disable --feature {name} --dry-run") == f"{name} can be disabled.\n"
    assert "FinalizedVersionLevel: 1" in next(
        line for line in features(f"{brokers} describe").splitlines() if name in line
    )
    assert features(f"{brokers} disable --feature {name}") == f"{name} was disabled.\n"
    assert "Elr" not in output(cluster, "kafka-topics --describe --topic ledger")
    setting = "min.insync.replicas"
    output(cluster, f"kafka-configs --alter --entity-type brokers --entity-name 1 --add-config {setting}=1")
    controllers = ",".join(f"127.0.0.1:{port}" for port in cluster.controller_ports.values())
    upgrade = f"--bootstrap-controller {controllers} upgrade --feature {name}=1"
    assert features(upgrade) == f"{name} was upgraded to 1.\n"
    # One value for all brokers from now on, as in a cluster that began with the feature.
    described = output(cluster, "kafka-configs --describe --entity-type brokers --entity-name 1")
    assert f"DYNAMIC_BROKER_CONFIG:{setting}" not in described
    leader = cluster.leaders("ledger")[0]
    follower = next(one for one in replicas(cluster, "ledger")[0] if one != leader)
    cluster.terminate(follower)
    try:
        described = "kafka-topics --describe --topic ledger"
        eventually(lambda: f"Elr: {follower}" in output(cluster, described), "the eligible leader")
    finally:
        cluster.spawn(follower)
        cluster.wait_for_brokers(3)
        eventually(lambda: len(cluster.isrs("ledger")[0]) == 2, "the ISR of ledger")


@pytest.mark.java
@pytest.mark.parametrize(
    ("tool", "class_name", "options"),
    [
        ("kafka-metadata-quorum", "org.apache.kafka.tools.MetadataQuorumCommand", "describe --status"),
        ("kafka-features", "org.apache.kafka.tools.FeatureCommand", "describe"),
        *[
            ("kafka-features", "org.apache.kafka.tools.FeatureCommand", options)
            for options in (
                "upgrade --feature metadata.version=25",
                "upgrade --feature group.version=9 --feature metadata.version=25 --dry-run",
                "upgrade --feature nonsense=1",
                "upgrade --metadata 3.7-IV4",
                "upgrade --feature eligible.leader.replicas.version=x",
                "upgrade",
                "downgrade --feature metadata.version=24 --dry-run",
                "downgrade --feature metadata.version=22",
                "downgrade --feature metadata.version=22 --unsafe",
                "disable --feature metadata.version",
                "disable --feature nonsense",
                "disable --feature eligible.leader.replicas.version --dry-run",
            )
        ],
        ("kafka-cluster", "org.apache.kafka.tools.ClusterTool", "list-endpoints"),
        (
            "kafka-reassign-partitions",
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            "--verify --reassignment-json-file FILE",
        ),
        (
            "kafka-reassign-partitions",
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            "--cancel --reassignment-json-file FILE",
        ),
        ("kafka-reassign-partitions", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--list"),
        (
            "kafka-leader-election",
            "org.apache.kafka.tools.LeaderElectionCommand",
            "--election-type preferred --topic orders --partition 1",
        ),
        ("kafka-topics", "org.apache.kafka.tools.TopicCommand", "--describe --under-replicated-partitions"),
        ("kafka-topics", "org.apache.kafka.tools.TopicCommand", "--describe --under-min-isr-partitions"),
        ("kafka-topics", "org.apache.kafka.tools.TopicCommand", "--describe --unavailable-partitions"),
    ],
)
def test_same_question_same_answer(cluster: Cluster, tmp_path: Path, tool: str, class_name: str, options: str) -> None:
    needs_apache_kafka()
    moves = tmp_path / "moves.json"
    at = [
        {"topic": "orders", "partition": number, "replicas": each}
        for number, each in replicas(cluster, "orders").items()
    ]
    moves.write_text(json.dumps({"version": 1, "partitions": at}))
    run_line(
        f"kafka-leader-election --bootstrap-server {cluster.bootstrap_servers} --election-type preferred "
        "--all-topic-partitions"
    )
    words = options.replace("FILE", str(moves)).split()
    # Cluster tools want their action first, the quorum's and the features' after the servers.
    before = [words.pop(0)] if tool == "kafka-cluster" else []
    arguments = [*before, "--bootstrap-server", cluster.bootstrap_servers, *words]
    theirs, ours = run_tool(class_name, arguments), run_line(" ".join([tool, *arguments]))
    if tool == "kafka-metadata-quorum":
        assert without_moving_numbers(ours.stdout) == without_moving_numbers(theirs.stdout)
    else:
        assert without_node(ours.stdout) == without_node(theirs.stdout)
    assert ours.returncode == theirs.returncode


def without_node(text: str) -> str:
    return re.sub(r"Local controller \d", "Local controller", text)


def without_moving_numbers(text: str) -> str:
    return re.sub(r"(HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs):( +)-?\d+", r"\1:", text)
