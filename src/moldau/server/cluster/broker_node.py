"""A broker of a cluster: its metadata comes from a quorum of controllers, of which it may be one.

It has the same parts as a node alone (`server.node`), and besides them its place in the quorum, its life with the
active controller, followers and leaders' bookkeeping. The order of a start: take part in the quorum, bind, register,
apply the metadata up to the registration, recover the logs, serve, and only then ask to be unfenced.
Start at `ClusterNode._start`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.broker.cluster.controller_channel import ControllerChannel
from moldau.broker.cluster.figures import ClusterFigures, ReplicationFigures
from moldau.broker.cluster.forwarding import ForwardingController
from moldau.broker.cluster.lifecycle import BrokerLifecycle
from moldau.broker.cluster.peers import BrokerPeers
from moldau.broker.cluster.remote_transactions import RemoteTransactions
from moldau.broker.cluster.standing_aside import DiskRoom
from moldau.broker.metadata.topic_configs import TopicConfigs
from moldau.broker.replication.fetchers import Fetchers
from moldau.broker.replication.isr_changes import IsrChanges
from moldau.broker.replication.places import ReplicaPlaces
from moldau.controller.controller import Controller
from moldau.controller.image_diff import difference
from moldau.controller.metadata_loss import forgotten_cluster
from moldau.core.config.sections import ClusterSettings, NodeSettings, ReplicationSettings
from moldau.core.errors import StartupError
from moldau.log.directories.checkpoints import epoch_of_orderly_end
from moldau.log.directories.manifest_keeper import MetadataMark
from moldau.log.directories.meta_properties import load_meta_properties
from moldau.net.limits import Limits
from moldau.net.server import Server
from moldau.server.cluster.controller_voters import configured_voters
from moldau.server.cluster.finder import (
    ClusterFinder,
    FoundCluster,
    forget_leading,
    led_itself,
    other_cluster,
    own_metadata,
)
from moldau.server.cluster.part import ClusterPart, check_cluster_settings
from moldau.server.directories import adopt, all_directories, log_directories, metadata_directory
from moldau.server.listeners import listen
from moldau.server.node import BrokerState, Node, directory_ids, refuse
from moldau.server.process.descriptors import DescriptorWatch, current_budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moldau.broker.context import Broker
    from moldau.controller.metadata_log import MetadataLog
    from moldau.core.activity import Activity
    from moldau.core.config import BrokerConfig
    from moldau.log.files import Files
    from moldau.log.manager import LogManager

__all__ = ["ClusterNode"]

_logger = logging.getLogger("moldau.server.KafkaServer")


SPARE_MS = 3_000


@dataclass(slots=True)
class _ClusterMetadata:
    """The cluster as the source of metadata, in the form in which a node takes any."""

    controller: Controller
    metadata_log: MetadataLog
    activity: Activity

    def snapshot_round(self) -> None:
        """The quorum writes its snapshots itself."""


class ClusterNode(Node):
    _finder: ClusterFinder | None = None
    _part: ClusterPart | None = None
    _channel: ControllerChannel | None = None
    _lifecycle: BrokerLifecycle | None = None
    _fetchers: Fetchers | None = None
    _isr_changes: IsrChanges | None = None
    _places: ReplicaPlaces | None = None
    _peers: BrokerPeers | None = None
    _follower: asyncio.Task[None] | None = None

    async def _start(self) -> None:
        began = time.monotonic()
        self.state = BrokerState.STARTING
        self._image_arrived = asyncio.Event()
        config = self._config
        check_cluster_settings(config)
        await self._start_metrics_server()
        directories = log_directories(config)
        logs = self._logs = self._log_manager(directories)
        found = await self._find_cluster()
        if found is None or not self._may_format:
            _check_formatted(self._files, all_directories(config))
        logs.lock()
        identities = adopt(
            self._files,
            all_directories(config),
            config.node_id,
            may_format=self._may_format,
            cluster_id=None if found is None else found.cluster_id,
        )
        if found is not None:
            config = self._config = found.known_to(config)
            await self._join(found, identities[metadata_directory(config)].cluster_id)
        part = self._part = ClusterPart(
            config,
            identities[metadata_directory(config)],
            files=self._files,
            clock=self._clock,
            on_fatal=self._on_fatal,
            on_image=self._image_arrived.set,
        )
        known_end = part.quorum.log.end_offset
        part.start(self._current_config)
        channel = self._channel = ControllerChannel(config.node_id, lambda: part.quorum.leader)
        controller = ForwardingController(part.quorum, self._current_config, channel)
        server = self._server = Server(
            self._loop, refuse, config.section(Limits), descriptors=lambda: current_budget().connections
        )
        self._listening = listen(server, config)
        lifecycle = self._lifecycle = self._new_lifecycle(part, channel, controller)
        logs.broker_epoch = await lifecycle.register(
            [one.endpoint for one in self._listening.values()],
            directory_ids(identities, directories),
            config.section(NodeSettings).rack,
            previous_epoch=epoch_of_orderly_end(self._files, directories),
        )
        await self._catch_up(part, lifecycle.broker_epoch)
        problem = forgotten_cluster(part.quorum.image, known_end, logs.partition_folders())
        if problem is not None:
            raise StartupError(problem)
        topic_configs = await self._open_logs(logs, part)
        controller.image = part.quorum.image
        source = _ClusterMetadata(controller, part.quorum.log, part.quorum.activity)
        broker = self.broker = self._new_broker(part.cluster_id, source, logs, topic_configs)
        broker.forwarding = controller
        self._serve(broker, server, source, topic_configs)
        self._replicate(broker, channel, lifecycle)
        own = {path: found.directory_id for path, found in identities.items() if found.directory_id is not None}
        self._places = ReplicaPlaces(broker, channel, lambda: lifecycle.broker_epoch, own)
        self._follower = asyncio.ensure_future(self._follow(part, controller))
        self._descriptors = DescriptorWatch(
            self._loop, lambda keep: broker.data_plane.slow_appends.between(lambda: logs.release_files(keep))
        )
        self._start_upkeep(logs, source)
        self._start_watchdog(source)
        self._attach_metrics(broker, server, source)
        await lifecycle.unfence()
        # Whoever asks now is told of this broker by itself too.
        await controller.wait_for(lambda image: image.is_alive(config.node_id))
        self.state = BrokerState.RUNNING
        self._log_start(broker, took_s=time.monotonic() - began)

    async def _find_cluster(self) -> FoundCluster | None:
        """The cluster of a broker alone; `None` if the settings say all that it has to know."""
        config = self._config
        is_controller = "controller" in config.section(NodeSettings).roles
        knows_all = bool(len(configured_voters(config))) and not led_itself(config, self._files)
        if is_controller or knows_all:
            return None
        self._finder = ClusterFinder(config, self._clock)
        return await self._finder.find()

    async def _join(self, found: FoundCluster, cluster_id: str) -> None:
        """Hand over the metadata that this broker has itself, if it had no cluster or its cluster has forgotten it."""
        config, files, finder = self._config, self._files, self._finder
        assert finder is not None, "not looked for"
        has_led = led_itself(config, files)
        if has_led or cluster_id != found.cluster_id:
            own = await self._loop.run_in_executor(None, own_metadata, config, files, self._clock, cluster_id)
            if own is not None:
                await finder.hand_over(own)
            elif cluster_id != found.cluster_id:
                raise other_cluster(cluster_id, finder.servers)
            if has_led:
                forget_leading(config, files)
        finder.close()

    def _new_lifecycle(
        self, part: ClusterPart, channel: ControllerChannel, controller: ForwardingController
    ) -> BrokerLifecycle:
        settings = self._config.section(NodeSettings)
        # An earlier run of this broker that was killed has a session until it ends by itself.
        session_ms = self._config.section(ClusterSettings).session_timeout_ms
        room = DiskRoom(self._config.node_id)

        def stands_aside() -> bool:
            return self.broker is not None and room.stands_aside(self.broker.partitions, controller.image)

        return BrokerLifecycle(
            self._config.node_id,
            part.cluster_id,
            channel,
            applied_offset=lambda: -1 if self.broker is None else controller.image.offset,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            registration_timeout_ms=max(settings.registration_timeout_ms, session_ms + SPARE_MS),
            stands_aside=stands_aside,
        )

    async def _catch_up(self, part: ClusterPart, broker_epoch: int) -> None:
        """Wait until the metadata here includes this broker's registration."""
        assert self._lifecycle is not None
        while part.quorum.image.offset < broker_epoch:
            self._image_arrived.clear()
            arrived = asyncio.ensure_future(self._image_arrived.wait())
            stopped = asyncio.ensure_future(self._lifecycle.stopping.wait())
            await asyncio.wait([arrived, stopped], return_when=asyncio.FIRST_COMPLETED)
            arrived.cancel()
            stopped.cancel()
            if self._lifecycle.stopping.is_set():
                raise StartupError("asked to stop before the metadata had arrived")

    async def _open_logs(self, logs: LogManager, part: ClusterPart) -> TopicConfigs:
        self.state = BrokerState.RECOVERY
        quorum = part.quorum
        logs.metadata_mark = lambda: MetadataMark(quorum.image.epoch, quorum.log.partition.recovery_point)
        topic_configs = logs.config_of = TopicConfigs(self._config, quorum.image)
        await self._loop.run_in_executor(None, logs.open, None)
        if len(logs) and not all(directory.is_clean for directory in logs.directories):
            _logger.info("the last run did not shut down cleanly: %d partitions recovered", len(logs))
        return topic_configs

    # --- replication ------------------------------------------------------------------------------------

    def _replicate(self, broker: Broker, channel: ControllerChannel, lifecycle: BrokerLifecycle) -> None:
        def epoch() -> int:
            return lifecycle.broker_epoch

        changes = self._isr_changes = IsrChanges(broker, channel, epoch)
        events = broker.partitions.events
        events.may_join, events.is_eligible = changes.look, changes.may_join
        events.lag_ms = broker.config.section(ReplicationSettings).lag_time_max_ms
        listener = _inter_broker_listener(self._config)
        self._peers = BrokerPeers(broker, listener)
        broker.remote_transactions = RemoteTransactions(broker, self._peers)
        fetchers = self._fetchers = Fetchers(broker, listener, epoch)
        assert self._part is not None
        broker.figures = ClusterFigures(
            lambda: ReplicationFigures(changes.shrinks, changes.expands, changes.failed_updates, list(fetchers.lag())),
            self._part.figures,
        )
        self._fetchers.follow(broker.image)

    async def _follow(self, part: ClusterPart, controller: ForwardingController) -> None:
        """Apply every image that the quorum commits, one after the other, as a node alone applies its decisions."""
        await controller.applied(controller.image)
        while True:
            image = part.quorum.image
            if image is controller.image:
                self._image_arrived.clear()
                if part.quorum.image is controller.image:
                    await self._image_arrived.wait()
                continue
            delta = difference(controller.image, image)
            try:
                await controller.publish(delta)
                if self._fetchers is not None and (delta.partitions or delta.brokers or delta.deleted_topics):
                    self._fetchers.follow(image)
                if self._isr_changes is not None and delta.brokers:
                    # A follower that has everything does not name its partitions again when it may join.
                    self._isr_changes.look_at_all()
            except Exception:
                _logger.exception("the metadata up to offset %d could not be applied", image.offset)
            await controller.applied(image)

    # --- stopping ---------------------------------------------------------------------------------------

    def give_up_start(self) -> None:
        if self._finder is not None:
            self._finder.give_up()
        if self._lifecycle is not None:
            self._lifecycle.give_up()

    async def _leave_cluster(self) -> None:
        if self._finder is not None:
            self._finder.close()
        if self._lifecycle is not None:
            is_controlled = bool(self._config.value("controlled.shutdown.enable"))
            await self._lifecycle.shut_down(is_controlled=is_controlled)
            if self._logs is not None:
                self._logs.broker_epoch = self._lifecycle.broker_epoch
        remote = None if self.broker is None else self.broker.remote_transactions
        for part in (self._fetchers, self._isr_changes, self._places, remote, self._peers):
            if part is not None:
                part.close()
        if self._follower is not None:
            self._follower.cancel()
        if self._channel is not None:
            self._channel.close()

    async def _close_metadata(self) -> None:
        if self._part is not None:
            self._part.drain()
            await self._part.close()


def _check_formatted(files: Files, directories: Sequence[str]) -> None:
    """Nodes that format themselves would each make up a cluster id, and be as many clusters."""
    if all(load_meta_properties(files, path) is None for path in directories):
        raise StartupError(
            f"{directories[0]} is not formatted, and this node is one of a cluster: format the folders of all its "
            "nodes with one id, kafka-storage format -t ID -c <file>, where ID comes from kafka-storage random-uuid"
        )


def _inter_broker_listener(config: BrokerConfig) -> str:
    """The name of the listener that brokers use among themselves."""
    named: str | None = config.value("inter.broker.listener.name")
    if named:
        return named.upper()
    clients = [one.name for one in config.listeners if one.name not in config.controller_listener_names]
    wanted: str = config.value("security.inter.broker.protocol")
    for name in clients:
        if config.security_protocols.get(name, "PLAINTEXT") == wanted:
            return name
    return clients[0]
