"""What a node needs besides a broker to be part of a cluster: its place in the metadata quorum, and the controller.

A node with the role `controller` is a voter (or may become one), has a controller listener, and decides while it leads.
A node without it observes: it fetches the metadata log from the leader. Either way the records that are committed
become the image here. Start at `ClusterPart.start`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from moldau.broker.cluster.figures import QuorumFigures
from moldau.controller.active_controller import ActiveController
from moldau.controller.cluster_apis import ClusterApis
from moldau.controller.controller_apis import ControllerApis
from moldau.controller.decisions.eligible_leaders import MIN_ISR, first_records
from moldau.controller.features import INITIAL_LEVELS
from moldau.controller.hand_over import HandedMetadata
from moldau.controller.image import MetadataImage
from moldau.controller.metadata_log import METADATA_PARTITION, MetadataLog
from moldau.controller.quorum.replicated import ReplicatedQuorum
from moldau.core.clock import Clock
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import MetadataLogSettings, NodeSettings, QuorumTimes
from moldau.core.errors import MoldauError, StartupError
from moldau.log.files import Files
from moldau.log.log_events import LogEvents
from moldau.net.limits import Limits
from moldau.net.server import Server
from moldau.net.session import Session
from moldau.protocol.api import ApiKey, RequestHeader
from moldau.protocol.metadata_records import FeatureLevelRecord, MetadataRecord
from moldau.raft.settings import QuorumSettings
from moldau.raft.voters import Endpoint, ReplicaKey, Voter
from moldau.server.cluster.controller_start import open_metadata_partition
from moldau.server.cluster.controller_voters import bootstrap_addresses, configured_voters, controller_endpoint
from moldau.server.directories import metadata_directory
from moldau.server.process.descriptors import current_budget

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from moldau.broker.context import Broker
    from moldau.log.directories.meta_properties import MetaProperties
    from moldau.protocol.messages import Message

__all__ = ["ClusterPart", "ZooKeeperPort", "check_cluster_settings", "open_metadata_log"]

_logger = logging.getLogger("moldau.server.ControllerServer")

TakeOver = Callable[[HandedMetadata], "Awaitable[None]"]


class ZooKeeperPort(Protocol):
    """What a port answers that is ZooKeeper's by its number."""

    advice: str
    """What to do where the port is taken."""

    def answer_text(self, word: bytes) -> bytes | None: ...
    def serve(self, part: ClusterPart, server: Server) -> None: ...


_HANDLERS = {
    ApiKey.CREATE_TOPICS: "api_19_create_topics",
    ApiKey.DELETE_TOPICS: "api_20_delete_topics",
    ApiKey.ALTER_CONFIGS: "api_33_alter_configs",
    ApiKey.CREATE_PARTITIONS: "api_37_create_partitions",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "api_45_alter_partition_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "api_46_list_partition_reassignments",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "api_44_incremental_alter_configs",
    ApiKey.UPDATE_FEATURES: "api_57_update_features",
    ApiKey.UNREGISTER_BROKER: "api_64_unregister_broker",
}
"""The handlers of a broker that need nothing but its controller, its metadata and its settings."""


@dataclass(slots=True)
class _ControllerView:
    """What those handlers see of a controller: the part of `broker.context.Broker` that they use."""

    controller: ActiveController
    config: BrokerConfig
    node_id: int = -1

    @property
    def image(self) -> MetadataImage:
        return self.controller.image


