"""Kill workers of a Spark cluster in the middle of batches, and check that every output is there exactly once.

The application of `kill_worker` counts clicks in windows and joins orders with payments, on a cluster of two workers
here. Again and again one of them is killed with -9, its executor and that one's Python processes too, and another one
comes. The driver lives on: it must go on by itself, and write nothing twice. Start at `run`;
`scripts/streams-cluster --kills 10` is the long version.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.integration.killable import KillableBroker
from tests.spark.hdfs import Hdfs
from tests.spark.spark_cluster import SparkCluster
from tests.spark.streams_kill import Application, Auditor, Feeder, Report, create_topics, finish, judge, wait

__all__ = ["run"]

SETTLED = 200
"""Outputs after which a pipeline is in the middle of its work, and not at its beginning."""


def run(*, kills: int, seed: int, folder: Path, per_second: int = 100, state: str | None = None) -> Report:
    """Kill `kills` times and check what is left; `seed` decides when, `state` is another `state.dir`."""
    chance = random.Random(seed)
    broker = KillableBroker(folder, {})
    broker.start()
    try:
        create_topics(broker.bootstrap_servers)
        with SparkCluster(folder) as cluster:
            # Locks and stores stay on the driver's machine: here with everything else.
            environment = {"SPARK_MASTER": cluster.url, "XDG_STATE_HOME": str(folder / "here")}
            application = Application(broker.bootstrap_servers, folder, environment, state)
            try:
                with Auditor(broker.bootstrap_servers) as auditor:
                    feeder = Feeder(broker.bootstrap_servers, per_second)
                    return _run(feeder, auditor, application, cluster, [chance.uniform(0, 1) for _ in range(kills)])
            finally:
                application.close()
    finally:
        broker.close()


def _run(
    feeder: Feeder, auditor: Auditor, application: Application, cluster: SparkCluster, pauses_s: Sequence[float]
) -> Report:
    report = Report()
    with feeder:
        application.start_if_gone()
        for number, pause_s in enumerate(pauses_s):
            _wait_for_outputs(auditor, application)
            time.sleep(pause_s)
            # Younger workers come last, so that each one is killed in its turn.
            victim = next(worker for worker in cluster.workers if cluster.executors(worker))
            cluster.kill_worker(victim)
            cluster.add_worker(f"worker-after-{number}")
            report.kills["a worker with its executor"] += 1
        _wait_for_outputs(auditor, application)
    status = finish(application, feeder, auditor)
    judge(report, application, feeder, auditor, status)
    if report.starts > 1:
        report.problems.append(f"the driver did not live through it: {report.starts} starts")
    return report


def _wait_for_outputs(auditor: Auditor, application: Application) -> None:
    seen = auditor.seen
    wait(lambda: auditor.seen > seen + SETTLED, application, "new outputs", auditor)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/streams-cluster", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--rate", type=int, default=100, help="clicks a second")
    parser.add_argument("--keep", action="store_true", help="leave the folder for a look")
    parser.add_argument("--hdfs", action="store_true", help="keep state in a Hadoop file system, started here as well")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="moldau-streams-cluster-"))
    print(f"seed {options.seed}, in {folder}", flush=True)
    with Hdfs(folder / "hdfs") if options.hdfs else nullcontext() as hdfs:
        state = None if hdfs is None else f"{hdfs.url}/state"
        report = run(kills=options.kills, seed=options.seed, folder=folder, per_second=options.rate, state=state)
    print(report)
    if not options.keep and not report.problems:
        shutil.rmtree(folder)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
