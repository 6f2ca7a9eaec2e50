"""The controller in ZooKeeper's place inside the test process: what `zookeeper-server-start` runs."""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Callable
from types import TracebackType

from tests.free_ports import free_port

from moldau.server.zookeeper.node import ZooKeeperNode
from moldau.server.zookeeper.properties_file import ZooKeeperFile
from moldau.testing.in_thread import InThread

__all__ = ["ZooKeeper", "four_letter_word"]


class ZooKeeper(InThread):
    """`restart()` keeps port and data; `forget()` removes the data."""

    what = "controller"

    def __init__(self, *, session_timeout_ms: int = 9000) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="moldau-zookeeper-")
        self._session_timeout_ms = session_timeout_ms
        self.port = free_port()
        self.failures: list[BaseException] = []

    @property
    def broker_settings(self) -> dict[str, str]:
        """What makes a broker find its cluster here, by today's names."""
        return {
            "process.roles": "broker",
            "controller.quorum.bootstrap.servers": f"localhost:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "broker.heartbeat.interval.ms": "100",
            "initial.broker.registration.timeout.ms": "2000",
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.forget()
        assert self.failures == []

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    async def serve(self, ready: Callable[[], None], stopping: asyncio.Event) -> None:
        file = ZooKeeperFile.of(
            {
                "dataDir": self.folder,
                "clientPort": str(self.port),
                "clientPortAddress": "127.0.0.1",
                "broker.session.timeout.ms": str(self._session_timeout_ms),
            }
        )
        node = ZooKeeperNode(file, on_fatal=self.failures.append)
        try:
            await node.start()
            ready()
            await stopping.wait()
        finally:
            await node.stop()


def four_letter_word(port: int, text: bytes) -> bytes:
    """Everything that is answered to these bytes before the connection closes."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile("rb").read()
