"""Requests of this node to another one, never blocking the event loop: registration, followers, transaction markers.

One connection, opened when first needed and again after it was lost, not more often than the backoff allows. Several
requests may be in flight; each has a deadline, and responses are matched by correlation id. A failure is raised as an
`OSError` (a `TimeoutError` is one) or a `MoldauError`, and the next request opens a new connection. Retries are up to
the caller. Start at `BrokerClient.send`.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from moldau.core.chance import CHANCE
from moldau.core.errors import MoldauError
from moldau.net.transport import ClientTransportFactory, PlainTransport, Transport
from moldau.protocol.api import ApiKey, MalformedResponseError, decode_response_header, encode_request_header
from moldau.protocol.messages import Message, decode_response, encode_request
from moldau.protocol.negotiation import NEWEST_API_VERSIONS, OfferedApis, api_versions_request, decode_api_versions
from moldau.protocol.sasl_login import FIRST_HANDSHAKE_VERSION, SaslMechanism, sasl_login

__all__ = ["Answer", "BrokerClient", "ReconnectBackoff"]

RESPONSE_LIMIT_BYTES: Final = 8 * 1024 * 1024
RECEIVE_BYTES: Final = 64 * 1024
NO_APIS: Final = OfferedApis("", {})

Reply = TypeVar("Reply")


class Answer(NamedTuple):
    version: int
    body: memoryview


class ReconnectBackoff:
    """How long to wait before connecting again: twice as long after each failure, by a fifth more or less.

    By Kafka's names: `reconnect.backoff.ms` and `reconnect.backoff.max.ms`.
    """

    def __init__(self, first_s: float = 0.05, longest_s: float = 1.0) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._failures = 0

    def next_delay_s(self) -> float:
        """The delay after one more failure."""
        delay_s: float = min(self._longest_s, self._first_s * 2 ** min(self._failures, 30))
        self._failures += 1
        return delay_s * CHANCE.uniform(0.8, 1.2)

    def reset(self) -> None:
        """Called after a request was answered: a connection alone does not prove that the broker works."""
        self._failures = 0


class BrokerClient:
    """Used on one loop. Closed for good by `close`."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        request_timeout_s: float = 30.0,
        connect_timeout_s: float = 10.0,
        max_in_flight: int = 5,
        response_limit_bytes: int = RESPONSE_LIMIT_BYTES,
        transport: ClientTransportFactory = PlainTransport,
        mechanism: Callable[[], SaslMechanism] | None = None,
        backoff: ReconnectBackoff | None = None,
    ) -> None:
        """`mechanism` creates the SASL mechanism of each new connection; without it there is no login."""
        self.address = f"{host}:{port}"
        self._host, self._port = host, port
        self._client_id = client_id
        self._request_timeout_s = request_timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._response_limit_bytes = response_limit_bytes
        self._transport = transport
        self._mechanism = mechanism
        self._backoff = backoff or ReconnectBackoff()
        self._turns = asyncio.Semaphore(max_in_flight)
        self._connection: _Connection | None = None
        self._opening: asyncio.Task[_Connection] | None = None
        self._not_before = 0.0
        self._failure: Exception | None = None
        """Why the last connection could not be opened; `None` once one could."""
        self._is_closed = False

    async def send(self, api_key: ApiKey, request: Message, *, timeout_s: float | None = None) -> Message:
        """Send in the highest version both sides support. Error codes inside the response are left to the caller."""
        return await self.exchange(
            api_key,
            lambda version: encode_request(api_key, version, request),
            lambda answer: decode_response(api_key, answer.version, answer.body),
            timeout_s=timeout_s,
        )

    async def exchange(
        self,
        api_key: ApiKey,
        encode: Callable[[int], bytes],
        decode: Callable[[Answer], Reply],
        *,
        timeout_s: float | None = None,
    ) -> Reply:
        """`send` for a caller with its own codecs: `encode` is given the version and returns the body."""
        timeout_s = self._request_timeout_s if timeout_s is None else timeout_s
        deadline = asyncio.get_running_loop().time() + timeout_s
        await self._wait_for_turn(deadline, timeout_s)
        try:
            connection = await self._get_connection(deadline, timeout_s)
            version = connection.offered.version_for(api_key)
            frame = await connection.ask(api_key, version, encode(version), deadline, timeout_s)
            try:
                _, position = decode_response_header(api_key, version, frame)
                reply = decode(Answer(version, memoryview(frame)[position:]))
            except MalformedResponseError as error:
                connection.fail(MalformedResponseError, str(error))
                raise
            self._backoff.reset()
            return reply
        finally:
            self._turns.release()

    def close(self) -> None:
        """Requests in flight fail with a `ConnectionAbortedError`, as do those that come later."""
        self._is_closed = True
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            self._connection.fail(ConnectionAbortedError, f"the client of {self.address} was closed")

    async def _wait_for_turn(self, deadline: float, timeout_s: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._turns.acquire()
        except TimeoutError:
            raise TimeoutError(f"{self.address} answered none of the requests before within {timeout_s:g} s") from None

    # The connection

    async def _get_connection(self, deadline: float, timeout_s: float) -> _Connection:
        """The connection, opened if there is none; concurrent callers share one attempt."""
        if self._is_closed:
            raise ConnectionAbortedError(f"the client of {self.address} is closed")
        if self._connection is not None and not self._connection.is_closed:
            return self._connection
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
            self._opening.add_done_callback(self._on_opened)
        opening = self._opening
        try:
            async with asyncio.timeout_at(deadline) as waiting:
                # One caller that is cancelled must not cancel the connection attempt of the others.
                return await asyncio.shield(opening)
        except TimeoutError:
            if not waiting.expired():
                raise
            if self._failure is not None:
                raise self._failure.with_traceback(None) from None
            raise TimeoutError(f"{self.address} could not be connected to within {timeout_s:g} s") from None
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._is_closed and opening.cancelled() and caller is not None and not caller.cancelling():
                raise ConnectionAbortedError(f"the client of {self.address} was closed") from None
            raise

    def _on_opened(self, opening: asyncio.Task[_Connection]) -> None:
        self._opening = None
        if opening.cancelled():
            return
        error = opening.exception()
        if error is None:
            self._connection, self._failure = opening.result(), None
            if self._is_closed:
                self.close()
        elif isinstance(error, Exception):
            self._failure = error
            self._wait_before_next()

    def _wait_before_next(self) -> None:
        self._not_before = asyncio.get_running_loop().time() + self._backoff.next_delay_s()

    async def _open(self) -> _Connection:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._not_before - loop.time()))
        deadline = loop.time() + self._connect_timeout_s
        try:
            async with asyncio.timeout_at(deadline) as connecting:
                sock = await self._connect_socket(loop)
        except TimeoutError:
            if not connecting.expired():
                raise
            raise TimeoutError(
                f"{self.address} did not accept a connection within {self._connect_timeout_s:g} s"
            ) from None
        try:
            transport = self._transport(loop, sock)
            connection = _Connection(transport, self.address, self._client_id, self._response_limit_bytes)
        except BaseException:
            sock.close()
            raise
        try:
            connection.offered = await self._negotiate(connection, deadline)
            await self._log_in(connection, deadline)
        except BaseException as error:
            connection.fail(ConnectionAbortedError, str(error))
            raise
        connection.on_lost = self._wait_before_next
        return connection

    async def _connect_socket(self, loop: asyncio.AbstractEventLoop) -> socket.socket:
        """To the first address of the host that accepts."""
        failure: OSError | None = None
        for family, kind, proto, _, address in await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM):
            sock = socket.socket(family, kind, proto)
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await loop.sock_connect(sock, address)
                return sock
            except OSError as error:
                failure = failure or error
                sock.close()
            except BaseException:
                sock.close()
                raise
        raise failure or ConnectionRefusedError(f"{self._host} has no address")

    async def _negotiate(self, connection: _Connection, deadline: float) -> OfferedApis:
        version, request = NEWEST_API_VERSIONS, api_versions_request()
        while True:
            body = encode_request(ApiKey.API_VERSIONS, version, request)
            frame = await connection.ask(ApiKey.API_VERSIONS, version, body, deadline, self._connect_timeout_s)
            offered = decode_api_versions(self.address, version, frame)
            if isinstance(offered, OfferedApis):
                return offered
            version = offered

    async def _log_in(self, connection: _Connection, deadline: float) -> None:
        if self._mechanism is None:
            return
        connection.offered.version_for(ApiKey.SASL_HANDSHAKE, at_least=FIRST_HANDSHAKE_VERSION)
        login = sasl_login(self._mechanism())
        api_key, request = next(login)
        while True:
            version = connection.offered.version_for(api_key)
            body = encode_request(api_key, version, request)
            frame = await connection.ask(api_key, version, body, deadline, self._connect_timeout_s)
            _, position = decode_response_header(api_key, version, frame)
            try:
                api_key, request = login.send(decode_response(api_key, version, memoryview(frame)[position:]))
            except StopIteration:
                return


