"""A wire tap: forwards connections to a broker and notes which requests pass.

Put its port into `advertised.listeners`, and clients come back through it after their first Metadata answer.
Nothing here knows which broker is behind. Start at `Tap`.
"""

from __future__ import annotations

import socket
import struct
import threading
from types import TracebackType
from typing import NamedTuple

__all__ = ["Asked", "Tap"]


class Asked(NamedTuple):
    """One kind of request that was seen."""

    api_key: int
    version: int


class Tap:
    """Forwards `127.0.0.1:port` to `127.0.0.1:target` inside its `with` block; `asked` counts what passed."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.asked: dict[Asked, int] = {}
        self._sockets: list[socket.socket] = [self._listener]

    def __enter__(self) -> Tap:
        threading.Thread(target=self._accept, name="tap", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._sockets:
            _hang_up(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                _hang_up(client)
                continue
            self._sockets += [client, broker]
            threading.Thread(target=self._forward_requests, args=(client, broker), daemon=True).start()
            threading.Thread(target=_forward_bytes, args=(broker, client), daemon=True).start()

    def _forward_requests(self, client: socket.socket, broker: socket.socket) -> None:
        try:
            with client.makefile("rb") as requests:
                while size := requests.read(4):
                    request = requests.read(*struct.unpack(">i", size))
                    asked = Asked(*struct.unpack_from(">hh", request))
                    self.asked[asked] = self.asked.get(asked, 0) + 1
                    broker.sendall(size + request)
        except (OSError, struct.error):
            pass
        _hang_up(broker)


def _forward_bytes(source: socket.socket, sink: socket.socket) -> None:
    try:
        while some := source.recv(1 << 16):
            sink.sendall(some)
    except OSError:
        pass
    _hang_up(sink)


def _hang_up(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    one.close()
