"""A TLS transport over `ssl.MemoryBIO`, written against `net.transport.Transport` alone.

It proves that a connection need not change for TLS: the tests of connections and of the broker client run over it.
Start at `TlsTransport`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from moldau.net.session import Session
from moldau.net.transport import (
    ClientTransportFactory,
    PlainTransport,
    ServerTransportFactory,
    Transport,
    plain_server_transport,
)

__all__ = ["Security", "TlsTransport", "make_certificate", "plain", "tls"]

RECEIVE_BYTES = 64 * 1024
SEND_BYTES = 64 * 1024


class TlsTransport:
    """Reads and writes the socket by itself, so that a handshake needs nobody's help."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        context: ssl.SSLContext,
        *,
        server_hostname: str | None = None,
        on_handshake: Callable[[ssl.SSLObject], None] = lambda _: None,
    ) -> None:
        self._loop, self._socket, self._fd = loop, sock, sock.fileno()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        is_server = server_hostname is None
        self._tls = context.wrap_bio(self._incoming, self._outgoing, is_server, server_hostname)
        self._on_handshake = on_handshake
        self._unsent = b""
        self._is_open = False
        self._is_drained = False
        self._is_closed = False
        self._failure: OSError | None = None
        self._on_readable: Callable[[], None] | None = None
        self._on_writable: Callable[[], None] | None = None
        loop.add_reader(self._fd, self._receive)
        if not is_server:
            self._shake_hands()

    # What a connection calls

    def recv_into(self, buffer: memoryview, /) -> int:
        self._is_drained = False
        if self._failure is not None:
            raise self._failure
        try:
            return self._tls.read(len(buffer), buffer) if self._is_open else self._blocked()  # type: ignore[call-overload]
        except ssl.SSLWantReadError:
            return self._blocked()
        except ssl.SSLZeroReturnError:
            return 0

    def _blocked(self) -> int:
        self._is_drained = True
        raise BlockingIOError

    def send(self, data: bytes | memoryview, flags: int = 0, /) -> int:
        if not self._is_open or self._unsent:
            raise BlockingIOError
        taken = self._tls.write(memoryview(data)[:SEND_BYTES])
        self._flush()
        return taken

    def send_file(self, file_fd: int, position: int, count: int, /) -> int:
        if not self._is_open or self._unsent:
            raise BlockingIOError
        data = os.pread(file_fd, min(count, SEND_BYTES), position)
        return self.send(data) if data else 0

    def start_reading(self, on_readable: Callable[[], None]) -> None:
        self._on_readable = on_readable
        self._loop.add_reader(self._fd, self._receive)
        self._loop.call_soon(self._offer)

    def stop_reading(self) -> None:
        self._on_readable = None
        self._loop.remove_reader(self._fd)

    def start_writing(self, on_writable: Callable[[], None]) -> None:
        self._on_writable = on_writable
        self._loop.add_writer(self._fd, self._on_room)

    def stop_writing(self) -> None:
        self._on_writable = None
        if not self._unsent:
            self._loop.remove_writer(self._fd)

    def thread_outlet(self) -> None:
        """What is sent has to be encrypted, and the state of that belongs to the loop."""

    def limit_send_buffer(self, size_bytes: int) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size_bytes)

    def hang_up(self) -> None:
        raise AssertionError("only a connection that a thread sends on is hung up")

    def close(self) -> None:
        self._is_closed = True
        self._on_readable = self._on_writable = None
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._socket.close()

    # What the socket brings and takes

    def _receive(self) -> None:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._failure = error
        else:
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()
        if not self._is_open and self._failure is None:
            self._shake_hands()
        self._offer()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
            self._is_open = True
            self._on_handshake(self._tls)
        except ssl.SSLWantReadError:
            pass
        except OSError as error:
            self._failure = error
        self._flush()
        if self._is_open and self._on_writable is not None:
            self._loop.call_soon(self._on_room)

    def _offer(self) -> None:
        """Call back until all that was decrypted has been taken, a turn of the loop for each."""
        if self._on_readable is not None and (self._is_open or self._failure is not None):
            self._is_drained = False
            self._on_readable()
            if not self._is_drained and not self._is_closed and self._on_readable is not None:
                self._loop.call_soon(self._offer)

    def _flush(self) -> None:
        data = self._unsent + self._outgoing.read()
        try:
            sent = self._socket.send(data) if data else 0
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._failure = self._failure or error
            sent = len(data)
        self._unsent = data[sent:]
        if self._unsent:
            self._loop.add_writer(self._fd, self._on_room)
        elif self._on_writable is None:
            self._loop.remove_writer(self._fd)

    def _on_room(self) -> None:
        if self._is_closed:
            return
        if self._unsent:
            self._flush()
        if self._on_writable is None:
            if not self._unsent:
                self._loop.remove_writer(self._fd)
        elif self._is_open and not self._unsent:
            self._on_writable()
        elif not self._unsent:
            # Nothing to do before the handshake is over; its end starts us again.
            self._loop.remove_writer(self._fd)


class Security(NamedTuple):
    """Both ends of one way to connect."""

    name: str
    server_transport: ServerTransportFactory
    client_transport: ClientTransportFactory
    client_context: ssl.SSLContext | None
    server_context: ssl.SSLContext | None = None

    def connect(self, port: int) -> socket.socket:
        """A blocking client."""
        sock = socket.create_connection(("127.0.0.1", port), 20)
        if self.client_context is None:
            return sock
        return self.client_context.wrap_socket(sock, server_hostname="127.0.0.1")


def plain() -> Security:
    return Security("PLAINTEXT", plain_server_transport, PlainTransport, None)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A new key and its certificate, for 127.0.0.1 and for a client named alice, as PEM files."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=alice "
        f"-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    return key, certificate


@cache
def tls() -> Security:
    """With a certificate of its own, and client certificates wanted: the client's name becomes the principal."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = make_certificate(Path(folder))
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificate))
        server.verify_mode = ssl.CERT_OPTIONAL
        server.load_cert_chain(certificate, key)
        client = ssl.create_default_context(cafile=str(certificate))
        client.load_cert_chain(certificate, key)

    def accept(loop: asyncio.AbstractEventLoop, sock: socket.socket, session: Session) -> Transport:
        def name_principal(handshake: ssl.SSLObject) -> None:
            names = dict(part[0] for part in (handshake.getpeercert() or {}).get("subject", ()))  # type: ignore[misc]
            session.principal = f"User:CN={names['commonName']}"  # type: ignore[has-type]

        return TlsTransport(loop, sock, server, on_handshake=name_principal)

    def connect(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> Transport:
        return TlsTransport(loop, sock, client, server_hostname="127.0.0.1")

    return Security("SSL", accept, connect, client, server)