class _Pending(NamedTuple):
    answer: asyncio.Future[bytearray]
    overdue: asyncio.TimerHandle


class _Connection:
    """One connection: sends and receives frames, and knows which caller waits for which response."""

    def __init__(self, transport: Transport, address: str, client_id: str, response_limit_bytes: int) -> None:
        self._transport = transport
        self._address = address
        self._client_id = client_id
        self._response_limit_bytes = response_limit_bytes
        self._correlation_id = 0
        self._pending: dict[int, _Pending] = {}
        self._outgoing: deque[bytes | memoryview] = deque()
        self._is_writing = False
        self._incoming = bytearray()
        self._scratch = memoryview(bytearray(RECEIVE_BYTES))
        self.offered = NO_APIS
        self.on_lost: Callable[[], None] = lambda: None
        self.is_closed = False
        transport.start_reading(self._on_readable)

    async def ask(self, api_key: ApiKey, version: int, body: bytes, deadline: float, timeout_s: float) -> bytearray:
        """Send one request and wait for the frame that answers it.

        The request of a cancelled caller stays in flight: its response is dropped on arrival, and its deadline still
        applies.
        """
        if self.is_closed:
            raise ConnectionResetError(f"lost the connection to {self._address}")
        loop = asyncio.get_running_loop()
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        answer: asyncio.Future[bytearray] = loop.create_future()
        overdue = loop.call_at(deadline, self._note_overdue, correlation_id, api_key, timeout_s)
        self._pending[correlation_id] = _Pending(answer, overdue)
        frame = encode_request_header(api_key, version, correlation_id, self._client_id) + body
        self._outgoing.append(len(frame).to_bytes(4, "big") + frame)
        if not self._is_writing:
            self._pump()
        return await answer

    def _note_overdue(self, correlation_id: int, api_key: ApiKey, timeout_s: float) -> None:
        """Close the connection: a broker answers in order, so every later request waits behind this one."""
        # If the loop itself was late, the response may already be in the socket.
        self._on_readable()
        late = self._pending.pop(correlation_id, None)
        if late is None:
            return
        what = f"{self._address} did not answer {api_key.display_name} within {timeout_s:g} s"
        if not late.answer.done():
            late.answer.set_exception(TimeoutError(what))
        self.fail(ConnectionAbortedError, what)

    # Bytes

    def _pump(self) -> None:
        outgoing = self._outgoing
        try:
            while outgoing:
                data = outgoing[0]
                sent = self._transport.send(data)
                if sent == len(data):
                    outgoing.popleft()
                else:
                    outgoing[0] = memoryview(data)[sent:]
        except (BlockingIOError, InterruptedError):
            if not self._is_writing:
                self._is_writing = True
                self._transport.start_writing(self._pump)
            return
        except OSError as error:
            self.fail(ConnectionResetError, f"lost the connection to {self._address}: {error}")
            return
        if self._is_writing:
            self._is_writing = False
            self._transport.stop_writing()

    def _on_readable(self) -> None:
        try:
            received = self._transport.recv_into(self._scratch)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.fail(ConnectionResetError, f"lost the connection to {self._address}: {error}")
            return
        if not received:
            where = " in the middle of an answer" if self._incoming else ""
            self.fail(ConnectionResetError, f"{self._address} closed the connection{where}")
            return
        self._incoming += self._scratch[:received]
        try:
            self._take_frames()
        except MalformedResponseError as error:
            self.fail(MalformedResponseError, str(error))

    def _take_frames(self) -> None:
        """Pass every complete frame to its caller; memory grows with received bytes, not with the announced length."""
        position, incoming = 0, self._incoming
        while len(incoming) - position >= 4:
            size = int.from_bytes(incoming[position : position + 4], "big", signed=True)
            if not 4 <= size <= self._response_limit_bytes:
                raise MalformedResponseError(
                    f"{self._address} announced an answer of {size} bytes, the limit is {self._response_limit_bytes}"
                )
            end = position + 4 + size
            if len(incoming) < end:
                break
            if not position and len(incoming) == end:
                # The usual case, and no copy: the buffer itself becomes the frame.
                self._incoming = bytearray()
                del incoming[:4]
                self._hand_over(incoming)
                return
            self._hand_over(incoming[position + 4 : end])
            position = end
        del incoming[:position]

    def _hand_over(self, frame: bytearray) -> None:
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        pending = self._pending.pop(correlation_id, None)
        if pending is None:
            raise MalformedResponseError(f"{self._address} answered request {correlation_id}, which was never sent")
        pending.overdue.cancel()
        if not pending.answer.done():
            pending.answer.set_result(frame)

    def fail(self, kind: type[OSError] | type[MoldauError], reason: str) -> None:
        """Close; every pending request fails with the reason."""
        if self.is_closed:
            return
        self.is_closed = True
        self._transport.close()
        waiting, self._pending = self._pending, {}
        for pending in waiting.values():
            pending.overdue.cancel()
            if not pending.answer.done():
                pending.answer.set_exception(kind(reason))
        self.on_lost()
