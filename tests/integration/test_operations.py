"""What operators do to a cluster while clients work: nobody notices."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.free_ports import free_cluster_port, free_port
from tests.integration.cli_commands import run_line
from tests.integration.cluster import QUICK, Cluster, eventually
from tests.integration.killable import KillableBroker, KillableProcess
from tests.integration.steady_load import SteadyLoad

pytestmark = pytest.mark.slow


def assert_nobody_noticed(load: SteadyLoad) -> None:
    assert load.sent > 100
    assert load.refused == []
    assert load.consumer_errors == []
    assert load.rereads == []
    assert load.lost == set()
    assert load.doubled == 0


def test_a_rolling_restart_of_all_brokers_is_not_noticed(tmp_path: Path) -> None:
    with Cluster(tmp_path, settings={"min.insync.replicas": "2"}) as cluster:
        cluster.create_topic("steady", 3, 3)
        cluster.wait_until_in_sync("steady")
        with SteadyLoad(cluster.bootstrap_servers, "steady") as load:
            eventually(lambda: load.read, "the first record")
            for node in cluster.nodes:
                assert cluster.terminate(node) == 0
                cluster.spawn(node)
                cluster.wait_for_brokers(3)
                cluster.wait_until_in_sync("steady")
                cluster.wait_until_in_sync("__consumer_offsets")
        assert_nobody_noticed(load)


def test_the_folder_of_a_server_that_was_alone_becomes_a_cluster_under_load(tmp_path: Path) -> None:
    """`moldau server`, then `moldau server --brokers 3` on the same folder and port, then three replicas of all."""
    quick = {**QUICK, "offsets.topic.replication.factor": "1"}
    alone = KillableBroker(tmp_path, quick, port=free_cluster_port())
    alone.start()
    run_line(f"kafka-topics --bootstrap-server {alone.bootstrap_servers} --create --topic steady --partitions 3")
    with SteadyLoad(alone.bootstrap_servers, "steady") as load:
        eventually(lambda: load.read, "the first record")
        assert alone.terminate() == 0
        words = [word for key, value in QUICK.items() for word in ("--override", f"{key}={value}")]
        cluster = KillableProcess(
            "moldau.cli.main",
            ["server", "--brokers", "3", "--data", str(tmp_path / "data"), "--port", str(alone.port), *words],
            tmp_path / "output",
        )
        cluster.spawn()
        try:
            eventually(lambda: len(listed(alone.bootstrap_servers)) == 3, "three brokers")
            before = len(load.read)
            eventually(lambda: len(load.read) > before, "records of the cluster")
            move_to(alone.bootstrap_servers, tmp_path, {"steady": 3, "__consumer_offsets": 3})
            eventually(lambda: len(load.read) > before + 100, "more records")
        finally:
            load.finish()
            assert cluster.terminate() == 0
    assert_nobody_noticed(load)
    assert not list(tmp_path.rglob("*-stray"))


def listed(servers: str) -> list[str]:
    """The brokers that answer."""
    lines = run_line(f"kafka-cluster list-endpoints --bootstrap-server {servers}").stdout.splitlines()
    return [line for line in lines if line.rstrip().endswith("broker")]


def move_to(servers: str, folder: Path, topics: dict[str, int]) -> None:
    """Give every partition of these topics replicas on all three brokers, and wait until they are in sync."""
    moves = folder / "moves.json"
    wanted = [
        {"topic": topic, "partition": number, "replicas": [1, 2, 3]}
        for topic, partitions in topics.items()
        for number in range(partitions)
    ]
    moves.write_text(json.dumps({"version": 1, "partitions": wanted}))
    tool = f"kafka-reassign-partitions --bootstrap-server {servers} --reassignment-json-file {moves}"
    started = run_line(f"{tool} --execute")
    assert started.returncode == 0, started.stdout + started.stderr

    def is_done() -> bool:
        told = run_line(f"{tool} --verify --preserve-throttles").stdout
        return told.count("is completed.") == len(wanted)

    eventually(is_done, "all replicas are there")


def test_metrics_tell_of_a_lost_broker_and_of_its_return(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    ports = {node: free_port() for node in cluster.nodes}
    for node, port in ports.items():
        with cluster.file_of(node).open("a") as file:
            file.write(f"metrics.http.port={port}\n")

    def total(name: str) -> float:
        return sum(value for node in ports for value in metric(ports[node], name))

    with cluster:
        cluster.create_topic("watched", 3, 3)
        cluster.wait_until_in_sync("watched")
        eventually(lambda: total("kafka_server_replicamanager_underreplicatedpartitions") == 0, "full ISRs")
        leaders = {metric(port, "kafka_server_raft_metrics_current_leader")[0] for port in ports.values()}
        assert len(leaders) == 1
        assert total('kafka_server_raft_metrics_current_state{state="leader"}') == 1
        assert total('kafka_server_raft_metrics_current_state{state="follower"}') == 2
        assert total("kafka_controller_kafkacontroller_activecontrollercount") == 1
        elections = total("kafka_controller_controllerstats_leaderelectionrateandtimems_count")
        cluster.kill(3)
        lost = ports.pop(3)
        eventually(lambda: total("kafka_server_replicamanager_underreplicatedpartitions") >= 3, "the loss is told")
        assert total("kafka_server_replicamanager_underminisrpartitioncount") == 0
        eventually(lambda: total("kafka_controller_kafkacontroller_fencedbrokercount") > 0, "the fence is told")
        cluster.spawn(3)
        ports[3] = lost
        cluster.wait_for_brokers(3)
        cluster.wait_until_in_sync("watched")
        eventually(lambda: total("kafka_server_replicamanager_underreplicatedpartitions") == 0, "full ISRs again")
        assert total("kafka_server_replicamanager_isrexpands_total") > 0
        assert total("kafka_controller_controllerstats_leaderelectionrateandtimems_count") != elections
        assert len(metric(ports[3], "kafka_server_replicafetchermanager_maxlag")) == 1
        eventually(lambda: len(metric(ports[3], "kafka_server_fetcherlagmetrics_consumerlag")) >= 2, "the lag is told")


def metric(port: int, name: str) -> list[float]:
    """The values of a metric, by the beginning of its lines; none while the broker does not answer."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return []
    return [float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{"))]
