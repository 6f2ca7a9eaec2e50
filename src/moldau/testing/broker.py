"""A real broker inside the test process, on a free port, with its log in a temporary folder.

It is the same node that `moldau server` runs, on an event loop in its own thread.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from weakref import finalize

from moldau.core.clock import Clock, SystemClock
from moldau.testing.in_thread import InThread

if TYPE_CHECKING:
    from moldau.log.files import Files
    from moldau.server.node import Node

__all__ = ["Broker"]


class Broker(InThread):
    """A broker for tests.

        with Broker() as broker:
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    `settings` are Kafka's broker keys (`{"num.partitions": "4"}`), `data` a folder to keep instead of a temporary
    one. `clock` and `files` replace the system's. `restart()` shuts down cleanly and starts again on the same port and
    data. Records with fixed, old timestamps stay as long as the test runs: the first retention check, which would
    delete them, comes after an hour. A test of retention sets `log.initial.task.delay.ms` itself.
    """

    what = "broker"

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        data: Path | None = None,
        clock: Clock | None = None,
        files: Files | None = None,
    ) -> None:
        super().__init__()
        self._settings = dict(settings or {})
        self.data = data if data is not None else Path(tempfile.mkdtemp(prefix="moldau-test-"))
        # Also for a broker that is started and stopped without a `with` block, or never started.
        self._remove_data = finalize(self, shutil.rmtree, self.data, ignore_errors=True) if data is None else None
        self._clock = clock or SystemClock()
        self._files = files
        self._port = 0
        self.node: Node | None = None
        self.fatal_error: BaseException | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The value of a client's `bootstrap.servers`."""
        return f"127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def metrics_url(self) -> str:
        """The base URL of /metrics, /healthz and /jmx, if `metrics.http.port` is set."""
        assert self.node is not None
        return f"http://127.0.0.1:{self.node.metrics_port}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._remove_data is not None:
            self._remove_data()

    async def serve(self, ready: Callable[[], None], stopping: asyncio.Event) -> None:
        from moldau.core.config import BrokerConfig
        from moldau.log.files import Files
        from moldau.server.run import node_class

        config = BrokerConfig(self._effective_settings())
        make = node_class(config)
        node = make(config, may_format=True, on_fatal=self._on_fatal, clock=self._clock, files=self._files or Files())
        try:
            await node.start()
            self.node = node
            self._port = node.port_of("PLAINTEXT")
            ready()
            await stopping.wait()
        finally:
            await node.stop()

    def _effective_settings(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.initial.task.delay.ms": "3600000",
        } | self._settings

    def _on_fatal(self, error: BaseException) -> None:
        """A real process would exit here; store the reason instead, and stop serving."""
        self.fatal_error = error
        self.ask_to_stop()
