"""Connect's tasks on a Spark cluster of two workers, which are killed at random moments, with their executors.

The Connect worker and its driver live on: the carriers that were on the killed Spark worker start on the other one, and
in the end the sink must hold each record exactly once. Start at `ClusterRun`; `scripts/connect-kill --cluster` runs it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.connect.connectors import rows
from tests.integration.connect.killing import KillRun
from tests.integration.server_process import wait_until
from tests.spark.spark_cluster import SparkCluster

from moldau.client.admin import Admin

__all__ = ["ClusterRun"]

CORES = 3
"""Of each Spark worker: room for all carriers, since one worker is alone for a while."""
NEW_ROWS = 200


class ClusterRun(KillRun):
    """One Connect worker with the three connectors; what is killed are Spark's workers."""

    def __init__(self, folder: Path, servers: str, *, seed: int, limit: int) -> None:
        super().__init__(folder, servers, engine="spark", seed=seed, limit=limit)
        self._cluster = SparkCluster(folder, workers=2, cores=CORES)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The cluster, and the Connect worker with its connectors."""
        with self._cluster, self._stack:
            self.overrides = {
                "spark.master": self._cluster.url,
                "spark.executor.memory": "512m",
                "spark.executorEnv.PYTHONPATH": os.getcwd(),
                "moldau.connect.tasks.per.carrier": "2",
            }
            self.start_worker()
            assert self.workers[0].url
            Admin(self._servers, {}).create_topic("killing", partitions=3, replication_factor=1)
            self.make_connectors()
            yield

    def kill_one(self) -> float:
        """Kill the Spark worker that runs most; returns the seconds until the sink has many new rows."""
        victim = max(self._cluster.workers, key=self._cluster.python_processes)
        assert self._cluster.python_processes(victim), "no worker of the cluster runs a carrier"
        self._cluster.kill_worker(victim)
        began, before = time.monotonic(), len(rows(self.database))
        wait_until(
            lambda: len(rows(self.database)) >= before + NEW_ROWS,
            timeout_s=180,
            what=f"{NEW_ROWS} new rows after a Spark worker was killed: {self.placed(self.workers[0].url)}",
        )
        took = time.monotonic() - began
        self._cluster.add_worker(f"worker-after-{victim.pid}")
        wait_until(
            lambda: all(map(self._cluster.executors, self._cluster.workers)), timeout_s=120, what="two executors"
        )
        return took
