"""A registration point inside the test process: what `zookeeper-server-start` runs."""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Callable
from types import TracebackType

from moldau.server import registration_point
from moldau.server.registration_settings import RegistrationSettings
from moldau.testing.in_thread import InThread

__all__ = ["RegistrationPoint", "four_letter_word"]


class RegistrationPoint(InThread):
    """`restart()` keeps port and data; `forget()` removes the data."""

    what = "registration point"

    def __init__(self, *, session_timeout_ms: int = 9000) -> None:
        super().__init__()
        self._folder = tempfile.mkdtemp(prefix="moldau-registration-")
        self._session_timeout_ms = session_timeout_ms
        self.port = 0

    @property
    def broker_settings(self) -> dict[str, str]:
        """What makes a broker register here, by today's names."""
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

    def forget(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    async def serve(self, ready: Callable[[], None], stopping: asyncio.Event) -> None:
        settings = RegistrationSettings(
            data_dir=self._folder,
            client_port=self.port,
            host="127.0.0.1",
            session_timeout_ms=self._session_timeout_ms,
        )
        point = registration_point.RegistrationPoint(settings)
        try:
            await point.start()
            self.port = point.port
            ready()
            await stopping.wait()
        finally:
            await point.stop()


def four_letter_word(port: int, text: bytes) -> bytes:
    """Everything that is answered to these bytes before the connection closes."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile("rb").read()
