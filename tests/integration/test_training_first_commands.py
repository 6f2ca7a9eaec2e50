"""The first commands of the trainings, as processes and with the files that are shipped.

Ports and folders are the test's; everything else stands in `config/` as it is.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.free_ports import free_port
from tests.integration.cli_commands import run_line
from tests.integration.server_process import ServerProcess, wait_until
from tests.integration.zookeeper import four_letter_word

CONFIG = Path(__file__).parents[2] / "config"


@dataclass
class Training:
    """A folder with `config/` as a course has it, and what is started from it."""

    folder: Path
    zookeeper_port: int
    broker_port: int

    @property
    def environment(self) -> dict[str, str]:
        return {"XDG_RUNTIME_DIR": str(self.folder / "run"), "LOG_DIR": str(self.folder / "logs")}

    def start(self, command: str, *words: str) -> ServerProcess:
        return ServerProcess(
            [command, *words],
            program=("-m", "moldau.cli.main"),
            environment=self.environment,
        )

    def run(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "moldau.cli.main", command, *words],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def zookeeper(self) -> ServerProcess:
        return self.start("zookeeper-server-start", str(self.folder / "config/zookeeper.properties"))

    def broker(self, *overrides: str) -> ServerProcess:
        file = str(self.folder / "config/server.properties")
        return self.start("kafka-server-start", file, *(word for one in overrides for word in ("--override", one)))

    def tool(self, line: str) -> subprocess.CompletedProcess[str]:
        line = line.replace("0.0.0.0:2181", f"0.0.0.0:{self.zookeeper_port}")
        return run_line(line.replace("localhost:9092", f"localhost:{self.broker_port}"))

    def output(self, line: str) -> str:
        done = self.tool(line)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def training(tmp_path: Path) -> Training:
    zookeeper_port, broker_port = free_port(), free_port()
    (tmp_path / "config").mkdir()
    zookeeper = (CONFIG / "zookeeper.properties").read_text()
    zookeeper = zookeeper.replace("/tmp/zookeeper", str(tmp_path / "zookeeper"))
    zookeeper = zookeeper.replace("clientPort=2181", f"clientPort={zookeeper_port}")
    (tmp_path / "config/zookeeper.properties").write_text(zookeeper)
    server = (CONFIG / "server.properties").read_text()
    server = server.replace("/tmp/kafka-logs", str(tmp_path / "kafka-logs"))
    server = server.replace("zookeeper.connect=localhost:2181", f"zookeeper.connect=localhost:{zookeeper_port}")
    server = server.replace("#listeners=PLAINTEXT://:9092", f"listeners=PLAINTEXT://:{broker_port}")
    (tmp_path / "config/server.properties").write_text(server)
    return Training(tmp_path, zookeeper_port, broker_port)


STARTED = "brokers find their cluster at"


def started(point: ServerProcess) -> None:
    wait_until(lambda: STARTED in point.output or point.has_ended, what="the controller")
    assert not point.has_ended, point.output


def test_zookeeper_then_the_broker_then_topics_and_configs(training: Training) -> None:
    with training.zookeeper() as point:
        started(point)
        assert four_letter_word(training.zookeeper_port, b"ruok") == b"imok"
        with training.broker() as broker:
            assert broker.port == training.broker_port
            assert "[KafkaServer id=0] started" in broker.output
            create = "kafka-topics --zookeeper 0.0.0.0:2181 --topic first_topic --create --partitions 3"
            assert "Created topic first_topic." in training.output(f"{create} --replication-factor 1")
            assert training.output("kafka-topics.sh --zookeeper 0.0.0.0:2181 --list") == "first_topic\n"
            configs = "kafka-configs --zookeeper 0.0.0.0:2181 --entity-type topics --entity-name first_topic"
            assert "Completed updating" in training.output(f"{configs} --add-config min.insync.replicas=2 --alter")
            assert "are min.insync.replicas=2\n" in training.output(f"{configs} --describe")
            assert "Adding partitions succeeded!" in training.output(
                "kafka-topics --zookeeper 0.0.0.0:2181 --alter --topic first_topic --partitions 4"
            )
            # What needs three brokers says so, with Kafka's words.
            refused = training.tool(
                "kafka-topics --zookeeper 0.0.0.0:2181 --topic many_reps --create --partitions 6 --replication-factor 3"
            )
            assert refused.returncode == 1
            assert "3" in refused.stdout
            assert "replication" in refused.stdout.lower()

            assert broker.process is not None
            broker.process.send_signal(signal.SIGKILL)
            broker.wait()
        with training.broker() as again:
            assert again.port == training.broker_port
            assert training.output("kafka-topics --zookeeper 0.0.0.0:2181 --list") == "first_topic\n"
            assert training.run("zookeeper-server-stop").returncode == 0
            assert point.wait() == 0
            assert not again.has_ended
            assert training.output("kafka-topics --bootstrap-server localhost:9092 --list") == "first_topic\n"
            # Without a controller the broker stops after a moment, and does not hand over what it leads.
            assert training.run("kafka-server-stop").returncode == 0
            assert again.wait() == 0
            assert "Traceback" not in again.output + point.output
    nothing = training.run("zookeeper-server-stop")
    assert (nothing.returncode, nothing.stderr) == (1, "No zookeeper server to stop\n")


def test_three_brokers_from_three_files_survive_the_loss_of_one(training: Training) -> None:
    """The hands-on of the notes: three property files, a topic with three replicas, one broker killed."""
    brokers = []
    ports = [training.broker_port, free_port(), free_port()]
    for number, port in enumerate(ports):
        lines = [
            f"broker.id={number}",
            f"listeners=PLAINTEXT://:{port}",
            f"log.dirs={training.folder / f'kafka-logs-{number}'}",
            f"zookeeper.connect=localhost:{training.zookeeper_port}",
        ]
        (training.folder / f"config/server{number}.properties").write_text("\n".join(lines))
    with training.zookeeper() as point, ExitStack() as stack:
        started(point)
        for number in range(3):
            file = str(training.folder / f"config/server{number}.properties")
            brokers.append(stack.enter_context(training.start("kafka-server-start", file)))
        assert [one.port for one in brokers] == ports
        zookeeper = "--zookeeper 0.0.0.0:2181 --topic many_reps"
        training.output(f"kafka-topics {zookeeper} --create --partitions 6 --replication-factor 3")
        described = training.output(f"kafka-topics {zookeeper} --describe").splitlines()
        assert "PartitionCount: 6\tReplicationFactor: 3" in described[0]
        assert sorted(_leaders(described)) == [0, 0, 1, 1, 2, 2]
        assert all(sorted(one.split("Isr: ")[1].split("\t")[0].split(",")) == ["0", "1", "2"] for one in described[1:])

        produce = f"kafka-console-producer --broker-list localhost:{ports[0]} --topic many_reps"
        done = run_line(produce, stdin="".join(f"{number}\n" for number in range(20)))
        assert done.returncode == 0, done.stderr
        consume = f"kafka-console-consumer --bootstrap-server localhost:{ports[2]} --topic many_reps"
        read = training.output(f"{consume} --from-beginning --max-messages 20 --group readers").split()
        assert sorted(read, key=int) == [str(number) for number in range(20)]

        assert brokers[1].process is not None
        brokers[1].process.kill()
        brokers[1].wait()

        def have_moved() -> bool:
            now = training.output(f"kafka-topics {zookeeper} --describe").splitlines()
            return len(_leaders(now)) == 6 and 1 not in _leaders(now)

        wait_until(have_moved, what="other leaders")
        lost = training.output(f"kafka-topics {zookeeper} --describe --under-replicated-partitions")
        assert len(lost.splitlines()) == 6
        assert run_line(produce, stdin="20\n").returncode == 0
        file = str(training.folder / "config/server1.properties")
        with training.start("kafka-server-start", file) as again:
            assert again.port == ports[1]
            wait_until(
                lambda: not training.output(f"kafka-topics {zookeeper} --describe --under-replicated-partitions"),
                what="full ISRs",
            )
            read = training.output(f"{consume} --from-beginning --max-messages 21").split()
            assert sorted(read, key=int) == [str(number) for number in range(21)]
            shell = training.run("zookeeper-shell", f"localhost:{training.zookeeper_port}", "ls", "/brokers/ids")
            assert shell.stdout.splitlines()[-1] == "[0, 1, 2]"
            assert "Traceback" not in "".join(one.output for one in [*brokers, again, point])


def _leaders(described: list[str]) -> list[int]:
    found = [re.search(r"Leader: (\d+)", line) for line in described[1:]]
    return [int(one[1]) for one in found if one]


def test_a_broker_that_is_started_first_says_what_to_start_and_goes_on_when_it_is(training: Training) -> None:
    with training.broker() as broker:
        wait_until(lambda: "cannot register" in broker.output or broker.has_ended, what="the warning")
        assert "zookeeper-server-start config/zookeeper.properties" in broker.output
        with training.zookeeper() as point:
            started(point)
            assert broker.port == training.broker_port


def test_a_broker_that_waits_for_its_registration_can_be_stopped(training: Training) -> None:
    with training.broker() as broker:
        wait_until(lambda: "cannot register" in broker.output or broker.has_ended, what="the warning")
        assert broker.terminate() == 0
        assert "Traceback" not in broker.output


def test_two_brokers_without_a_controller_do_not_become_two_clusters(training: Training) -> None:
    short = "zookeeper.connection.timeout.ms=500"
    other = ("broker.id=1", f"listeners=PLAINTEXT://:{free_port()}", f"log.dirs={training.folder / 'logs-1'}")
    with training.broker(short) as first, training.broker(short, *other) as second:
        assert (first.wait(), second.wait()) == (1, 1)
        for one in (first, second):
            assert "nothing answered at localhost:" in one.output
            assert "Kafka Server started" not in one.output
    assert not (training.folder / "kafka-logs/meta.properties").exists()
    assert not (training.folder / "logs-1/meta.properties").exists()


def test_zookeeper_in_the_background_writes_its_log_and_is_found_again(training: Training) -> None:
    file = str(training.folder / "config/zookeeper.properties")
    assert training.run("zookeeper-server-start", "-daemon", file).returncode == 0
    log = training.folder / "logs/zookeeper.out"
    try:
        wait_until(lambda: log.exists() and STARTED in log.read_text(), what="the log")
        with training.zookeeper() as second:
            assert second.wait() == 1
            assert "is in use by another" in second.output
    finally:
        stopped = training.run("zookeeper-server-stop")
    assert stopped.returncode == 0
    wait_until(lambda: "shut down completed" in log.read_text(), what="the end")


def test_without_a_file_the_usage_is_told(training: Training) -> None:
    done = training.run("zookeeper-server-start")
    assert done.returncode == 1
    assert done.stderr.startswith("USAGE: zookeeper-server-start [-daemon] zookeeper.properties")
    missing = training.run("zookeeper-server-start", "nowhere.properties")
    assert missing.returncode == 1
    assert missing.stderr == "moldau: nowhere.properties: no such file; give the path of a properties file\n"