class ClusterPart:
    """Created and used on a running event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        identity: MetaProperties,
        *,
        files: Files,
        clock: Clock,
        on_fatal: Callable[[BaseException], None],
        on_image: Callable[[], None] = lambda: None,
        zookeeper: ZooKeeperPort | None = None,
        take_over: TakeOver | None = None,
        has_taken_over: bool = False,
    ) -> None:
        """`zookeeper` is what a controller in ZooKeeper's place answers besides; `take_over` takes the metadata of a
        broker that had its own until now, after which no broker has been heard of yet."""
        self._config = config
        self._zookeeper = zookeeper
        self._take_over = take_over
        self._has_taken_over = has_taken_over
        self._files = files
        self._clock = clock
        self._on_fatal = on_fatal
        self._server: Server | None = None
        self._terms = 0
        """How often this node became the active controller."""
        self._apis: ControllerApis | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.cluster_id = identity.cluster_id
        self.ports: dict[str, int] = {}
        self.is_controller = "controller" in config.section(NodeSettings).roles
        check_cluster_settings(config)
        voters, servers = configured_voters(config), bootstrap_addresses(config)
        endpoints: tuple[Endpoint, ...] = (controller_endpoint(config),) if self.is_controller else ()
        if zookeeper is not None and len(voters) == 1:
            endpoints = ()  # brokers go on with the address at which they found it
        self.quorum = ReplicatedQuorum(
            open_metadata_log(config, files, clock, on_fatal),
            Voter(ReplicaKey(config.node_id, identity.directory_id), endpoints),
            replace(self._settings(), bootstrap_servers=len(servers)),
            voters,
            bootstrap_servers=servers,
            clock=clock,
            on_fatal=on_fatal,
            on_claim=self._on_claim,
            on_image=on_image,
        )
        self.active: ActiveController | None = None

    def _settings(self) -> QuorumSettings:
        times = self._config.section(QuorumTimes)
        return QuorumSettings(
            self.cluster_id,
            election_timeout_ms=times.election_timeout_ms,
            election_backoff_max_ms=times.election_backoff_max_ms,
            fetch_timeout_ms=times.fetch_timeout_ms,
            request_timeout_ms=times.request_timeout_ms,
            retry_backoff_ms=times.retry_backoff_ms,
        )

    # --- life -------------------------------------------------------------------------------------------

    def start(self, current_config: Callable[[], BrokerConfig] | None = None) -> None:
        """Take part in the quorum; a controller answers others from now on."""
        if self.is_controller:
            config = current_config or (lambda: self._config)
            self.active = ActiveController(self.quorum, config, self._clock, has_heard_nobody=self._has_taken_over)
        self.quorum.start()
        if self.active is not None:
            self.active.start()
            self._listen(self.active)

    def _listen(self, active: ActiveController) -> None:
        config, clock = self._config, self._clock
        cluster = ClusterApis(
            active, cluster_id=self.cluster_id, forwarded=self._answer_forwarded, take_over=self._take_over
        )
        self._apis = ControllerApis(
            self.quorum,
            lambda: (clock.now_ms(), clock.monotonic_ms()),
            cluster_id=self.cluster_id,
            cluster=cluster,
            tells_brokers=self._zookeeper is not None,
        )
        server = self._server = Server(
            asyncio.get_running_loop(),
            self._apis.handle,
            config.section(Limits),
            descriptors=lambda: current_budget().connections,
        )
        if self._zookeeper is not None:
            server.answer_text = self._zookeeper.answer_text
            self._zookeeper.serve(self, server)
        for wanted in config.listeners:
            if wanted.name not in config.controller_listener_names:
                continue
            protocol = config.security_protocols.get(wanted.name, "PLAINTEXT")
            if protocol != "PLAINTEXT":
                raise StartupError(f"listeners: {wanted.name} wants {protocol}, and only PLAINTEXT is supported so far")
            try:
                self.ports[wanted.name] = server.listen(wanted.name, wanted.host, wanted.port)
            except OSError as error:
                advice = "choose another port" if self._zookeeper is None else self._zookeeper.advice
                raise StartupError(f"cannot listen on {wanted}: {error.strerror}; {advice}") from None
        if not self.ports:
            raise StartupError(
                "listeners has no listener that controller.listener.names names; add one, such as CONTROLLER://:9093"
            )

    def _answer_forwarded(self, request: Message, header: RequestHeader, host: str) -> Awaitable[Message] | None:
        """A request of a broker's client, answered as a broker alone would answer it."""
        if header.api_key == ApiKey.DESCRIBE_QUORUM:
            assert self._apis is not None
            return _now(self._apis.describe_quorum(request))
        name = _HANDLERS.get(ApiKey(header.api_key))
        if name is None or self.active is None:
            return None
        # Imported here: a controller starts without the code of a broker.
        import importlib

        from moldau.broker.context import RequestContext

        module = importlib.import_module(f"moldau.broker.handlers.{name}")
        session = Session("", host, 0, "")
        call = RequestContext(header.api_key, header.api_version, header.correlation_id, header.client_id, session)
        view = cast("Broker", _ControllerView(self.active, self._config))
        handled: Any = module.handle(request, call, view)
        return handled if inspect.isawaitable(handled) else _now(handled)

    def figures(self) -> QuorumFigures:
        quorum, active = self.quorum, self.active
        view = quorum.view()
        return QuorumFigures(
            state=quorum.state,
            leader_id=view.leader_id,
            epoch=view.epoch,
            high_watermark=view.high_watermark,
            end_offset=quorum.log.end_offset,
            end_epoch=quorum.log.last_epoch,
            voters=len(view.voters),
            observers=len(view.observers),
            elections=0 if active is None else active.elections,
            unclean_elections=0 if active is None else active.unclean_elections,
            silent_brokers=0 if active is None else active.silent_brokers,
            terms=self._terms,
        )

    def _on_claim(self, epoch: int) -> None:
        """The active controller of an empty cluster writes its first records."""
        self._terms += 1
        task = asyncio.ensure_future(self._bootstrap(epoch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _bootstrap(self, epoch: int) -> None:
        quorum = self.quorum
        if quorum.image.features:
            return
        given = quorum.log.bootstrap_records()
        levels: list[MetadataRecord] = [
            FeatureLevelRecord(name=name, feature_level=level) for name, level in INITIAL_LEVELS.items()
        ]
        try:
            first = given or levels
            await quorum.append([*first, *first_records(first, int(self._config.value(MIN_ISR)))])
        except MoldauError as error:
            _logger.warning("the first records of the cluster are not committed in epoch %d: %s", epoch, error)

    def drain(self) -> None:
        if self._server is not None:
            self._server.drain()

    async def close(self) -> None:
        """Resign, if this node leads, and close the log."""
        if self.active is not None:
            self.active.close()
        await self.quorum.close()
        for task in list(self._tasks):
            task.cancel()
        if self._server is not None:
            # One iteration of the loop, to send the last replies.
            await asyncio.sleep(0.01)
            self._server.close()


async def _now(answer: Message) -> Message:
    return answer


def open_metadata_log(
    config: BrokerConfig, files: Files, clock: Clock, on_fatal: Callable[[BaseException], None]
) -> MetadataLog:
    """Open the metadata log of a node, or create it; raises `StartupError`."""
    directory = os.path.join(metadata_directory(config), str(METADATA_PARTITION))
    partition = open_metadata_partition(directory, config, files, clock, LogEvents(on_fatal=on_fatal))
    if partition.offline_error is not None:
        raise StartupError(f"the metadata log cannot be used: {partition.offline_error}")
    settings = config.section(MetadataLogSettings)
    return MetadataLog(
        partition, clock, snapshot_after_bytes=settings.snapshot_after_bytes, keep_bytes=settings.retention_bytes
    )


def check_cluster_settings(config: BrokerConfig) -> None:
    """Raise `StartupError` if the settings do not say who the controllers are."""
    is_controller = "controller" in config.section(NodeSettings).roles
    voters = configured_voters(config)
    if is_controller and len(voters) and config.node_id not in voters.by_id:
        raise StartupError(
            f"controller.quorum.voters does not name node {config.node_id}; add {config.node_id}@host:port there, or "
            "use controller.quorum.bootstrap.servers in its place"
        )
    if not is_controller and config.node_id in voters.by_id:
        raise StartupError(
            f"node {config.node_id} is a broker alone, and controller.quorum.voters names it as a controller; give one "
            "of them another node.id"
        )
    if not len(voters) and not bootstrap_addresses(config):
        raise StartupError(
            "controller.quorum.bootstrap.servers or controller.quorum.voters must say where the controllers are, "
            "for example controller.quorum.bootstrap.servers=localhost:9093"
        )
