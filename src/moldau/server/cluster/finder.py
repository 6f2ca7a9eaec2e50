"""How a broker without a controller of its own finds its cluster, before it formats or serves anything.

It asks the addresses of `controller.quorum.bootstrap.servers` (or `zookeeper.connect`) for the cluster's id and its
controllers, and does not start before one answers: brokers that cannot reach that address do not become clusters of
their own. A broker that had metadata of its own until now hands it over (`controller.hand_over`). Start at
`ClusterFinder.find`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import Final, NamedTuple

from moldau.client.wire import WireClient
from moldau.controller.hand_over import HandedMetadata
from moldau.controller.metadata_log import METADATA_PARTITION
from moldau.controller.quorum.state import NOBODY, QuorumState, load_quorum_state, save_quorum_state
from moldau.core.clock import Clock
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import NodeSettings, StorageSettings
from moldau.core.errors import ErrorCode, MoldauError, StartupError
from moldau.log.errors import FatalDiskError
from moldau.log.files import Files
from moldau.net.broker_client import BrokerClient
from moldau.protocol.api import ApiKey, MalformedResponseError
from moldau.protocol.messages import Message
from moldau.protocol.negotiation import api_versions_request
from moldau.server.cluster.controller_voters import bootstrap_addresses, configured_voters
from moldau.server.cluster.part import open_metadata_log
from moldau.server.directories import metadata_directory

__all__ = [
    "ClusterFinder",
    "FoundCluster",
    "forget_leading",
    "led_itself",
    "other_cluster",
    "own_metadata",
    "unused_id",
]

_logger = logging.getLogger("moldau.server.ClusterFinder")

RETRY_S: Final = 0.5
TIMEOUT_S: Final = 5.0
BROKERS, CONTROLLERS = 1, 2
KRAFT_VERSION: Final = "kraft.version"
_FAILURES = (OSError, MoldauError)

Address = tuple[str, int]


class FoundCluster(NamedTuple):
    cluster_id: str
    address: Address
    """Where the answer came from."""
    controllers: tuple[int, ...]
    keeps_voters: bool
    """Whether the voters are in the metadata log, where a broker reads them."""

    def known_to(self, config: BrokerConfig) -> BrokerConfig:
        """The settings with the only controller at the address at which it was found: what it calls itself may mean
        nothing here."""
        if self.keeps_voters or len(self.controllers) != 1:
            return config
        host, port = self.address
        voter = f"{self.controllers[0]}@{f'[{host}]' if ':' in host else host}:{port}"
        return BrokerConfig({**config.static, "controller.quorum.voters": voter})


class ClusterFinder:
    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        voters = [(one.host, one.port) for voter in configured_voters(config) for one in voter.endpoints[:1]]
        servers = [_reachable(one) for one in (bootstrap_addresses(config) or voters)]
        self._clients = {one: _client(one, config.node_id) for one in servers}
        self._timeout_ms = config.section(NodeSettings).registration_timeout_ms
        self._deadline_ms = clock.monotonic_ms() + self._timeout_ms
        self._clock = clock
        self._is_stopping = asyncio.Event()

    @property
    def servers(self) -> str:
        return ",".join(client.address for client in self._clients.values())

    async def find(self) -> FoundCluster:
        """Wait until a controller answers; raises `StartupError`."""
        has_warned = False
        while True:
            trouble: Exception | None = None
            for address, client in self._clients.items():
                try:
                    return await self._ask(address, client)
                except _FAILURES as error:
                    trouble = trouble or error
            if not has_warned:
                has_warned = True
                _logger.warning(
                    "cannot register: nothing answers at %s (%s). Start it with `zookeeper-server-start "
                    "config/zookeeper.properties`, or start the controllers; trying for %g s",
                    self.servers,
                    _reason(trouble),
                    self._timeout_ms / 1000,
                )
            await self._pause(
                f"nothing answered at {self.servers} within {self._timeout_ms} ms ({_reason(trouble)}). "
                "A broker with zookeeper.connect finds its cluster there: start "
                "`zookeeper-server-start config/zookeeper.properties` first, or a node that needs none: "
                "`kafka-server-start config/kraft/server.properties`"
            )

    async def _ask(self, address: Address, client: BrokerClient) -> FoundCluster:
        question = Message(
            include_cluster_authorized_operations=False, endpoint_type=CONTROLLERS, include_fenced_brokers=False
        )
        cluster = await client.send(ApiKey.DESCRIBE_CLUSTER, question)
        if cluster.error_code:
            raise MalformedResponseError(f"{client.address} is not a controller: {cluster.error_message}")
        versions = await client.send(ApiKey.API_VERSIONS, api_versions_request())
        keeps_voters = any(one.name == KRAFT_VERSION and one.max_version_level for one in versions.finalized_features)
        return FoundCluster(cluster.cluster_id, address, tuple(one.broker_id for one in cluster.brokers), keeps_voters)

    async def hand_over(self, handed: HandedMetadata) -> None:
        """Give the cluster this broker's metadata; returns once the cluster has metadata of this broker's cluster."""
        refusal: ErrorCode | None = None
        while True:
            found = await self.find()
            request = handed.to_wire(timeout_ms=int(TIMEOUT_S * 1000))
            try:
                answer = await self._clients[found.address].send(ApiKey.PRODUCE, request)
                refusal = ErrorCode(answer.responses[0].partition_responses[0].error_code)
            except _FAILURES as error:
                _logger.info("%s was lost while it takes over the metadata: %s", self.servers, error)
            if refusal is ErrorCode.DUPLICATE_RESOURCE:
                break
            if refusal in (ErrorCode.INVALID_REQUEST, ErrorCode.CORRUPT_MESSAGE):
                raise StartupError(
                    f"the metadata of cluster {handed.cluster_id} is in this broker's log directories, and the "
                    f"controllers at {self.servers} do not take it ({refusal.name}): begin with one controller alone "
                    "and voters that are fixed by its settings, start this broker, and add controllers then"
                )
            await self._pause(f"{self.servers} did not take over this broker's metadata")
        if found.cluster_id != handed.cluster_id:
            raise other_cluster(handed.cluster_id, self.servers)

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

    def give_up(self) -> None:
        self._is_stopping.set()

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def other_cluster(cluster_id: str, servers: str) -> StartupError:
    return StartupError(
        f"the log directories belong to cluster {cluster_id}, and the cluster at {servers} is another one; use the "
        "log.dirs of that cluster, or an empty folder"
    )


# --- metadata of its own --------------------------------------------------------------------------------


def led_itself(config: BrokerConfig, files: Files) -> bool:
    """Whether this node was the quorum of its metadata, when it last ran."""
    folder = os.path.join(metadata_directory(config), str(METADATA_PARTITION))
    return load_quorum_state(files, folder).leader_id == config.node_id


def own_metadata(config: BrokerConfig, files: Files, clock: Clock, cluster_id: str) -> HandedMetadata | None:
    """The metadata in this node's folder, whoever led it; `None` if there is none.

    It is saved as a snapshot first, so that nothing cuts it off here: what a snapshot has is known to be committed.
    """
    folder = os.path.join(metadata_directory(config), str(METADATA_PARTITION))
    if not files.exists(folder):
        return None
    log = open_metadata_log(config, files, clock, _raise)
    try:
        image = log.load()
        if not image.brokers and not image.topics:
            return None
        snapshot = log.save_snapshot(image)
        data = log.read_snapshot(snapshot)
    finally:
        log.partition.close()
    return None if data is None else HandedMetadata(cluster_id, snapshot, data)


def forget_leading(config: BrokerConfig, files: Files) -> None:
    """After the hand-over: this node leads its metadata no more."""
    folder = os.path.join(metadata_directory(config), str(METADATA_PARTITION))
    save_quorum_state(files, folder, QuorumState(load_quorum_state(files, folder).leader_epoch, NOBODY))


def unused_id(config: BrokerConfig) -> int:
    """The first broker id above the reserved ones that the cluster does not know; raises `StartupError`."""
    first = config.section(StorageSettings).reserved_broker_max_id + 1
    question = Message(include_cluster_authorized_operations=False, endpoint_type=BROKERS, include_fenced_brokers=True)
    trouble: MoldauError | None = None
    for host, port in (_reachable(one) for one in bootstrap_addresses(config)):
        try:
            with WireClient(host, port, TIMEOUT_S) as client:
                known = [one.broker_id for one in client.send(ApiKey.DESCRIBE_CLUSTER, question).brokers]
        except MoldauError as error:
            trouble = error
            continue
        return int(max([first - 1, *known]) + 1)
    _logger.warning("no broker.id is set, and no controller could be asked for one: %s", trouble)
    return first


def _raise(error: BaseException) -> None:
    raise FatalDiskError(str(error)) from error


def _reachable(address: Address) -> Address:
    host, port = address
    return ("127.0.0.1" if host == "0.0.0.0" else host), port


def _client(address: Address, node_id: int) -> BrokerClient:
    return BrokerClient(
        *address, client_id=f"broker-{node_id}", request_timeout_s=TIMEOUT_S, connect_timeout_s=TIMEOUT_S
    )


def _reason(trouble: Exception | None) -> str:
    """The reason as a short text: for an `OSError`, the system's message, which is clearer than the library's."""
    if isinstance(trouble, OSError) and trouble.errno and not isinstance(trouble, socket.gaierror):
        return os.strerror(trouble.errno)
    return str(trouble)
