"""Connect's commands with their tasks on Spark."""

from __future__ import annotations

from pathlib import Path

import httpx
from tests.integration.connect.killing import WorkerProcess
from tests.integration.connect.talk import await_states, make
from tests.integration.server_process import wait_until

from moldau.testing import Broker


def test_a_file_arrives_in_another_through_tasks_on_spark(moldau_broker: Broker, tmp_path: Path) -> None:
    read, written = tmp_path / "in.txt", tmp_path / "out.txt"
    read.write_text("one\ntwo\n")
    with WorkerProcess(tmp_path / "worker", moldau_broker.bootstrap_servers, engine="spark") as worker:
        try:
            with httpx.Client(base_url=worker.url, timeout=60) as connect:
                make(connect, "read", {"connector.class": "FileStreamSource", "file": str(read), "topic": "on-spark"})
                make(
                    connect, "write", {"connector.class": "FileStreamSink", "file": str(written), "topics": "on-spark"}
                )
                wait_until(
                    lambda: written.exists() and written.read_text() == "one\ntwo\n", timeout_s=180, what="the lines"
                )
                await_states(connect, "read", "RUNNING", "RUNNING")
                with read.open("a") as file:
                    file.write("three\n")
                wait_until(lambda: written.read_text() == "one\ntwo\nthree\n", what="the third line")
            assert isinstance(worker, WorkerProcess)
            assert worker.terminate() == 0
        finally:
            worker.kill()
