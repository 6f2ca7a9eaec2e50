"""`moldau up` on the installed command: real processes, killed, taken over, restarted and stopped."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.running_platform import Platform, until

from moldau.client.admin import Admin
from moldau.server.platform.services import SERVICES


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    made = Platform(tmp_path / "platform", "registry", "rest")
    yield made
    if (made.folder / "run" / "platform.json").exists():
        made.moldau("down")


def test_what_dies_is_started_again_and_nothing_is_lost(platform: Platform) -> None:
    started = platform.up()
    assert started.returncode == 0, started.stderr
    assert f"http://127.0.0.1:{platform.ports['registry']}" in started.stdout
    servers = f"127.0.0.1:{platform.ports['broker']}"
    Admin(servers, timeout_ms=30_000).create_topic("kept", partitions=2)
    assert platform.produce("kept") == 0
    schema_id = platform.register("kept-value")
    for title in ("broker", "schema registry", "REST proxy"):
        platform.kill(title)
        assert platform.rows()[title]["restarts"] == "1"
    assert "kept" in Admin(servers, timeout_ms=30_000).topic_names()
    assert platform.register("kept-value") == schema_id
    assert platform.produce("kept") == 1

    pid = platform.pid_of("schema registry")
    restarted = platform.moldau("restart", "registry")
    assert restarted.returncode == 0, restarted.stderr
    assert platform.pid_of("schema registry") != pid
    assert "schema registry" in platform.moldau("logs", "registry").stdout
    assert "there is no service 'nonsense'" in platform.moldau("restart", "nonsense").stderr

    assert platform.moldau("down").returncode == 0
    assert {row["state"] for row in platform.rows().values()} == {"stopped"}
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", platform.ports["broker"])) != 0


def test_services_whose_supervisor_was_killed_are_taken_over(platform: Platform) -> None:
    assert platform.up().returncode == 0
    pids = {name: row["pid"] for name, row in platform.rows().items()}
    os.kill(platform.supervisor_pid(), signal.SIGKILL)
    until(lambda: "Nobody supervises these" in platform.moldau("status").stderr)
    again = platform.up()
    assert again.returncode == 0, again.stderr
    assert {name: row["pid"] for name, row in platform.rows().items()} == pids
    assert "runs already" in platform.up().stdout

    os.kill(platform.supervisor_pid(), signal.SIGKILL)
    until(lambda: "Nobody supervises these" in platform.moldau("status").stderr)
    assert platform.moldau("down").returncode == 0
    assert {row["state"] for row in platform.rows().values()} == {"stopped"}


def test_a_taken_port_is_named_with_its_process_before_anything_starts(platform: Platform) -> None:
    with socket.create_server(("127.0.0.1", platform.ports["registry"])):
        refused = platform.up()
    assert refused.returncode == 1
    assert f"port {platform.ports['registry']} of registry is taken by" in refused.stderr
    assert f"(pid {os.getpid()})" in refused.stderr
    assert "--port registry=PORT" in refused.stderr
    assert "no platform has been started" in platform.moldau("status").stderr


def test_destroy_asks_and_refuses_a_running_platform(platform: Platform) -> None:
    assert platform.up().returncode == 0
    assert "stop it first: moldau down" in platform.moldau("destroy", "--yes").stderr
    assert platform.moldau("down").returncode == 0
    (platform.folder / "mine.txt").write_text("kept")
    assert platform.moldau("destroy", "--yes").returncode == 0
    assert [path.name for path in platform.folder.iterdir()] == ["mine.txt"]


def test_connect_and_ksql_are_started_again_with_what_they_had(tmp_path: Path) -> None:
    platform = Platform(tmp_path / "platform")
    started = platform.up("--log-format", "json")
    assert started.returncode == 0, started.stderr
    try:
        for service in SERVICES:
            line = platform.moldau("logs", service, "-n", "1").stdout
            assert {"level", "logger", "message"} <= json.loads(line).keys()
        platform.run_statements(
            "CREATE STREAM orders (amount INT) WITH (kafka_topic='orders', value_format='json', partitions=1);"
        )
        config = {"connector.class": "FileStreamSource", "file": "/not/there", "topic": "lines"}
        stopped = {"name": "lines", "config": config, "initial_state": "STOPPED"}  # so that Spark is not started
        platform.ask("connect", "/connectors", stopped)
        for title in ("Connect", "ksql", "broker"):
            platform.kill(title)
        until(lambda: platform.ask("connect", "/connectors") == ["lines"])
        (listing,) = platform.run_statements("SHOW STREAMS;")
        assert "ORDERS" in [one["name"] for one in listing["streams"]]
        for service in ("registry", "rest", "connect", "ksql", "metrics"):
            for path in ("/healthz", "/readyz"):
                until(lambda service=service, path=path: isinstance(platform.ask(service, path), dict))  # type: ignore[misc]
    finally:
        assert platform.moldau("down").returncode == 0


def test_a_query_without_java_says_what_to_install(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(Path(sys.executable).parent)}
    environment.pop("JAVA_HOME", None)
    platform = Platform(tmp_path / "platform", "registry", "ksql", environment=environment)
    assert platform.up().returncode == 0
    try:
        platform.run_statements(
            "CREATE STREAM orders (amount INT) WITH (kafka_topic='orders', value_format='json', partitions=1);"
            "CREATE STREAM copies AS SELECT * FROM orders;"
        )

        def complaint() -> str:
            (query,) = platform.ask("ksql", "/progress")["pipelines"]
            return str(query["last_error"])

        until(lambda: "Spark needs Java 17 or newer" in complaint())
        assert "apt-get install" in complaint()
        assert platform.rows()["ksql"]["state"] == "running"
    finally:
        assert platform.moldau("down").returncode == 0
