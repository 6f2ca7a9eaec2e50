"""Two workers share the work, forward requests, and one takes over when the other is killed."""

from __future__ import annotations

from pathlib import Path

import httpx
from tests.integration.connect.killing import KillRun
from tests.integration.server_process import wait_until

from moldau.testing import Broker


def test_a_killed_workers_tasks_move_and_the_sink_holds_each_record_once(moldau_broker: Broker, tmp_path: Path) -> None:
    run = KillRun(tmp_path, moldau_broker.bootstrap_servers, engine="threads", limit=500)
    with run.running():
        run.await_running(*run.workers)
        wait_until(run.database.exists, what="the first rows")
        run.kill_one()
        survivor = run.workers[0]
        assert set(httpx.get(f"{survivor.url}/connectors").json()) == {"first", "second", "keeper"}
        run.check()
