"""Too few file descriptors: connections are refused or make way, and are accepted again without anybody's help."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import pytest
from tests.unit.net.serving import Peer, echo, run

from moldau.net import server as server_module
from moldau.net.connection import Connection
from moldau.net.limits import Limits
from moldau.net.replies import Handled
from moldau.net.server import Server
from moldau.net.shedding import CALM_TICKS, REMIND_TICKS, Shortage, idle_longest


@dataclass(eq=False)
class Client:
    active_tick: int
    is_waiting: bool = False


def test_those_idle_longest_go_first_and_those_who_wait_last() -> None:
    waiting, fresh, old, older = Client(0, is_waiting=True), Client(9), Client(3), Client(2)
    clients = [waiting, fresh, old, older]
    assert idle_longest(clients, 2) == [older, old]
    assert idle_longest(clients, 9) == [older, old, fresh, waiting]
    assert idle_longest(clients, 0) == []


def test_a_shortage_is_told_once_reminded_of_and_over_when_calm() -> None:
    shortage = Shortage()
    assert shortage.end_if_calm(0) is None
    first = shortage.note_shortage(0, 100)
    assert first is not None
    assert "100 connections" in first
    assert "ulimit -n" in first
    assert [shortage.note_shortage(tick, 100) for tick in range(1, REMIND_TICKS)] == [None] * (REMIND_TICKS - 1)
    assert (shortage.note_shortage(REMIND_TICKS, 100) or "").startswith("still too few")
    assert shortage.end_if_calm(REMIND_TICKS + CALM_TICKS - 1) is None
    assert shortage.end_if_calm(REMIND_TICKS + CALM_TICKS) is not None
    assert shortage.end_if_calm(REMIND_TICKS + CALM_TICKS + 1) is None
    shortage.note_full(9000)  # of one that is over this says nothing
    assert shortage.note_shortage(9999, 1) is not None
    shortage.note_full(10_020)
    assert shortage.end_if_calm(10_020 + CALM_TICKS - 1) is None


class Room:
    """How many connections there are descriptors for."""

    def __init__(self, descriptors: int) -> None:
        self.descriptors = descriptors


@asynccontextmanager
async def serving(room: Room) -> AsyncIterator[tuple[Server, Callable[[], Awaitable[Peer]]]]:
    def handle(connection: Connection, view: memoryview, start: int, end: int) -> Handled:
        return echo(connection, bytes(view[start:end]))

    server = Server(asyncio.get_running_loop(), handle, Limits(), descriptors=lambda: room.descriptors)
    port = server.listen("PLAINTEXT", "127.0.0.1", 0)
    peers: list[Peer] = []

    async def connect() -> Peer:
        peers.append(Peer(*await asyncio.open_connection("127.0.0.1", port)))
        return peers[-1]

    try:
        yield server, connect
    finally:
        server.close()
        for peer in peers:
            peer.writer.close()
            with suppress(ConnectionError):
                await peer.writer.wait_closed()


async def is_closed(peer: Peer) -> bool:
    try:
        return await asyncio.wait_for(peer.reader.read(), 20) == b""
    except ConnectionError:
        return True


def test_connections_without_a_descriptor_are_refused_and_others_served_on() -> None:
    async def story() -> None:
        async with serving(Room(2)) as (server, connect):
            first, second = await connect(), await connect()
            assert await first.ask(b"1") == [b"echo 1"]
            assert await second.ask(b"2") == [b"echo 2"]
            for _ in range(100):
                assert await is_closed(await connect())
            assert server.refused_connections == 100
            assert await first.ask(b"3") == [b"echo 3"]
            second.writer.close()
            while len(server.connections) > 1:
                await asyncio.sleep(0.001)
            third = await connect()
            assert await third.ask(b"4") == [b"echo 4"]

    run(story)


def test_an_idle_connection_makes_way_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SHED_IDLE_TICKS", 5)

    async def story() -> None:
        async with serving(Room(2)) as (server, connect):
            idle, busy = await connect(), await connect()
            for peer in (idle, busy):
                await peer.ask(b"1")
            server.tick += 5
            await busy.ask(b"2")
            assert await (await connect()).ask(b"3") == [b"echo 3"]
            assert await is_closed(idle)
            assert await busy.ask(b"4") == [b"echo 4"]
            assert server.shed_connections == 1

    run(story)


def test_a_limit_that_is_lowered_closes_what_is_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "TICK_SECONDS", 0.01)
    room = Room(100)

    async def story() -> None:
        async with serving(room) as (server, connect):
            peers = [await connect() for _ in range(20)]
            for peer in peers:
                await peer.ask(b"1")
            room.descriptors = 5
            while len(server.connections) > 5:
                await asyncio.sleep(0.001)
            assert server.shed_connections == 15

    run(story)


def test_accept_without_a_descriptor_waits_without_spinning_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_module, "TICK_SECONDS", 0.01)
    caplog.set_level(logging.WARNING)
    calls = 0
    accept = socket.socket.accept
    is_short = True

    def failing(self: socket.socket) -> object:
        nonlocal calls
        calls += 1
        if is_short:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", failing)

    async def story() -> None:
        nonlocal is_short
        async with serving(Room(100)) as (server, connect):
            peer = await connect()
            peer.writer.write(b"\0\0\0\1x")
            while server.tick < 20:
                await asyncio.sleep(0.001)
            assert 1 <= calls <= server.tick + 1
            is_short = False
            assert await peer.receive() == b"echo x"

    run(story)
    assert len([record for record in caplog.records if "too few file descriptors" in record.getMessage()]) == 1
