"""Workers that are told to end while something keeps them waiting."""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path

import pytest
from tests.integration.server_process import ServerProcess, wait_until

LIMIT_S = 9.0
"""Far above what is promised, 3 s, and far below what an end took that waited for Spark."""
CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
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
        )
        source.write_text("name=lines\nconnector.class=FileStreamSource\nfile=/etc/hosts\ntopic=lines\n")
        environment = {"JAVA_HOME": str(endless_java), "XDG_DATA_HOME": str(tmp_path)}
        with ServerProcess(
            [str(worker), str(source)],
            program=("-c", "import sys; from moldau.cli.connect.worker_start import *; sys.exit(connect_standalone())"),
            environment=environment,
        ) as process:
            wait_until(lambda: "starting Spark" in process.output or process.has_ended, what="the start of Spark")
            found = ENGINE.search(process.output)
            assert found, process.output
            began = time.monotonic()
            assert process.terminate() == 0
            assert time.monotonic() - began < LIMIT_S, process.output
            assert not os.path.exists(f"/proc/{found.group(1)}")
