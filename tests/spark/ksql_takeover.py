"""Two ksql servers share the queries; the one that counts is killed with its engine, and the other goes on.

What must have been written is as in `ksql_kill`: every change once. Start at `run`.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.free_ports import free_port
from tests.integration.server_process import wait_until
from tests.spark.ksql_kill import PATIENCE_S, STATEMENTS, KsqlProcess, Load, check, size, total_count

from moldau.testing import Broker

COUNTING = "CTAS_COUNTS_1"


def run(servers: str, folder: Path) -> float:
    """Kill the server that counts while records come; the time in seconds until the other one has counted further."""
    pair = [KsqlProcess(servers, folder, free_port()) for _ in range(2)]
    for server in pair:
        server.start()
    load = Load(servers)
    left = list(pair)
    try:
        wait_until(lambda: len(pair[0].cluster_status()) == 2, timeout_s=PATIENCE_S, what="both servers")
        pair[0].statements(STATEMENTS)
        load.start()
        wait_until(lambda: size(servers, "COUNTS") > 0, timeout_s=PATIENCE_S, what="the first counts")
        [counting] = [
            host for host, one in pair[0].cluster_status().items() if COUNTING in one["activeStandbyPerQuery"]
        ]
        [killed] = [server for server in pair if urlsplit(server.url).netloc == counting]
        left.remove(killed)
        killed.kill()
        killed.kill_engine()
        began, seen = time.monotonic(), size(servers, "COUNTS")
        wait_until(lambda: size(servers, "COUNTS") > seen, timeout_s=PATIENCE_S, what="counts by the other server")
        taken_over_s = time.monotonic() - began
        load.stop()
        expected = load.written
        wait_until(lambda: size(servers, "COUNTS") >= expected, timeout_s=PATIENCE_S, what="all counts")
        wait_until(lambda: size(servers, "EVEN") >= (expected + 1) // 2, timeout_s=PATIENCE_S, what="all even rows")
        check(servers, expected)
        wait_until(lambda: total_count(left[0]) == expected, timeout_s=PATIENCE_S, what="the table's copy")
        return taken_over_s
    finally:
        load.stop() if load.is_alive() else None
        for server in left:
            server.stop()


def main() -> None:
    """Run it once."""
    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        seconds = run(broker.bootstrap_servers, Path(folder))
    print(f"taken over after {seconds:.1f} s: every change is there once")


if __name__ == "__main__":
    main()
