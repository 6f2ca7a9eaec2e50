"""Kills one of two Connect workers at random moments, with all its processes; `scripts/connect-kill` runs it.

With `--cluster` a Connect worker has its tasks on a Spark cluster, one of whose two workers is killed.

Three connectors run all the time; each killed worker is replaced. In the end the sink holds each record exactly
once. Start at `main`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.integration.connect.killing import KillRun
from tests.spark.connect_cluster import ClusterRun

from moldau.testing import Broker

ROWS_PER_ROUND = 600


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("spark", "threads"), default="spark")
    parser.add_argument("--cluster", action="store_true", help="kill the workers of a Spark cluster instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="connect-kill-") as folder, Broker() as broker:
        servers, limit = broker.bootstrap_servers, ROWS_PER_ROUND * options.kills
        if options.cluster:
            run: KillRun = ClusterRun(Path(folder), servers, seed=options.seed, limit=3 * limit)
        else:
            run = KillRun(Path(folder), servers, engine=options.engine, seed=options.seed, limit=limit)
        seconds = []
        with run.running():
            run.await_running(*run.workers)
            for number in range(options.kills):
                time.sleep(run.random.uniform(0, 3))
                seconds.append(run.kill_one())
                what = "new rows" if options.cluster else "everything runs on the other"
                print(f"kill {number + 1}: {what} after {seconds[-1]:.1f} s", flush=True)
                if not options.cluster:
                    run.start_worker()
                run.await_running(*run.workers)
            run.check()
    print(f"each record is there exactly once; takeovers took {min(seconds):.1f} to {max(seconds):.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
