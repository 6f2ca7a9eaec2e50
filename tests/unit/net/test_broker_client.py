"""The client of other brokers against peers that answer, fall silent, lie and leave. Over TCP and TLS."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.net.serving import Chosen, frame, serving
from tests.unit.net.tls_transport import Security

from moldau.core.errors import ErrorCode
from moldau.net.broker_client import BrokerClient, ReconnectBackoff, _Connection
from moldau.net.connection import Connection
from moldau.net.replies import CloseConnectionError, Handled, ReplySlot
from moldau.protocol.api import ApiKey, MalformedResponseError, decode_request_header, encode_response_header
from moldau.protocol.messages import Message, decode_request, encode_response
from moldau.protocol.negotiation import UnsupportedApiError
from moldau.protocol.sasl_login import AuthenticationError
from moldau.security.sasl import PlainMechanism

OFFERED = ((18, 0, 4), (60, 0, 2), (63, 0, 1), (17, 0, 1), (36, 0, 2))
Story = Callable[[], Awaitable[None]]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest, security: Security) -> Callable[[Story], None]:
    return lambda story: request.param(story())


class Frame:
    """A request as the peer got it."""

    def __init__(self, connection: Connection, body: bytes) -> None:
        self.connection = connection
        self.header = decode_request_header(body)
        self.api_key = ApiKey(self.header.api_key)
        self._body = body

    @property
    def request(self) -> Message:
        return decode_request(self.api_key, self.header.api_version, self._body[self.header.body_position :])

    def answer(self, *, correlation_id: int | None = None, version: int | None = None, **fields: Any) -> bytes:
        version = self.header.api_version if version is None else version
        number = self.header.correlation_id if correlation_id is None else correlation_id
        start = encode_response_header(self.api_key, version, number)
        return frame(start + encode_response(self.api_key, version, Message(**fields)))

    def offer(self, ranges: tuple[tuple[int, int, int], ...] = OFFERED, **fields: Any) -> bytes:
        keys = [Message(api_key=key, min_version=low, max_version=high) for key, low, high in ranges]
        return self.answer(api_keys=keys, **{"error_code": 0, **fields})

    def cluster(self, cluster_id: str = "", **fields: Any) -> bytes:
        """An answer to DescribeCluster that tells which request it answers."""
        told = cluster_id or f"{self.header.correlation_id}"
        return self.answer(error_code=0, cluster_id=told, controller_id=1, brokers=[], **fields)


Behave = Callable[[Frame], Handled]


@asynccontextmanager
async def peer(behave: Behave, **options: Any) -> AsyncIterator[tuple[BrokerClient, list[Frame]]]:
    """A client of a peer that negotiates and then does as it is told."""
    seen: list[Frame] = []

    def handler(connection: Connection, body: bytes) -> Handled:
        asked = Frame(connection, body)
        if asked.api_key is ApiKey.API_VERSIONS:
            return asked.offer()
        seen.append(asked)
        return behave(asked)

    async with serving(handler) as (server, _):
        port = next(iter(server._listening.values())).sock.getsockname()[1]
        client = client_of(port, **options)
        try:
            yield client, seen
        finally:
            client.close()


def client_of(port: int, **options: Any) -> BrokerClient:
    defaults = {
        "client_id": "broker-1",
        "request_timeout_s": 20,
        "transport": Chosen.security.client_transport,
        "backoff": ReconnectBackoff(0.001, 0.002),
    }
    return BrokerClient("127.0.0.1", port, **(defaults | options))


async def ask(client: BrokerClient, **options: Any) -> str:
    reply = await client.send(ApiKey.DESCRIBE_CLUSTER, Message(endpoint_type=1), **options)
    cluster_id: str = reply.cluster_id
    return cluster_id


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def test_requests_are_answered_over_one_connection(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        async with peer(lambda asked: asked.cluster()) as (client, seen):
            assert [await ask(client) for _ in range(3)] == ["2", "3", "4"]
            assert {(one.header.client_id, one.header.api_version) for one in seen} == {("broker-1", 2)}
            assert len({one.connection for one in seen}) == 1

    run(story)


def test_large_requests_and_answers_pass_whole(run: Callable[[Story], None]) -> None:
    large = "x" * 3_000_000

    async def story() -> None:
        async with peer(lambda asked: asked.cluster(large)) as (client, _):
            encode = b"\0" + bytes(5_000_000)
            reply = await client.exchange(
                ApiKey.DESCRIBE_CLUSTER, lambda version: encode, lambda answer: (answer.version, len(answer.body))
            )
            assert reply[0] == 2
            assert reply[1] > len(large)

    run(story)


def test_several_requests_are_in_flight_and_answers_may_come_in_any_order(run: Callable[[Story], None]) -> None:
    waiting: list[Frame] = []

    def behave(asked: Frame) -> Handled:
        waiting.append(asked)
        if len(waiting) < 3:
            return None
        return b"".join(one.cluster() for one in reversed(waiting))

    async def story() -> None:
        async with peer(behave) as (client, _):
            assert await asyncio.gather(*(ask(client) for _ in range(3))) == ["2", "3", "4"]

    run(story)


def test_no_more_than_the_limit_is_in_flight(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        slots: list[tuple[Frame, ReplySlot]] = []

        def behave(asked: Frame) -> Handled:
            slots.append((asked, ReplySlot(asked.connection, holds_back=False)))
            return slots[-1][1]

        async with peer(behave, max_in_flight=2) as (client, _):
            asking = [asyncio.ensure_future(ask(client)) for _ in range(5)]
            for answered in range(5):
                await until(lambda answered=answered: len(slots) > answered)  # type: ignore[misc]
                assert len(slots) <= answered + 2
                asked, slot = slots[answered]
                slot.complete(asked.cluster())
                await asking[answered]

    run(story)


def test_a_silent_peer_costs_one_deadline_and_the_next_request_connects_anew(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        async with peer(lambda asked: asked.cluster() if len(seen) > 2 else None) as (client, requests):
            seen = requests
            patient = asyncio.ensure_future(ask(client))
            await until(lambda: len(seen) == 1)
            with pytest.raises(TimeoutError, match="did not answer DescribeCluster within 0"):
                await ask(client, timeout_s=0.05)
            with pytest.raises(ConnectionAbortedError, match="did not answer DescribeCluster within 0"):
                await patient
            assert await ask(client)
            assert len({one.connection for one in seen}) == 2

    run(story)


def test_a_peer_that_accepts_and_never_says_a_word_times_out_the_opening(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        async with serving(lambda connection, body: None) as (server, _):
            port = next(iter(server._listening.values())).sock.getsockname()[1]
            client = client_of(port, connect_timeout_s=0.3)
            with pytest.raises(TimeoutError, match="did not answer ApiVersions within 0"):
                await ask(client)
            client = client_of(port)
            with pytest.raises(TimeoutError, match="could not be connected to within 0"):
                await ask(client, timeout_s=0.05)
            client.close()

    run(story)


def test_a_peer_that_closes_in_the_middle_of_an_answer_fails_all_and_is_connected_to_again(
    run: Callable[[Story], None],
) -> None:
    def behave(asked: Frame) -> Handled:
        if len(asked_so_far) == 2:
            asyncio.get_running_loop().call_soon(asked.connection.close, "test")
            return asked.cluster()[:9]
        return asked.cluster() if len(asked_so_far) > 2 else None

    async def story() -> None:
        async with peer(behave) as (client, seen):
            nonlocal asked_so_far
            asked_so_far = seen
            results = await asyncio.gather(ask(client), ask(client), return_exceptions=True)
            assert [type(one) for one in results] == [ConnectionResetError] * 2
            assert await ask(client)

    asked_so_far: list[Frame] = []
    run(story)


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (lambda asked: asked.cluster(correlation_id=77), "answered request 77, which was never sent"),
        (lambda asked: b"\x7f\xff\xff\xff", "announced an answer of 2147483647 bytes"),
        (lambda asked: b"\xff\xff\xff\xff", "announced an answer of -1 bytes"),
        (lambda asked: frame(asked.header.correlation_id.to_bytes(4, "big")), "DescribeCluster|response"),
    ],
    ids=["unknown id", "huge", "negative", "cut off"],
)
def test_a_peer_that_talks_nonsense_is_left_and_asked_again_on_a_new_connection(
    run: Callable[[Story], None], answer: Behave, what: str
) -> None:
    async def story() -> None:
        async with peer(lambda asked: answer(asked) if len(seen) == 1 else asked.cluster()) as (client, requests):
            seen = requests
            with pytest.raises(MalformedResponseError, match=what):
                await ask(client)
            assert await ask(client)
            assert len({one.connection for one in seen}) == 2

    run(story)


def test_a_caller_that_gives_up_does_not_disturb_the_others(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        slots: list[ReplySlot] = []

        def behave(asked: Frame) -> Handled:
            if asked.header.correlation_id == 2:
                slots.append(ReplySlot(asked.connection, holds_back=False))
                asyncio.get_running_loop().call_later(0.05, slots[0].complete, asked.cluster())
                return slots[0]
            return asked.cluster()

        async with peer(behave) as (client, seen):
            hasty, patient = asyncio.ensure_future(ask(client)), asyncio.ensure_future(ask(client))
            await until(lambda: len(seen) == 2)
            hasty.cancel()
            assert await patient == "3"
            assert await ask(client) == "4"
            assert len({one.connection for one in seen}) == 1

    run(story)


def test_one_attempt_to_connect_serves_all_who_wait_and_outlives_those_who_do_not(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        async with peer(lambda asked: asked.cluster()) as (client, seen):
            first, second, third = (asyncio.ensure_future(ask(client)) for _ in range(3))
            await asyncio.sleep(0)
            first.cancel()
            assert {await second, await third} <= {"2", "3", "4"}
            assert len({one.connection for one in seen}) == 1

    run(story)


def test_nobody_listening_is_refused_again_and_again_until_somebody_does(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        client = client_of(port)
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError):
                await ask(client)
        # A deadline that ends within the backoff tells why there is one.
        impatient = client_of(port, backoff=ReconnectBackoff(10, 10))
        for timeout_s in (20, 0.05):
            with pytest.raises(ConnectionRefusedError):
                await ask(impatient, timeout_s=timeout_s)
        client.close()
        impatient.close()

    run(story)


def test_the_version_is_negotiated_and_what_is_not_offered_is_named(run: Callable[[Story], None]) -> None:
    def handler(connection: Connection, body: bytes) -> Handled:
        asked = Frame(connection, body)
        if asked.api_key is not ApiKey.API_VERSIONS:
            return asked.cluster()
        if asked.header.api_version > 2:
            return asked.offer(((18, 0, 2),), error_code=int(ErrorCode.UNSUPPORTED_VERSION), version=0)
        return asked.offer(((18, 0, 2), (60, 0, 1), (62, 90, 99)))

    async def story() -> None:
        async with serving(handler) as (server, _):
            client = client_of(next(iter(server._listening.values())).sock.getsockname()[1])
            version = await client.exchange(ApiKey.DESCRIBE_CLUSTER, lambda version: b"\0\1\0", lambda one: one.version)
            assert version == 1
            with pytest.raises(UnsupportedApiError, match="does not offer BrokerHeartbeat"):
                await client.send(ApiKey.BROKER_HEARTBEAT, Message())
            with pytest.raises(
                UnsupportedApiError, match="BrokerRegistration in versions 90 to 99, and versions 0 to 4"
            ):
                await client.send(ApiKey.BROKER_REGISTRATION, Message())
            assert len(server.connections) == 1
            client.close()

    run(story)


def test_closing_ends_every_wait(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        async with peer(lambda asked: None, max_in_flight=1) as (client, seen):
            in_flight, queued = asyncio.ensure_future(ask(client)), asyncio.ensure_future(ask(client))
            await until(lambda: seen)
            client.close()
            client.close()
            ended = await asyncio.gather(in_flight, queued, ask(client), return_exceptions=True)
            assert [type(one) for one in ended] == [ConnectionAbortedError] * 3
        async with serving(lambda connection, body: None) as (server, _):
            client = client_of(next(iter(server._listening.values())).sock.getsockname()[1])
            connecting = asyncio.ensure_future(ask(client))
            await until(lambda: server.connections)
            client.close()
            with pytest.raises(ConnectionAbortedError):
                await connecting
            await until(lambda: not server.connections)

    run(story)


@pytest.mark.parametrize("is_right", [True, False])
def test_a_login_comes_before_the_first_request(run: Callable[[Story], None], is_right: bool) -> None:
    def behave(asked: Frame) -> Handled:
        if asked.api_key is ApiKey.SASL_HANDSHAKE:
            return asked.answer(error_code=0, mechanisms=["PLAIN"])
        if asked.api_key is ApiKey.SASL_AUTHENTICATE:
            assert asked.request.auth_bytes == b"\0broker\0secret"
            refused = {"error_code": 58, "error_message": "Authentication failed: Invalid username or password"}
            told = {"error_code": 0, "error_message": None} if is_right else refused
            return asked.answer(auth_bytes=b"", session_lifetime_ms=0, **told)
        if not is_right:
            raise CloseConnectionError("no request without a login")
        return asked.cluster()

    async def story() -> None:
        async with peer(behave, mechanism=lambda: PlainMechanism("broker", "secret")) as (client, seen):
            if is_right:
                assert await ask(client)
                assert await ask(client)
                assert [one.header.api_key for one in seen] == [17, 36, 60, 60]
            else:
                with pytest.raises(AuthenticationError, match="Invalid username or password"):
                    await ask(client)

    run(story)


def test_the_backoff_doubles_up_to_its_limit_and_starts_over_after_an_answer() -> None:
    backoff = ReconnectBackoff(0.05, 1.0)
    expected = [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    delays = [backoff.next_delay_s() for _ in expected]
    assert all(0.79 * wanted <= delay <= 1.21 * wanted for wanted, delay in zip(expected, delays, strict=True))
    for _ in range(2000):
        assert backoff.next_delay_s() <= 1.21
    backoff.reset()
    assert backoff.next_delay_s() <= 0.061


class MemoryTransport:
    """Bytes from a list, in the pieces it holds; everything that is sent is kept."""

    def __init__(self) -> None:
        self.incoming: list[bytes] = []
        self.sent = bytearray()
        self.is_closed = False

    def recv_into(self, buffer: memoryview, /) -> int:
        if not self.incoming:
            raise BlockingIOError
        piece = self.incoming.pop(0)
        buffer[: len(piece)] = piece
        return len(piece)

    def send(self, data: bytes | memoryview, flags: int = 0, /) -> int:
        self.sent += data
        return len(data)

    def send_file(self, file_fd: int, position: int, count: int, /) -> int:
        raise AssertionError("clients send no files")

    def start_reading(self, on_readable: Callable[[], None]) -> None:
        self.on_readable = on_readable

    def stop_reading(self) -> None: ...
    def start_writing(self, on_writable: Callable[[], None]) -> None: ...
    def stop_writing(self) -> None: ...

    def close(self) -> None:
        self.is_closed = True


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_answers_find_their_request_however_the_bytes_are_cut(data: st.DataObject) -> None:
    async def story() -> None:
        transport = MemoryTransport()
        connection = _Connection(transport, "peer", "c", 1000)
        deadline = asyncio.get_running_loop().time() + 60
        count = data.draw(st.integers(1, 6))
        asking = [asyncio.ensure_future(connection.ask(ApiKey.HEARTBEAT, 0, b"", deadline, 60)) for _ in range(count)]
        await asyncio.sleep(0)
        bodies = data.draw(st.lists(st.binary(max_size=40), min_size=count, max_size=count))
        answers = [(number + 1).to_bytes(4, "big") + body for number, body in enumerate(bodies)]
        wire = b"".join(frame(one) for one in data.draw(st.permutations(answers)))
        cuts = sorted(data.draw(st.sets(st.integers(1, len(wire) - 1), max_size=10)))
        transport.incoming = [
            wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True) if end > start
        ]
        while transport.incoming:
            transport.on_readable()
        assert await asyncio.gather(*asking) == answers
        assert not transport.is_closed
        assert not connection._pending

    asyncio.run(story())


def test_an_answer_that_came_while_the_loop_was_busy_is_not_overdue() -> None:
    async def story() -> None:
        transport = MemoryTransport()
        connection = _Connection(transport, "peer", "c", 1000)
        transport.incoming = [frame((1).to_bytes(4, "big"))]
        assert await connection.ask(ApiKey.HEARTBEAT, 0, b"", asyncio.get_running_loop().time(), 0) == bytes(
            [0, 0, 0, 1]
        )
        assert not transport.is_closed

    asyncio.run(story())


def test_a_connection_that_opens_while_the_client_is_closed_does_not_stay() -> None:
    async def story() -> None:
        client = BrokerClient("peer", 1, client_id="c")
        transport = MemoryTransport()

        async def open_connection() -> _Connection:
            return _Connection(transport, "peer", "c", 1000)

        opening = asyncio.ensure_future(open_connection())
        await opening
        client.close()
        client._on_opened(opening)
        assert transport.is_closed

    asyncio.run(story())


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=5))
@settings(max_examples=200, deadline=None)
def test_noise_from_a_peer_is_an_answer_nobody_sent_or_waits_for_more(pieces: list[bytes]) -> None:
    """Whatever comes, whoever asked is told in the end and nothing else is raised."""

    async def story() -> None:
        transport = MemoryTransport()
        connection = _Connection(transport, "peer", "c", 1000)
        asking = asyncio.ensure_future(
            connection.ask(ApiKey.HEARTBEAT, 0, b"", asyncio.get_running_loop().time() + 60, 60)
        )
        await asyncio.sleep(0)
        transport.incoming = [*pieces, b""]
        while transport.incoming and not transport.is_closed:
            transport.on_readable()
        try:
            await asking
        except (MalformedResponseError, ConnectionResetError):
            pass

    asyncio.run(story())
