"""A Connect worker inside the test process, on a free port; its tasks run in threads, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.testing.in_thread import InThread

if TYPE_CHECKING:
    from moldau.connect.worker.instance import ConnectInstance

__all__ = ["ConnectWorker"]


class ConnectWorker(InThread):
    """A worker for tests.

        with ConnectWorker(broker.bootstrap_servers) as worker:
            httpx.post(f"{worker.url}/connectors", json={"name": "copy", "config": {...}})

    `settings` are Kafka Connect's worker keys. With `offset.storage.file.filename` the worker is a standalone one,
    which runs `connectors`.
    """

    what = "Connect worker"

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Mapping[str, str] | None = None,
        connectors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__()
        own = {
            "bootstrap.servers": bootstrap_servers,
            "listeners": "http://127.0.0.1:0",
            "moldau.connect.engine": "threads",
            "offset.flush.interval.ms": "200",
        }
        given = {**own, **(settings or {})}
        if "offset.storage.file.filename" not in given:
            given = {**_CLUSTER, **given}
        self._given = given
        self._connectors = connectors
        self.instance: ConnectInstance | None = None

    @property
    def url(self) -> str:
        assert self.instance is not None
        return self.instance.url

    @property
    def worker_id(self) -> str:
        assert self.instance is not None
        assert self.instance.herder is not None
        return self.instance.herder.worker_id

    async def serve(self, ready: Callable[[], None], stopping: asyncio.Event) -> None:
        from moldau.connect.worker.settings import WorkerSettings
        from moldau.server.services.connect import connect_instance

        standalone = "offset.storage.file.filename" in self._given
        instance = connect_instance(WorkerSettings.of(self._given, standalone=standalone), self._connectors)
        try:
            await instance.start()
            self.instance = instance
            ready()
            await stopping.wait()
        finally:
            await instance.stop()


_CLUSTER = {
    "group.id": "connect-cluster",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.storage.partitions": "2",
    "status.storage.partitions": "2",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "300",
    "scheduled.rebalance.max.delay.ms": "0",
}
