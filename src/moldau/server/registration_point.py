"""The registration point, started by `zookeeper-server-start`: brokers register here and tools find them here.

It is not ZooKeeper. Its port serves Kafka's protocol (ApiVersions, BrokerRegistration, BrokerHeartbeat,
DescribeCluster: requests that a controller answers) and ZooKeeper's four-letter words. `controller.registration`
decides which broker may register, `registration_files` stores the state on disk. Start at `RegistrationPoint`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import struct
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

import moldau
from moldau.controller.brokers import BrokerRegistration
from moldau.controller.image import Endpoint
from moldau.controller.registration import RegisteredBroker, Registrations
from moldau.core.clock import Clock, SystemClock
from moldau.core.errors import ErrorCode, StartupError
from moldau.log.files import Files
from moldau.protocol.api import (
    APIS,
    ApiKey,
    MalformedRequestError,
    RequestHeader,
    decode_request_header,
    encode_response_header,
)
from moldau.protocol.messages import Message, decode_request, encode_response
from moldau.server.four_letter_words import WORDS, PointStatus, answer
from moldau.server.registration_files import NODE_ID, RegistrationFiles
from moldau.server.registration_settings import RegistrationSettings

__all__ = ["RegistrationPoint"]

_logger = logging.getLogger("moldau.server.RegistrationPoint")

REQUEST_LIMIT_BYTES: Final = 1024 * 1024
IDLE_S: Final = 600.0
SESSION_ROUND_S: Final = 1.0
BROKERS, CONTROLLERS = 1, 2
PLAINTEXT = 0
NOT_ASKED: Final = -(2**31)


class _Caller(NamedTuple):
    peer_host: str
    local_host: str
    """The local address that the caller connected to."""


Handle = Callable[[Message, RequestHeader, _Caller], Awaitable[Message]]


class RegistrationPoint:
    """A service for `server.services`."""

    def __init__(
        self, settings: RegistrationSettings, *, files: Files | None = None, clock: Clock | None = None
    ) -> None:
        self._settings = settings
        self._files = RegistrationFiles(settings.data_dir, files or Files())
        self._clock = clock or SystemClock()
        self._server: asyncio.Server | None = None
        self._registrations_or_none: Registrations | None = None
        self._registering = asyncio.Lock()
        self._sessions: asyncio.Task[None] | None = None
        self._clients: dict[asyncio.Task[None], str] = {}
        self._by_host: Counter[str] = Counter()
        self._received = self._sent = 0
        self._last_refused: uuid.UUID | None = None
        self.port = 0
        self._handles: Mapping[int, Handle] = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.DESCRIBE_CLUSTER: self._describe_cluster,
            ApiKey.BROKER_REGISTRATION: self._register,
            ApiKey.BROKER_HEARTBEAT: self._heartbeat,
        }

    @property
    def cluster_id(self) -> str:
        return self._registrations.cluster_id

    @property
    def _registrations(self) -> Registrations:
        assert self._registrations_or_none is not None, "not started"
        return self._registrations_or_none

    async def start(self) -> None:
        """Return once brokers can register; raises `StartupError`."""
        settings = self._settings
        registered = self._files.open()
        self._registrations_or_none = Registrations(
            self._files.cluster_id,
            registered,
            session_timeout_ms=settings.session_timeout_ms,
            now_ms=self._clock.monotonic_ms(),
        )
        host = settings.host or "0.0.0.0"
        try:
            self._server = await asyncio.start_server(
                self._accept, host, settings.client_port, limit=REQUEST_LIMIT_BYTES
            )
        except OSError as error:
            raise StartupError(
                f"cannot listen on {host}:{settings.client_port}: {error.strerror or error}; is another one running? "
                "choose another clientPort or end it with zookeeper-server-stop"
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]
        self._sessions = asyncio.ensure_future(self._watch_session())
        _logger.info("data in %s", settings.data_dir)
        broker = "no broker yet" if registered is None else f"broker {_title(registered)} is expected"
        _logger.info(
            "registration point started: %s:%d, cluster %s, %s", host, self.port, self._files.cluster_id, broker
        )

    async def stop(self) -> None:
        if self._sessions is not None:
            self._sessions.cancel()
        if self._server is not None:
            self._server.close()
            for client in self._clients:
                client.cancel()
            await asyncio.gather(*self._clients, return_exceptions=True)
            await self._server.wait_closed()
            _logger.info("registration point stopped")
        self._files.close()

    async def _watch_session(self) -> None:
        """Log when the broker's session expires; nothing else depends on this task."""
        was_alive = False
        while True:
            await asyncio.sleep(SESSION_ROUND_S)
            is_alive = self._registrations.is_alive(self._clock.monotonic_ms())
            if (
                was_alive
                and not is_alive
                and not self._registrations.is_fenced
                and self._registrations.registered is not None
            ):
                _logger.warning(
                    "broker %s has sent no heartbeat for %d ms and is treated as gone",
                    _title(self._registrations.registered),
                    self._settings.session_timeout_ms,
                )
            was_alive = is_alive

    # Connections

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = asyncio.ensure_future(self._serve(reader, writer))
        host, port = writer.get_extra_info("peername")[:2]
        self._clients[client] = f"{host}:{port}"
        client.add_done_callback(self._clients.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller = _Caller(writer.get_extra_info("peername")[0], writer.get_extra_info("sockname")[0])
        limit = self._settings.max_connections_per_ip
        self._by_host[caller.peer_host] += 1
        try:
            if limit and self._by_host[caller.peer_host] > limit:
                _logger.warning("refused a connection from %s: it has %d (maxClientCnxns)", caller.peer_host, limit)
                return
            await self._converse(reader, writer, caller)
        except MalformedRequestError as error:
            _logger.warning("closing the connection of %s: %s", caller.peer_host, error)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client has disconnected, or was idle for too long
        except Exception:
            _logger.exception("a request of %s failed with an unhandled exception", caller.peer_host)
        finally:
            self._by_host[caller.peer_host] -= 1
            if not self._by_host[caller.peer_host]:
                del self._by_host[caller.peer_host]
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, caller: _Caller) -> None:
        while True:
            async with asyncio.timeout(IDLE_S):
                start = await reader.readexactly(4)
                self._received += 1
                if start in WORDS:
                    writer.write((answer(start, self._status()) or "").encode())
                    await writer.drain()
                    self._sent += 1
                    return
                (size,) = struct.unpack(">i", start)
                if not 0 <= size <= REQUEST_LIMIT_BYTES:
                    raise MalformedRequestError(f"a request claims {size} bytes, the limit is {REQUEST_LIMIT_BYTES}")
                frame = await reader.readexactly(size)
                writer.write(await self._answer(frame, caller))
                await writer.drain()
                self._sent += 1

    def _status(self) -> PointStatus:
        known = self._registrations.registered
        is_alive = self._registrations.is_alive(self._clock.monotonic_ms())
        return PointStatus(
            version=moldau.__version__,
            client_port=self.port,
            data_dir=self._settings.data_dir,
            settings=self._settings.given,
            connections=len(self._clients),
            received=self._received,
            sent=self._sent,
            broker_epoch=-1 if known is None else known.broker_epoch,
            brokers=(_title(known),) if known is not None and is_alive else (),
            clients=tuple(self._clients.values()),
        )

    # Requests

    async def _answer(self, frame: bytes, caller: _Caller) -> bytes:
        header = decode_request_header(frame)
        handle = self._handles.get(header.api_key)
        if handle is None:
            raise MalformedRequestError(
                f"API key {header.api_key} is not served here: brokers register here and tools look them up; "
                "records and topics are the brokers', and ZooKeeper's own clients are not understood"
            )
        known, version = APIS[header.api_key], header.api_version
        if known.first <= version <= known.last:
            request = decode_request(header.api_key, version, frame[header.body_position :])
        elif header.api_key == ApiKey.API_VERSIONS:
            # The only API that answers an unsupported version: with version 0, which every client can read.
            request, version = Message(), 0
        else:
            raise MalformedRequestError(f"{ApiKey(header.api_key).display_name} version {version} is not supported")
        response = await handle(request, header, caller)
        body = encode_response_header(header.api_key, version, header.correlation_id)
        body += encode_response(header.api_key, version, response)
        return len(body).to_bytes(4, "big") + body

    async def _api_versions(self, request: Message, header: RequestHeader, caller: _Caller) -> Message:
        own = APIS[ApiKey.API_VERSIONS]
        is_known = own.first <= header.api_version <= own.last
        return Message(
            error_code=ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[
                Message(api_key=key, min_version=APIS[key].first, max_version=APIS[key].last)
                for key in sorted(self._handles)
            ],
        )

    async def _describe_cluster(self, request: Message, header: RequestHeader, caller: _Caller) -> Message:
        endpoint_type = request.endpoint_type if header.api_version >= 1 else BROKERS
        if endpoint_type not in (BROKERS, CONTROLLERS):
            return self._cluster(
                error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message=f"Endpoints of type {endpoint_type} are not known.",
            )
        if endpoint_type == CONTROLLERS:
            me = Message(broker_id=NODE_ID, host=caller.local_host, port=self.port, rack=None, is_fenced=False)
            return self._cluster(endpoint_type=CONTROLLERS, brokers=[me])
        registered = self._registrations.registered
        is_fenced = not self._registrations.is_alive(self._clock.monotonic_ms())
        shows_fenced = header.api_version >= 2 and request.include_fenced_brokers
        if registered is None or (is_fenced and not shows_fenced):
            return self._cluster(brokers=[])
        host, port = _address(registered, caller)
        broker = registered.broker
        listed = Message(broker_id=broker.node_id, host=host, port=port, rack=broker.rack, is_fenced=is_fenced)
        return self._cluster(brokers=[listed])

    def _cluster(self, **fields: object) -> Message:
        common: dict[str, object] = {
            "error_code": ErrorCode.NONE,
            "error_message": None,
            "endpoint_type": BROKERS,
            "cluster_id": self._registrations.cluster_id,
            "controller_id": NODE_ID,
            "brokers": [],
            "cluster_authorized_operations": NOT_ASKED,
        }
        return Message(**(common | fields))

    async def _register(self, request: Message, header: RequestHeader, caller: _Caller) -> Message:
        broker = BrokerRegistration(
            node_id=request.broker_id,
            incarnation_id=request.incarnation_id,
            endpoints=tuple(Endpoint(one.name, one.host, one.port, one.security_protocol) for one in request.listeners),
            rack=request.rack,
            log_dirs=tuple(request.log_dirs),
        )
        async with self._registering:
            verdict = self._registrations.judge(
                request.cluster_id, broker, came_from=caller.peer_host, now_ms=self._clock.monotonic_ms()
            )
            if isinstance(verdict, ErrorCode):
                self._log_refusal(broker, verdict, caller)
                return Message(error_code=verdict, broker_epoch=-1)
            if verdict != self._registrations.registered:
                try:
                    await asyncio.to_thread(partial(self._files.save, verdict))
                except OSError as error:
                    _logger.error("broker %d cannot be registered: %s", broker.node_id, error)
                    return Message(error_code=ErrorCode.KAFKA_STORAGE_ERROR, broker_epoch=-1)
            self._log_acceptance(verdict)
            self._registrations.accept(verdict, self._clock.monotonic_ms())
            return Message(error_code=ErrorCode.NONE, broker_epoch=verdict.broker_epoch)

    def _log_acceptance(self, accepted: RegisteredBroker) -> None:
        before = self._registrations.registered
        if before is not None and not set(before.broker.log_dirs) & set(accepted.broker.log_dirs):
            _logger.warning(
                "broker %d registers with new log directories: data in the old ones is not served",
                before.broker.node_id,
            )
        if before is None or before.broker.incarnation_id != accepted.broker.incarnation_id:
            _logger.info("broker %s registered, cluster %s", _title(accepted), accepted.cluster_id)

    def _log_refusal(self, broker: BrokerRegistration, error: ErrorCode, caller: _Caller) -> None:
        if broker.incarnation_id == self._last_refused:
            return  # the broker retries: log only its first refusal
        self._last_refused = broker.incarnation_id
        known = self._registrations.registered
        _logger.warning(
            "refused broker %d from %s with %s: this cluster %s has broker %s",
            broker.node_id,
            caller.peer_host,
            error.name,
            self._registrations.cluster_id,
            "none" if known is None else _title(known),
        )

    async def _heartbeat(self, request: Message, header: RequestHeader, caller: _Caller) -> Message:
        was_alive = self._registrations.is_alive(self._clock.monotonic_ms())
        reply = self._registrations.heartbeat(
            request.broker_id,
            request.broker_epoch,
            want_fence=request.want_fence,
            want_shut_down=request.want_shut_down,
            now_ms=self._clock.monotonic_ms(),
        )
        registered = self._registrations.registered
        if reply.error is ErrorCode.NONE and registered is not None:
            if was_alive and reply.should_shut_down:
                _logger.info("broker %s has shut down", _title(registered))
            elif not was_alive and not reply.is_fenced:
                _logger.info("broker %s serves clients", _title(registered))
        return Message(
            error_code=reply.error,
            is_caught_up=reply.error is ErrorCode.NONE,
            is_fenced=reply.is_fenced,
            should_shut_down=reply.should_shut_down,
        )


def _endpoint(registered: RegisteredBroker) -> Endpoint:
    """A listener that tools can use without credentials, or else the first."""
    endpoints = registered.broker.endpoints
    plain = (endpoint for endpoint in endpoints if endpoint.security_protocol == PLAINTEXT)
    return next(plain, None) or (endpoints[0] if endpoints else Endpoint("", registered.came_from, 0))


def _title(registered: RegisteredBroker) -> str:
    """A broker as shown in log lines: `0 at localhost:9092`."""
    endpoint = _endpoint(registered)
    return f"{registered.broker.node_id} at {endpoint.host or registered.came_from}:{endpoint.port}"


def _address(registered: RegisteredBroker, caller: _Caller) -> tuple[str, int]:
    """The host and port at which a caller reaches the broker.

    For a broker that advertises no host, the host is the one its registration came from; if that is this machine, it
    is the address at which the caller reached us.
    """
    endpoint = _endpoint(registered)
    if endpoint.host:
        return endpoint.host, endpoint.port
    is_local = ipaddress.ip_address(registered.came_from).is_loopback
    return caller.local_host if is_local else registered.came_from, endpoint.port
