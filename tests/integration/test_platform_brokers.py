"""`moldau status` shows each broker of a platform with a cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.free_ports import free_cluster_port
from tests.integration.running_platform import Platform, until


def test_status_shows_each_broker_and_one_that_was_killed_comes_back(tmp_path: Path) -> None:
    platform = Platform(tmp_path / "platform", "broker")
    platform.ports |= {name: free_cluster_port() for name in ("broker", "metrics")}
    try:
        started = platform.up("--brokers", "3")
        assert started.returncode == 0, started.stdout + started.stderr
        names = [f"broker {number}" for number in (1, 2, 3)]
        until(lambda: [platform.rows().get(name, {}).get("state") for name in names] == ["running"] * 3)
        rows = platform.rows()
        first = platform.ports["broker"]
        assert [rows[name]["address"] for name in names] == [f"127.0.0.1:{first + place}" for place in range(3)]
        pid = int(rows["broker 2"]["pid"])
        os.kill(pid, signal.SIGKILL)
        until(lambda: platform.rows()["broker 2"]["pid"] != str(pid))
        until(lambda: platform.rows()["broker 2"]["state"] == "running")
        assert platform.rows()["broker 1"]["pid"] == rows["broker 1"]["pid"]
    finally:
        platform.moldau("down")
