"""A broker's membership of its cluster: it finds the cluster, registers, and sends heartbeats.

A node with only the role `broker` has no controller of its own: it registers at the address in
`controller.quorum.bootstrap.servers` (or `zookeeper.connect`) before it formats or serves anything. It does not start
until it is registered, so two brokers that cannot reach that address do not become two clusters. Once registered, it
keeps serving while the address does not answer, and registers again if needed. Start at `ClusterMembership.find`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Sequence
from typing import Final, NamedTuple

from moldau.controller.features import SUPPORTED
from moldau.controller.image import Endpoint
from moldau.core.clock import Clock
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import NodeSettings
from moldau.core.errors import ErrorCode, StartupError
from moldau.net.broker_client import BrokerClient
from moldau.protocol.api import ApiKey, MalformedResponseError
from moldau.protocol.messages import Message
from moldau.protocol.negotiation import UnsupportedApiError

__all__ = ["ClusterMembership"]

_logger = logging.getLogger("moldau.server.ClusterMembership")

RETRY_S: Final = 0.5
SHUTDOWN_NOTICE_S: Final = 2.0
TIMEOUT_S: Final = 5.0
BROKERS = 1
_FAILURES = (OSError, MalformedResponseError, UnsupportedApiError)
_RETRIED = (ErrorCode.DUPLICATE_BROKER_REGISTRATION, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_CONTROLLER)


class _RegisteredBroker(NamedTuple):
    """The broker that is registered in the cluster."""

    node_id: int
    address: str
    is_alive: bool


class ClusterMembership:
    def __init__(self, config: BrokerConfig, servers: Sequence[str], clock: Clock) -> None:
        """Takes the `servers` to try in turn; the first that answers is used from then on."""
        self._node_id = config.node_id
        settings = config.section(NodeSettings)
        self._rack = settings.rack
        self._clock = clock
        self._clients = [_client(server, self._node_id) for server in servers]
        self._point = self._clients[0]
        self._registration_timeout_ms = settings.registration_timeout_ms
        self._interval_s = settings.heartbeat_interval_ms / 1000
        self._deadline_ms = 0
        self._incarnation_id = uuid.uuid4()
        self._cluster_id = ""
        self._endpoints: Sequence[Endpoint] = ()
        self._log_dirs: Sequence[uuid.UUID] = ()
        self._broker_epoch = -1
        self._want_fence = True
        self._is_stopping = asyncio.Event()
        self._heartbeats: asyncio.Task[None] | None = None
        self._is_silent = False

    @property
    def _servers(self) -> str:
        return ",".join(client.address for client in self._clients)

    async def find(self) -> str:
        """Wait until a server answers and return the cluster id. Raises if another broker is registered."""
        self._deadline_ms = self._clock.monotonic_ms() + self._registration_timeout_ms
        has_warned = False
        while True:
            trouble: Exception | None = None
            for client in self._clients:
                try:
                    cluster = await self._describe(client)
                except _FAILURES as error:
                    trouble = trouble or error
                    continue
                self._point = client
                self._refuse_second_broker(_registered_broker(cluster))
                cluster_id: str = cluster.cluster_id
                return cluster_id
            if not has_warned:
                has_warned = True
                _logger.warning(
                    "cannot register: %s (%s). Start it with `zookeeper-server-start config/zookeeper.properties`; "
                    "trying for %g s",
                    f"nothing answers at {self._servers}",
                    _reason(trouble),
                    self._registration_timeout_ms / 1000,
                )
            await self._pause(
                f"nothing answered at {self._servers} within {self._registration_timeout_ms} ms ({_reason(trouble)}). "
                "A broker with zookeeper.connect registers there: start "
                "`zookeeper-server-start config/zookeeper.properties` first, or a node that needs none: "
                "`kafka-server-start config/kraft/server.properties`"
            )

    async def register(self, cluster_id: str, log_dirs: Sequence[uuid.UUID], endpoints: Sequence[Endpoint]) -> None:
        """Register this process and start sending heartbeats; raises `StartupError` with the reason if refused."""
        self._cluster_id, self._log_dirs, self._endpoints = cluster_id, tuple(log_dirs), tuple(endpoints)
        has_warned = False
        while True:
            try:
                error = await self._register()
                other = None if error is ErrorCode.NONE else _registered_broker(await self._describe(self._point))
            except _FAILURES as trouble:
                await self._pause(f"lost {self._point.address} while registering: {_reason(trouble)}")
                continue
            if error is ErrorCode.NONE:
                break
            if error not in _RETRIED:
                raise self._refusal(error, other)
            if not has_warned:
                has_warned = True
                _logger.warning("%s; trying again until its session ends", self._refusal(error, other))
            await self._pause(str(self._refusal(error, other)))
        _logger.info("registered at %s as broker %d, cluster %s", self._point.address, self._node_id, cluster_id)
        self._heartbeats = asyncio.ensure_future(self._keep_reporting())

    async def serve(self, endpoints: Sequence[Endpoint]) -> None:
        """Publish the addresses, so that clients connect to this broker; ports configured as 0 are known by now."""
        self._want_fence = False
        try:
            if tuple(endpoints) != self._endpoints:
                self._endpoints = tuple(endpoints)
                await self._register()
            await self._heartbeat()
        except _FAILURES as error:
            self._note_silence(error)

    async def leave(self) -> None:
        """Report the shutdown, so that the session ends at once; takes two seconds at most."""
        self.give_up()
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
            try:
                async with asyncio.timeout(SHUTDOWN_NOTICE_S):
                    await self._point.send(ApiKey.BROKER_HEARTBEAT, self._heartbeat_request(want_shut_down=True))
            except _FAILURES:
                pass  # the registration point is not reachable
            self._heartbeats = None
        for client in self._clients:
            client.close()

    def give_up(self) -> None:
        """Stop `find` and `register` from waiting, because the process is to stop."""
        self._is_stopping.set()

    async def _pause(self, failure: str) -> None:
        """Wait before the next attempt; raises `StartupError` with `failure` after the timeout."""
        if self._clock.monotonic_ms() >= self._deadline_ms:
            raise StartupError(failure)
        try:
            async with asyncio.timeout(RETRY_S):
                await self._is_stopping.wait()
        except TimeoutError:
            return
        raise StartupError("asked to stop before it was registered")

    # Requests to the registration point

    async def _describe(self, client: BrokerClient) -> Message:
        question = Message(
            include_cluster_authorized_operations=False, endpoint_type=BROKERS, include_fenced_brokers=True
        )
        cluster = await client.send(ApiKey.DESCRIBE_CLUSTER, question)
        if cluster.error_code:
            raise MalformedResponseError(f"{client.address} answered {_error(cluster).name}")
        return cluster

    async def _register(self) -> ErrorCode:
        reply = await self._point.send(
            ApiKey.BROKER_REGISTRATION,
            Message(
                broker_id=self._node_id,
                cluster_id=self._cluster_id,
                incarnation_id=self._incarnation_id,
                listeners=[
                    Message(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
                    for one in self._endpoints
                ],
                features=[
                    Message(name=name, min_supported_version=level.min, max_supported_version=level.max)
                    for name, level in SUPPORTED.items()
                ],
                rack=self._rack,
                log_dirs=list(self._log_dirs),
                previous_broker_epoch=-1,
            ),
        )
        if reply.error_code == ErrorCode.NONE:
            self._broker_epoch = reply.broker_epoch
        return _error(reply)

    async def _heartbeat(self) -> ErrorCode:
        reply = await self._point.send(ApiKey.BROKER_HEARTBEAT, self._heartbeat_request())
        return _error(reply)

    def _heartbeat_request(self, *, want_shut_down: bool = False) -> Message:
        return Message(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch,
            current_metadata_offset=max(0, self._broker_epoch),
            want_fence=self._want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=[],
        )

    async def _keep_reporting(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                error = await self._heartbeat()
                if error is ErrorCode.STALE_BROKER_EPOCH:
                    error = await self._register_again()
            except _FAILURES as trouble:
                self._note_silence(trouble)
                continue
            if error is ErrorCode.NONE and self._is_silent:
                self._is_silent = False
                _logger.info("%s answers again", self._point.address)

    async def _register_again(self) -> ErrorCode:
        """Register again: the registration point lost our registration, or serves another cluster now."""
        error = await self._register()
        if error is ErrorCode.NONE:
            _logger.info("registered again at %s as broker %d", self._point.address, self._node_id)
            return await self._heartbeat()
        if not self._is_silent:
            self._is_silent = True
            other = _registered_broker(await self._describe(self._point))
            _logger.error("%s; the broker keeps serving, but clients cannot find it there", self._refusal(error, other))
        return error

    def _note_silence(self, trouble: Exception) -> None:
        if not self._is_silent:
            self._is_silent = True
            _logger.warning(
                "%s does not answer (%s); the broker keeps serving and sends heartbeats again when it does",
                self._point.address,
                _reason(trouble),
            )

    # Refusals

    def _refuse_second_broker(self, other: _RegisteredBroker | None) -> None:
        if other is not None and other.node_id != self._node_id:
            raise self._refusal(ErrorCode.INVALID_REGISTRATION, other)

    def _refusal(self, error: ErrorCode, other: _RegisteredBroker | None) -> StartupError:
        at = self._point.address
        if error is ErrorCode.INCONSISTENT_CLUSTER_ID:
            return StartupError(
                f"the log directories belong to cluster {self._cluster_id}, and the cluster at {at} is another one; "
                "use the log.dirs of that cluster, or an empty folder"
            )
        if other is None:
            return StartupError(f"broker {self._node_id} was refused at {at} with {error.name}")
        known = f"id {other.node_id} at {other.address}"
        if other.node_id != self._node_id:
            state = "" if other.is_alive else ", stopped"
            return StartupError(
                f"this cluster has a broker already ({known}{state}); several brokers come with replication. Broker "
                f"{self._node_id} was refused at {at}"
            )
        return StartupError(
            f"a broker with this id runs already ({known}), with other log directories; stop it or change broker.id"
        )


def _client(server: str, node_id: int) -> BrokerClient:
    host, colon, port = server.strip().rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise StartupError(f"{server!r} (zookeeper.connect) is not of the form host:port, for example localhost:2181")
    host = host.strip("[]")
    host = "127.0.0.1" if host == "0.0.0.0" else host
    return BrokerClient(
        host, int(port), client_id=f"broker-{node_id}", request_timeout_s=TIMEOUT_S, connect_timeout_s=TIMEOUT_S
    )


def _registered_broker(cluster: Message) -> _RegisteredBroker | None:
    for one in cluster.brokers:
        return _RegisteredBroker(one.broker_id, f"{one.host}:{one.port}", not one.is_fenced)
    return None


def _error(reply: Message) -> ErrorCode:
    """The error code of a reply; an unknown code, from a newer release, is an error too."""
    try:
        return ErrorCode(reply.error_code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _reason(trouble: Exception | None) -> str:
    """The reason as a short text: for an `OSError`, the system's message, which is clearer than the library's."""
    if isinstance(trouble, OSError) and trouble.errno and not isinstance(trouble, socket.gaierror):
        return os.strerror(trouble.errno)
    return str(trouble)
