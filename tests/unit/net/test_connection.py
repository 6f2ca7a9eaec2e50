"""A connection cuts frames out of any cut of bytes, and answers in order. Over real sockets, without a broker.

Every test runs over plain TCP and over TLS: the connection must not be able to tell them apart.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.unit.net.serving import echo, frame, run, serving
from tests.unit.net.tls_transport import Security, tls

from moldau.net.connection import Connection, oversize_reason
from moldau.net.limits import Limits
from moldau.net.replies import CloseConnectionError, FileReply, Handled, ReplySlot
from moldau.net.server import Server
from moldau.net.transport import Transport

pytestmark = pytest.mark.usefixtures("security")


@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
def test_frames_do_not_care_how_bytes_are_cut(piece: int) -> None:
    async def story() -> None:
        async with serving(echo) as (_, connect):
            peer = await connect()
            bodies = [b"", b"a", b"b" * 50, b"c" * 300]
            wire = b"".join(frame(body) for body in bodies)
            for start in range(0, len(wire), piece):
                peer.writer.write(wire[start : start + piece])
                await peer.writer.drain()
                await asyncio.sleep(0)
            assert [await peer.receive() for _ in bodies] == [b"echo " + body for body in bodies]

    run(story)


@pytest.mark.parametrize("size", [65_000, 70_000, 300_000, 1_100_000, 3_000_000])
def test_large_frames_arrive_whole_among_small_ones(size: int) -> None:
    async def story() -> None:
        async with serving(echo) as (server, connect):
            peer = await connect()
            large = os.urandom(size)
            for _ in range(3):
                assert await peer.ask(b"small", large, large, b"small") == [
                    b"echo small",
                    b"echo " + large,
                    b"echo " + large,
                    b"echo small",
                ]
            assert server.buffers.lent_bytes == 0

    run(story)


@pytest.mark.parametrize("size", [-1, 1001, 2**31 - 1])
def test_a_size_outside_of_the_limits_closes(size: int) -> None:
    async def story() -> None:
        async with serving(echo, request_max_bytes=1000) as (server, connect):
            peer = await connect()
            peer.writer.write(frame(b"good") + struct.pack(">i", size))
            assert await peer.receive() == b"echo good"
            assert await peer.reader.read() == b""
            assert not server.connections

    run(story)


def test_replies_leave_in_order_while_an_early_one_waits() -> None:
    slots: list[ReplySlot] = []

    def handler(connection: Connection, body: bytes) -> Handled:
        if body == b"later":
            slots.append(ReplySlot(connection, holds_back=False))
            return slots[-1]
        return None if body == b"silent" else frame(body)

    async def story() -> None:
        async with serving(handler) as (_, connect):
            peer = await connect()
            peer.writer.write(b"".join(frame(body) for body in (b"1", b"later", b"2", b"silent", b"later", b"3")))
            assert await peer.receive() == b"1"
            while len(slots) < 2:
                await asyncio.sleep(0)
            slots[1].complete(frame(b"second"))
            slots[0].complete(frame(b"first"))
            assert [await peer.receive() for _ in range(4)] == [b"first", b"2", b"second", b"3"]

    run(story)


def test_a_slot_that_holds_back_stops_what_follows_it() -> None:
    handled: list[bytes] = []
    slots: list[ReplySlot] = []

    def handler(connection: Connection, body: bytes) -> Handled:
        handled.append(body)
        if body == b"park":
            slots.append(ReplySlot(connection, holds_back=True))
            return slots[-1]
        return frame(body)

    async def story() -> None:
        async with serving(handler) as (_, connect):
            peer = await connect()
            peer.writer.write(frame(b"park") + frame(b"next") + frame(b"x" * 200_000) + frame(b"last"))
            while not slots:
                await asyncio.sleep(0)
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert handled == [b"park"]
            slots[0].complete(frame(b"parked"))
            assert [await peer.receive() for _ in range(4)] == [b"parked", b"next", b"x" * 200_000, b"last"]

    run(story)


def test_a_client_that_leaves_is_told_to_those_who_prepare_its_reply() -> None:
    gone = asyncio.Event()

    def handler(connection: Connection, body: bytes) -> Handled:
        slot = ReplySlot(connection, holds_back=True)
        slot.on_close = gone.set
        return slot

    async def story() -> None:
        async with serving(handler) as (server, connect):
            peer = await connect()
            peer.writer.write(frame(b"park"))
            while not any(connection.is_waiting for connection in server.connections):
                await asyncio.sleep(0.001)
            peer.writer.close()
            await asyncio.wait_for(gone.wait(), 20)
            assert not server.connections

    run(story)


class OpenedFile:
    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY)

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)


class Range(NamedTuple):
    file: OpenedFile
    position: int
    length: int


def test_file_ranges_and_bytes_make_one_frame(tmp_path: Path) -> None:
    content = os.urandom(5_000_000)
    path = tmp_path / "log"
    path.write_bytes(content)

    def handler(connection: Connection, body: bytes) -> Handled:
        file = OpenedFile(path)
        parts = [b"<", Range(file, 10, 4_000_000), b"|", Range(file, 5, 1), b">"]
        size = 4_000_001 + 3
        return FileReply([struct.pack(">i", size), *parts], size + 4)

    async def story() -> None:
        async with serving(handler) as (_, connect):
            peer = await connect()
            expected = b"<" + content[10:4_000_010] + b"|" + content[5:6] + b">"
            assert await peer.ask(b"a", b"b", b"c") == [expected] * 3

    run(story)


def test_who_does_not_read_is_not_served_further(security: Security) -> None:
    handled = 0

    def handler(connection: Connection, body: bytes) -> Handled:
        nonlocal handled
        handled += 1
        return frame(bytes(100_000))

    async def story() -> None:
        async with serving(handler, send_buffer_bytes=65_536) as (server, connect):
            port = next(iter(server._listening.values())).sock.getsockname()[1]
            lazy = await asyncio.to_thread(security.connect, port)
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            await asyncio.to_thread(lazy.sendall, frame(b"more") * 2000)
            polite = await connect()
            for _ in range(20):
                assert len((await polite.ask(b"one"))[0]) == 100_000
            assert handled - 20 < 200
            lazy.close()

    run(story)


@pytest.mark.parametrize("reply", ["bytes", "slot", "none"])
def test_endless_requests_of_one_client_leave_turns_to_others(reply: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.net.connection.TURN_S", 0.0)
    handled: list[bytes] = []

    def handler(connection: Connection, body: bytes) -> Handled:
        handled.append(body)
        if body == b"last" or reply == "bytes":
            return frame(b"echo " + body)
        if reply == "none":
            return None
        slot = ReplySlot(connection, holds_back=False)
        slot.complete(frame(b"echo " + body))
        return slot

    async def story() -> None:
        async with serving(handler) as (_, connect):
            greedy, polite = await connect(), await connect()
            bodies = [b"%d" % number for number in range(5000)]
            greedy.writer.write(b"".join(frame(body) for body in [*bodies, bytes(200_000), b"last"]))
            await asyncio.wait_for(_until(lambda: len(handled) > 10), 20)
            polite.writer.write(frame(b"polite") + frame(b"last"))
            while await polite.receive() != b"echo last":
                pass
            while await greedy.receive() != b"echo last":
                pass
            assert handled.index(b"polite") < 4000
            assert [body for body in handled if body.isdigit()] == bodies

    run(story)


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


def test_a_refused_frame_closes_after_the_answers_before_it() -> None:
    def handler(connection: Connection, body: bytes) -> Handled:
        if body == b"bad":
            raise CloseConnectionError("no")
        return frame(body)

    async def story() -> None:
        async with serving(handler) as (_, connect):
            peer = await connect()
            peer.writer.write(frame(b"good") + frame(b"bad") + frame(b"unseen"))
            assert await peer.receive() == b"good"
            assert await peer.reader.read() == b""

    run(story)


def test_without_memory_large_frames_wait_for_their_turn() -> None:
    async def story() -> None:
        async with serving(echo, queued_request_bytes=1) as (server, connect):
            first, second = await connect(), await connect()
            large = bytes(200_000)
            first.writer.write(frame(large)[:100_000])
            while not server.buffers.lent_bytes:
                await asyncio.sleep(0.001)
            second.writer.write(frame(large))
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert server.received_bytes < 400_000
            first.writer.write(frame(large)[100_000:])
            assert len(await first.receive()) == len(await second.receive()) == 200_005
            assert server.buffers.lent_bytes == 0

    run(story)


def test_connections_over_the_limit_wait_in_the_backlog() -> None:
    async def story() -> None:
        async with serving(echo, max_connections=1) as (server, connect):
            first = await connect()
            assert await first.ask(b"1") == [b"echo 1"]
            connecting = asyncio.ensure_future(connect())
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert len(server.connections) == 1
            first.writer.close()
            second = await connecting
            assert await second.ask(b"2") == [b"echo 2"]

    run(story)


def test_connections_over_the_rate_wait_for_the_next_second() -> None:
    async def story() -> None:
        async with serving(echo, max_connections_per_second=2) as (server, connect):
            peers = [await connect() for _ in range(3)]
            for peer in peers:
                assert await peer.ask(b"x") == [b"echo x"]
            assert server.tick >= 1

    run(story)


def test_handlers_see_who_asks_and_through_which_listener(security: Security) -> None:
    def handler(connection: Connection, body: bytes) -> Handled:
        session = connection.session
        return frame(f"{session.principal} {session.listener_name} {session.client_host} {session.local_host}".encode())

    async def story() -> None:
        async with serving(handler) as (_, connect):
            peer = await connect()
            principal = "User:CN=alice" if security.client_context else "User:ANONYMOUS"
            assert await peer.ask(b"who") == [f"{principal} {security.name} 127.0.0.1 127.0.0.1".encode()]

    run(story)


def test_a_client_that_does_not_speak_tls_is_closed_and_others_are_served(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        server = Server(asyncio.get_running_loop(), lambda *_: frame(b"seen"), Limits())
        port = server.listen("SSL", "127.0.0.1", 0, tls().server_transport)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(frame(b"in the clear"))
            answered = await asyncio.wait_for(reader.read(), 20)
            assert b"seen" not in answered
            assert not server.connections
            writer.close()
            polite = await asyncio.open_connection("127.0.0.1", port, ssl=tls().client_context)
            polite[1].write(frame(b"hello"))
            assert await asyncio.wait_for(polite[0].readexactly(8), 20) == frame(b"seen")
            polite[1].close()
        finally:
            server.close()

    run(story)


def test_a_transport_that_cannot_be_set_up_costs_its_own_client_only(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> Transport:
        raise OSError("no certificate")

    async def story() -> None:
        server = Server(asyncio.get_running_loop(), lambda *_: frame(b"seen"), Limits())
        port = server.listen("SSL", "127.0.0.1", 0, broken)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.close()
            assert (server.refused_connections, server.accepted_connections, server.connections) == (1, 0, set())
        finally:
            server.close()

    run(story)
    assert "on SSL could not be set up: no certificate" in caplog.text


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (b"GET ", "it does not speak Kafka's protocol: its first bytes are the text 'GET '"),
        (b"\x16\x03\x01\x02", "it begins a TLS handshake, and this listener is PLAINTEXT"),
        (b"\x7f\xff\xff\xff", "a request claims 2147483647 bytes, the limit is 100"),
        (b"\xff\xff\xff\xff", "a request claims -1 bytes, the limit is 100"),
    ],
)
def test_a_stranger_at_the_port_is_named_for_what_it_is(start: bytes, reason: str) -> None:
    assert oversize_reason(int.from_bytes(start, "big", signed=True), 100) == reason
