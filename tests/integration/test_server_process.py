"""Starting and stopping a node as a process: what an operator sees."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.free_ports import free_port
from tests.integration.server_process import ServerProcess, wait_until

KAFKA_START = ("-m", "moldau.cli.server.start")


def server(data: Path, *arguments: str, **environment: str) -> ServerProcess:
    words = ["--port", "0", "--data", str(data), "--override", "metrics.http.port=0", *arguments]
    return ServerProcess(words, environment=environment)


def produce(bootstrap: str, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def values_of(bootstrap: str, topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    records = consumer.consume(count, timeout=30)
    consumer.close()
    return [record.value().decode() for record in records]


def test_records_survive_an_orderly_restart(tmp_path: Path) -> None:
    with server(tmp_path / "log") as first:
        produce(first.bootstrap_servers, "greetings", "one", "two")
        assert first.terminate() == 0
        assert "[KafkaServer id=1] started" in first.output
        assert (tmp_path / "log/.kafka_cleanshutdown").exists()
    with server(tmp_path / "log") as second:
        assert values_of(second.bootstrap_servers, "greetings", 2) == ["one", "two"]


def test_leader_epochs_rise_with_every_start(tmp_path: Path) -> None:
    epochs = []
    for _ in range(3):
        with server(tmp_path / "log") as running:
            produce(running.bootstrap_servers, "t", "x")
            running.terminate()
        lines = (tmp_path / "log/t-0/leader-epoch-checkpoint").read_text().split("\n")[2:-1]
        epochs.append(int(lines[-1].split()[0]))
    assert epochs == sorted(set(epochs))


def test_a_second_broker_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with server(tmp_path / "log") as first:
        assert first.port
        with server(tmp_path / "log") as second:
            assert second.wait() == 1
            assert "in use by another broker" in second.output
            assert "Traceback" not in second.output
        assert first.terminate() == 0


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        with ServerProcess(["--data", str(tmp_path), "--override", listeners]) as refused:
            assert refused.wait() == 1
            assert "cannot listen on PLAINTEXT://127.0.0.1" in refused.output
            assert "Traceback" not in refused.output


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("num.partitions=many", "num.partitions"),
        ("log.cleanup.policy=shred", "log.cleanup.policy"),
        ("listeners=nonsense", "listeners"),
        ("log.dirs", "expected key=value"),
    ],
)
def test_an_invalid_setting_stops_the_start_with_one_line(tmp_path: Path, override: str, message: str) -> None:
    with ServerProcess(["--data", str(tmp_path), "--override", override]) as refused:
        assert refused.wait() == 1
        assert message in refused.output
        assert len(refused.output.strip().splitlines()) == 1


def test_check_config_says_yes_and_starts_nothing(tmp_path: Path) -> None:
    with ServerProcess(["--data", str(tmp_path / "log"), "--check-config"]) as checked:
        assert checked.wait() == 0
        assert "valid" in checked.output
    assert not (tmp_path / "log").exists()


def test_unknown_settings_warn_and_the_environment_counts(tmp_path: Path) -> None:
    with server(tmp_path / "log", "--override", "no.such.key=1", KAFKA_NUM_PARTITIONS="4") as running:
        produce(running.bootstrap_servers, "four", "x")
        metadata = AdminClient({"bootstrap.servers": running.bootstrap_servers}).list_topics("four", timeout=10)
        assert len(metadata.topics["four"].partitions) == 4
        assert "WARN no.such.key is not a known setting" in running.output


def test_metrics_and_health_answer_over_http(tmp_path: Path) -> None:
    port = free_port()
    with server(tmp_path / "log", "--override", f"metrics.http.port={port}") as running:
        produce(running.bootstrap_servers, "counted", *["x"] * 10)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.status == 200
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        assert 'kafka_server_brokertopicmetrics_messagesin_total{topic="counted"} 10' in text
        assert "kafka_server_brokertopicmetrics_messagesin_total 10" in text


def test_without_configuration_only_this_machine_can_connect(tmp_path: Path) -> None:
    with server(tmp_path / "log") as running:
        bound = listening_hosts(running)
        assert bound == {"127.0.0.1"}
        assert "only this machine can connect; --host 0.0.0.0 or listeners opens it to others" in running.output
        assert f"data in {tmp_path / 'log'}" in running.output
        assert "metrics are off" in running.output


def test_it_can_be_opened_and_tells_each_client_an_address_that_works(tmp_path: Path) -> None:
    with server(tmp_path / "log", "--host", "0.0.0.0") as running:
        assert listening_hosts(running) == {"0.0.0.0"}
        assert "only this machine" not in running.output
        for host in ("127.0.0.1", "127.0.0.2"):
            metadata = AdminClient({"bootstrap.servers": f"{host}:{running.port}"}).list_topics(timeout=10)
            assert [broker.host for broker in metadata.brokers.values()] == [host]


def test_the_metrics_port_is_this_machines_too(tmp_path: Path) -> None:
    port = free_port()
    with server(tmp_path / "log", "--host", "0.0.0.0", "--override", f"metrics.http.port={port}") as running:
        assert listening_hosts(running) == {"0.0.0.0", "127.0.0.1"}
        assert f"metrics at http://127.0.0.1:{port}/metrics" in running.output


def test_a_file_without_listeners_keeps_kafkas_rule(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=1\n")
    with server(tmp_path / "log", str(file)) as running:
        assert listening_hosts(running) == {"0.0.0.0"}


def _target(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:
        return ""  # closed meanwhile


def listening_hosts(running: ServerProcess) -> set[str]:
    """The addresses on which the process accepts connections, as the kernel tells."""
    assert running.port
    assert running.process is not None
    folder = Path(f"/proc/{running.process.pid}")
    inodes = {_target(one) for one in (folder / "fd").iterdir()}
    rows = [line.split() for line in (folder / "net/tcp").read_text().splitlines()[1:]]
    listening = [row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]
    return {socket.inet_ntoa(bytes.fromhex(one)[::-1]) for one in listening}


def test_the_log_tells_what_happens_to_topics_groups_and_segments(tmp_path: Path) -> None:
    rounds = ["log.retention.check.interval.ms=100", "log.initial.task.delay.ms=100", "num.partitions=2"]
    overrides = [word for one in rounds for word in ("--override", one)]
    with server(tmp_path / "log", *overrides, "--override", "group.initial.rebalance.delay.ms=0") as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic("short", 1, 1, config={"retention.ms": "1"})])["short"].result(30)
        produce(running.bootstrap_servers, "short", "x")
        produce(running.bootstrap_servers, "made-by-its-producer", "x")
        consumer = Consumer({"bootstrap.servers": running.bootstrap_servers, "group.id": "readers"})
        consumer.subscribe(["made-by-its-producer"])
        wait_until(lambda: consumer.poll(0.1) or consumer.assignment(), what="an assignment")
        consumer.close()
        admin.delete_topics(["short"])["short"].result(30)
        for expected in (
            r"created topic short with 1 partition \(id \S+\), retention.ms=1 ",
            r"created topic made-by-its-producer with 2 partitions ",
            r"short-0: deleting 1 segment \(\d+ bytes\) below offset 1: their records are older than retention.ms=1 ",
            r"group readers: rebalance of generation 0 with 1 member begins: rdkafka-\S+ joins ",
            r"group readers: generation 1 has 1 member, protocol range ",
            r"group readers: rebalance of generation 1 with 0 members begins: rdkafka-\S+ left ",
            r"group readers: generation 2 is empty ",
            r"deleted topic short \(id \S+\) ",
        ):
            wait_until(lambda: len(re.findall(f"INFO {expected}", running.output)) == 1, what=expected)  # noqa: B023
        assert running.process is not None
        running.process.kill()
        running.wait()
    with server(tmp_path / "log") as again:
        assert again.port
        assert re.search(r"the last run did not shut down cleanly: \d+ partitions recovered in \d+ ms", again.output)


def test_logs_can_be_json(tmp_path: Path) -> None:
    with server(tmp_path / "log", "--log-format", "json") as running:
        wait_until(lambda: "Kafka Server started" in running.output, what="the start")
        running.terminate()
        messages = [json.loads(line)["message"] for line in running.output.splitlines()]
    assert "[KafkaServer id=1] started" in messages


def test_a_server_properties_file_starts_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=localhost:9093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        f"log.dirs={tmp_path / 'log'}\nnum.partitions=2\n"
    )
    with ServerProcess([str(file)], program=KAFKA_START) as refused:
        assert refused.wait() == 1
        assert "is not formatted" in refused.output
    with ServerProcess([str(file), "--override", "moldau.auto.format=true"], program=KAFKA_START) as running:
        produce(running.bootstrap_servers, "two", "x")
        assert "[KafkaServer id=7] started" in running.output
        assert (tmp_path / "log/two-1").is_dir()


def test_kafka_server_stop_finds_what_it_started(tmp_path: Path) -> None:
    environment = {"XDG_RUNTIME_DIR": str(tmp_path / "run")}
    stop = [
        sys.executable,
        "-c",
        "import sys; from moldau.cli.server.stop import kafka_server_stop as s; sys.exit(s())",
    ]
    with server(tmp_path / "log", **environment) as running:
        assert running.port
        subprocess.run(stop, env={**os.environ, **environment}, check=True, timeout=30)
        assert running.wait() == 0
    nothing = subprocess.run(
        stop, env={**os.environ, **environment}, check=False, timeout=30, capture_output=True, text=True
    )
    assert (nothing.returncode, nothing.stderr.strip()) == (1, "No kafka server to stop")


def test_ctrl_c_shuts_down_in_order(tmp_path: Path) -> None:
    with server(tmp_path / "log") as running:
        produce(running.bootstrap_servers, "t", "x")
        assert running.process is not None
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 0
        assert "shut down completed" in running.output
        assert "Traceback" not in running.output
