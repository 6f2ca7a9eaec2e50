"""Large replies of several readers leave in threads: whole, in order, and without outliving their connection."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.unit.net.serving import frame, run, serving
from tests.unit.net.tls_transport import Security

from moldau.net.connection import Connection
from moldau.net.outgoing import Outgoing
from moldau.net.replies import FileReply, Handled
from moldau.net.senders import CROWD_S, NEAR_S, Crowd, Senders
from moldau.net.server import Server

SIZE = 3_000_000


class Slice(NamedTuple):
    file: socket.SocketIO | object
    position: int
    length: int


def test_a_crowd_is_several_readers_within_a_moment() -> None:
    crowd, one, other = Crowd(), object(), object()
    assert not crowd.note_large_reply(one, 1.0)
    assert not crowd.note_large_reply(one, 1.01), "one reader is no crowd"
    assert crowd.note_large_reply(other, 1.02)
    assert crowd.note_large_reply(other, 1.03)
    assert not crowd.note_large_reply(other, 1.03 + CROWD_S), "the first one has stopped"
    assert not crowd.note_large_reply(one, 5.0)
    assert not crowd.note_large_reply(other, 5.0 + 2 * NEAR_S), "they take turns slowly"


def test_who_has_gone_is_no_part_of_a_crowd() -> None:
    crowd, one, other = Crowd(), object(), object()
    crowd.note_large_reply(one, 1.0)
    crowd.forget(one)
    assert not crowd.note_large_reply(other, 1.01)


async def _until(condition: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), 20)


@pytest.fixture
def served_file(tmp_path: Path) -> bytes:
    """The content of a file that `reply_from_file` serves."""
    content = os.urandom(SIZE)
    (tmp_path / "log").write_bytes(content)
    return content


def file_handler(path: Path) -> Callable[[Connection, bytes], Handled]:
    """Answers `large` with three parts around ranges of a file, and everything else with a few bytes."""
    held = path.open("rb")

    def handle(connection: Connection, body: bytes) -> Handled:
        if body != b"large":
            return frame(b"echo " + body)
        head, between = b"head", b"between"
        size = len(head) + len(between) + SIZE
        parts = [size.to_bytes(4, "big") + head, Slice(held, 0, SIZE // 3), between]
        return FileReply([*parts, Slice(held, SIZE // 3, SIZE - SIZE // 3)], size + 4)  # type: ignore[list-item]

    handle.close = held.close  # type: ignore[attr-defined]
    return handle


def expected(content: bytes) -> bytes:
    return b"head" + content[: SIZE // 3] + b"between" + content[SIZE // 3 :]


def test_readers_at_once_get_whole_replies_in_order(tmp_path: Path, served_file: bytes, security: Security) -> None:
    handler = file_handler(tmp_path / "log")

    async def story() -> None:
        async with serving(handler) as (server, connect):
            peers = [await connect() for _ in range(4)]
            for _ in range(5):
                answers = await asyncio.gather(*(peer.ask(b"a", b"large", b"b", b"large", b"c") for peer in peers))
                for a, large, b, again, c in answers:
                    assert (a, b, c) == (b"echo a", b"echo b", b"echo c")
                    assert large == again == expected(served_file)
            assert (server.senders.count > 0) == (security.name == "PLAINTEXT"), "TLS is encrypted on the loop"
            assert server.sent_bytes >= 4 * 5 * 2 * SIZE
            await _until(lambda: not server.lent)

    run(story)
    handler.close()  # type: ignore[attr-defined]


def test_a_single_reader_is_served_by_the_loop(tmp_path: Path, served_file: bytes, security: Security) -> None:
    handler = file_handler(tmp_path / "log")

    async def story() -> None:
        async with serving(handler) as (server, connect):
            peer = await connect()
            for _ in range(5):
                assert await peer.ask(b"large") == [expected(served_file)]
            assert server.senders.count == 0

    run(story)
    handler.close()  # type: ignore[attr-defined]


def test_a_reply_from_a_cold_file_never_holds_the_loop(tmp_path: Path, served_file: bytes, security: Security) -> None:
    warm = file_handler(tmp_path / "log")

    def handler(connection: Connection, body: bytes) -> Handled:
        reply = warm(connection, body.removeprefix(b"cold "))
        if isinstance(reply, FileReply):
            reply.is_cold = body.startswith(b"cold ")
        return reply

    async def story() -> None:
        async with serving(handler) as (server, connect):
            peer = await connect()
            assert await peer.ask(b"cold large", b"cold large") == [expected(served_file)] * 2
            lent = server.senders.count
            assert (lent > 0) == (security.name == "PLAINTEXT")
            assert await peer.ask(b"large") == [expected(served_file)]
            assert server.senders.count == lent, "a warm one goes the usual way again"

    run(story)
    warm.close()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("served_file")
def test_clients_that_leave_or_do_not_read_keep_no_thread_and_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = file_handler(tmp_path / "log")
    monkeypatch.setattr(Crowd, "note_large_reply", lambda *_: True)
    monkeypatch.setattr("moldau.net.senders.ERRAND_S", 30.0)
    monkeypatch.setattr("moldau.net.senders.PATIENCE_S", 30.0)

    async def story() -> None:
        async with serving(handler) as (server, connect):
            lazy, leaving, closed_here = await connect(), await connect(), await connect()
            for peer in (lazy, leaving, closed_here):
                peer.reader._transport.pause_reading()  # type: ignore[attr-defined]
                before = set(server.lent)
                peer.writer.write(frame(b"large") * 3)
                await _until(lambda before=before: set(server.lent) > before)  # type: ignore[misc]
            leaving.writer.transport.abort()
            (mine,) = [
                one
                for one in server.connections
                if one.session.client_port == closed_here.writer.get_extra_info("sockname")[1]
            ]
            mine.close("a test ends it")
            assert mine in server.lent, "its thread is still there"
            await _until(lambda: mine not in server.lent)
            assert mine._transport._socket.fileno() < 0  # type: ignore[attr-defined]
            await _until(lambda: len(server.lent) == 1 and len(server.connections) == 1)
            # The lazy one is left to `Server.close`, which must not wait for it.

    run(story)
    handler.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("moldau-sender")]


@pytest.mark.usefixtures("served_file")
def test_a_slow_reader_is_left_to_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = file_handler(tmp_path / "log")
    monkeypatch.setattr(Crowd, "note_large_reply", lambda *_: True)

    async def story() -> None:
        async with serving(handler) as (server, connect):
            slow, quick = await connect(), await connect()
            slow.reader._transport.pause_reading()  # type: ignore[attr-defined]
            slow.writer.write(frame(b"large") * 2)
            await _until(lambda: server.senders.count == 1 and not server.lent)
            assert len((await quick.ask(b"large"))[0]) == SIZE + 11
            slow.reader._transport.resume_reading()  # type: ignore[attr-defined]
            assert [len(await slow.receive()) for _ in range(2)] == [SIZE + 11] * 2

    run(story)
    handler.close()  # type: ignore[attr-defined]


def test_a_file_that_ends_early_closes_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").write_bytes(bytes(SIZE // 2))
    handler = file_handler(tmp_path / "log")
    monkeypatch.setattr(Crowd, "note_large_reply", lambda *_: True)

    async def story() -> None:
        async with serving(handler) as (server, connect):
            peer = await connect()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await peer.ask(b"large")
            assert server.senders.count == 1
            assert not server.connections

    run(story)
    handler.close()  # type: ignore[attr-defined]


def test_more_readers_than_threads_can_serve_are_sent_to_by_the_loop() -> None:
    class Stuck:
        """An outlet that takes nothing until it is let go."""

        def __init__(self) -> None:
            self.go = threading.Event()

        def send(self, data: bytes | memoryview, flags: int = 0, /) -> int:
            assert self.go.wait(20)
            return len(data)

        def send_file(self, file_fd: int, position: int, count: int, /) -> int:
            raise AssertionError("only bytes")

        def wait_for_room(self, timeout_s: float) -> bool:
            return True

    async def story() -> None:
        senders, outlet, back = Senders(asyncio.get_running_loop(), 2), Stuck(), []
        while senders.has_room:
            output = Outgoing()
            output.add(b"some")
            senders.send(output, outlet, lambda left, error: back.append((left.size, error)))
        assert senders.count == 10
        outlet.go.set()
        await _until(lambda: len(back) == 10)
        assert set(back) == {(0, None)}
        assert senders.has_room
        senders.close()
        assert not senders.has_room

    run(story)


def test_a_server_that_never_lent_anything_has_no_threads() -> None:
    async def story() -> None:
        async with serving(lambda connection, body: frame(body)) as (server, connect):
            assert isinstance(server, Server)
            await (await connect()).ask(b"a")
            assert not [thread for thread in threading.enumerate() if thread.name.startswith("moldau-sender")]

    run(story)
