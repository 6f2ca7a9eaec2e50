"""Workers that are told to end while something keeps them waiting."""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path

import httpx
import pytest
from tests.integration.connect.conftest import cluster_settings
from tests.integration.connect.talk import COUNTER
from tests.integration.killable import KillableBroker
from tests.integration.server_process import ServerProcess, wait_until

LIMIT_S = 9.0
"""Far above what is promised, 3 s, and far below what an end took that waited for Spark."""
CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
STANDALONE = "import sys; from moldau.cli.connect.worker_start import *; sys.exit(connect_standalone())"
DISTRIBUTED = STANDALONE.replace("standalone", "distributed")
REPLICATION = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
STARTED = re.compile(r"Kafka Connect .* started: (http://\S+)")
ENGINE = re.compile(r"starting an engine process \((\d+)\)")


@pytest.fixture
def endless_java(tmp_path: Path) -> Path:
    """A JAVA_HOME whose Java starts and is never ready; it ends when its standard input is closed."""
    java = tmp_path / "java-home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("""#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "17.0.1"' >&2; exit 0; }
exec cat
""")
    java.chmod(0o755)
    return java.parent.parent


def test_a_worker_does_not_wait_for_spark_to_start(tmp_path: Path, endless_java: Path) -> None:
    with socket.socket() as nowhere:
        nowhere.bind(("127.0.0.1", 0))
        worker, source = tmp_path / "worker.properties", tmp_path / "source.properties"
        worker.write_text(
            f"bootstrap.servers=127.0.0.1:{nowhere.getsockname()[1]}\nlisteners=http://127.0.0.1:0\n"
            f"key.converter={CONVERTER}\nvalue.converter={CONVERTER}\noffset.storage.file.filename={tmp_path}/offsets\n"
            f"moldau.connect.state.dir={tmp_path}\n"
        )
        source.write_text("name=lines\nconnector.class=FileStreamSource\nfile=/etc/hosts\ntopic=lines\n")
        environment = {"JAVA_HOME": str(endless_java)}
        with ServerProcess(
            [str(worker), str(source)],
            program=("-c", STANDALONE),
            environment=environment,
        ) as process:
            wait_until(lambda: "starting Spark" in process.output or process.has_ended, what="the start of Spark")
            found = ENGINE.search(process.output)
            assert found, process.output
            began = time.monotonic()
            assert process.terminate() == 0
            assert time.monotonic() - began < LIMIT_S, process.output
            assert not os.path.exists(f"/proc/{found.group(1)}")


def test_a_worker_does_not_wait_for_brokers_that_do_not_answer(tmp_path: Path) -> None:
    """With a connector under way: that nobody runs it from now on cannot be written."""
    broker = KillableBroker(tmp_path, {"group.initial.rebalance.delay.ms": "0"})
    try:
        broker.start()
        own = {"bootstrap.servers": broker.bootstrap_servers, "listeners": "http://127.0.0.1:0"}
        others = {"key.converter": CONVERTER, "moldau.connect.engine": "threads"}
        settings = {**cluster_settings(), **REPLICATION, **own, **others}
        file = tmp_path / "worker.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        with ServerProcess([str(file)], program=("-c", DISTRIBUTED)) as process:
            wait_until(lambda: STARTED.search(process.output) or process.has_ended, what="the worker's start")
            found = STARTED.search(process.output)
            assert found, process.output
            with httpx.Client(base_url=found.group(1), timeout=60) as connect:
                config = {"connector.class": COUNTER, "topic": "frozen"}
                assert connect.put("/connectors/frozen/config", json=config).status_code == 201
                wait_until(lambda: states(connect, "frozen") == ["RUNNING", "RUNNING"], what="the task")
                connect.put("/connectors/frozen/pause")
                wait_until(lambda: states(connect, "frozen") == ["PAUSED", "PAUSED"], what="the pause")
            broker.freeze()
            began = time.monotonic()
            assert process.terminate() == 0
            assert time.monotonic() - began < LIMIT_S, process.output
    finally:
        broker.thaw()
        broker.close()


def states(connect: httpx.Client, name: str) -> list[str]:
    """The state of a connector, and those of its tasks."""
    answer = connect.get(f"/connectors/{name}/status")
    if answer.status_code != 200:
        return []
    status = answer.json()
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
