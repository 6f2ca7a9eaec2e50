"""A node: creates, connects, starts and stops every part of the broker, in order. The composition root.

There is no other logic here. `Node.start` goes from locking the directories to answering clients; `Node.stop` goes
the way back, so that the next start finds a clean shutdown.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

import moldau
from moldau.broker.context import Broker
from moldau.broker.coordination.coordinators import Coordinators
from moldau.broker.data.data_plane import DataPlane
from moldau.broker.health.loop_monitor import LoopMonitor
from moldau.broker.health.watchdog import Watchdog
from moldau.broker.metadata.metadata_publisher import MetadataPublisher
from moldau.broker.metadata.offline_partitions import OfflinePartitions
from moldau.broker.metadata.topic_answers import TopicAnswers
from moldau.broker.metadata.topic_configs import TopicConfigs
from moldau.broker.metric_sources import Parts, attach_metrics
from moldau.broker.metrics import Metrics
from moldau.broker.partitions import Partitions
from moldau.core.addresses import is_loopback
from moldau.core.clock import Clock, SystemClock
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import NodeSettings, StorageSettings
from moldau.core.errors import StartupError
from moldau.log.errors import FatalDiskError, StorageError
from moldau.log.files import Files
from moldau.log.log_events import LogEvents
from moldau.log.manager import LogManager
from moldau.net.limits import Limits
from moldau.net.replies import CloseConnectionError, Handled
from moldau.net.server import Server
from moldau.server.cluster.controller_start import MetadataSource, StartedController, start_controller
from moldau.server.directories import adopt, all_directories, log_directories
from moldau.server.listeners import Listening, listen
from moldau.server.maintenance import Maintenance
from moldau.server.process.descriptors import DescriptorWatch, current_budget
from moldau.server.schema_ids import RegistryAddress, RegistrySchemaIds, announced_registries
from moldau.server.topic_changes import log_topic_changes

if TYPE_CHECKING:
    from moldau.broker.health.watchdog import Stall
    from moldau.log.cleaning.cleaner import Cleaner
    from moldau.log.directories.meta_properties import MetaProperties
    from moldau.log.partition_log import PartitionLog
    from moldau.log.segments.segment import Segment
    from moldau.net.connection import Connection
    from moldau.server.http import MetricsServer

__all__ = ["BrokerState", "Node"]

_logger = logging.getLogger("moldau.server.KafkaServer")

_FLUSH_ROUND_MS = 500
_RECOVERY_POINT_ROUND_MS = 1_000
_DELETION_ROUND_MS = 10_000
_SNAPSHOT_ROUND_MS = 10_000
_MANIFEST_ROUND_MS = 2_000


class BrokerState(IntEnum):
    """The state in the BrokerState metric and in /healthz, with Kafka's numbers."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class Node:
    """One broker with a controller of its own; `server.cluster.broker_node` is a broker of a cluster.

    Created and used on a running event loop.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        may_format: bool,
        on_fatal: Callable[[BaseException], None],
        clock: Clock | None = None,
        files: Files | None = None,
    ) -> None:
        self._config = config
        self._may_format = may_format or config.section(NodeSettings).may_format
        self._on_fatal = on_fatal
        self._clock = clock or SystemClock()
        self._files = files or Files()
        self._loop = asyncio.get_running_loop()
        self._maintenance = Maintenance(self._clock, on_fatal)
        self._has_rolled = False
        """Whether a recovery point has moved past a closed segment since they were last saved."""
        self._metrics = Metrics()
        self._loop_monitor: LoopMonitor | None = None
        self._watchdog: Watchdog | None = None
        self._metrics_server: MetricsServer | None = None
        self._logs: LogManager | None = None
        self._controller: StartedController | None = None
        self._server: Server | None = None
        self._data_plane: DataPlane | None = None
        self._coordinators: Coordinators | None = None
        self._cleaner: Cleaner | None = None
        self._offline: OfflinePartitions | None = None
        self._descriptors: DescriptorWatch | None = None
        self._schema_ids = RegistrySchemaIds(self._registry_address)
        self._listening: dict[str, Listening] = {}
        self.state = BrokerState.NOT_RUNNING
        self.metrics_port = 0
        self.broker: Broker | None = None

    def port_of(self, listener_name: str) -> int:
        """The port a listener is bound to; differs from the configured port if that is 0."""
        return self._listening[listener_name].port

    async def start(self) -> None:
        """Start the node; returns once clients are answered, and raises `StartupError` if that fails."""
        try:
            await self._start()
        except (OSError, StorageError, FatalDiskError) as error:
            folders = ", ".join(log_directories(self._config))
            raise StartupError(f"cannot start on {folders}: {getattr(error, 'strerror', None) or error}") from error

    async def _start(self) -> None:
        began = time.monotonic()
        self.state = BrokerState.STARTING
        config = self._config
        await self._start_metrics_server()
        directories = log_directories(config)
        logs = self._logs = self._log_manager(directories)
        logs.lock()
        identities = adopt(self._files, all_directories(config), config.node_id, may_format=self._may_format)
        logs.load_manifests()
        started = self._controller = start_controller(
            self._current_config,
            files=self._files,
            clock=self._clock,
            events=logs.events,
            manifests=logs.manifests,
            partition_folders=logs.partition_folders(),
        )
        logs.metadata_mark = started.metadata_mark
        topic_configs = logs.config_of = TopicConfigs(config, started.controller.image)
        self.state = BrokerState.RECOVERY
        recovery_began = time.monotonic()
        await self._loop.run_in_executor(None, logs.open, started.known_epoch)
        if len(logs) and not all(directory.is_clean for directory in logs.directories):
            took_ms = (time.monotonic() - recovery_began) * 1000
            _logger.info("the last run did not shut down cleanly: %d partitions recovered in %d ms", len(logs), took_ms)

        # No `await` from here to the end: everything is set up before the first client is accepted.
        server = self._server = Server(
            self._loop, refuse, config.section(Limits), descriptors=lambda: current_budget().connections
        )
        self._listening = listen(server, config)
        logs.broker_epoch = started.join(
            [one.endpoint for one in self._listening.values()],
            directory_ids(identities, directories),
            config.section(NodeSettings).rack,
        )
        cluster_id = next(iter(identities.values())).cluster_id
        broker = self.broker = self._new_broker(cluster_id, started, logs, topic_configs)
        self._serve(broker, server, started, topic_configs)
        self._descriptors = DescriptorWatch(
            self._loop, lambda keep: broker.data_plane.slow_appends.between(lambda: logs.release_files(keep))
        )
        self._start_upkeep(logs, started)
        self._start_watchdog(started)
        self._attach_metrics(broker, server, started)
        self.state = BrokerState.RUNNING
        self._log_start(broker, took_s=time.monotonic() - began)

    def give_up_start(self) -> None:
        """Abort a `start` that waits for other processes; this one waits for none."""

    def _new_broker(
        self, cluster_id: str, started: MetadataSource, logs: LogManager, topic_configs: TopicConfigs
    ) -> Broker:
        config = self._config
        return Broker(
            node_id=config.node_id,
            cluster_id=cluster_id,
            config=config,
            image=started.controller.image,
            controller=started.controller,
            partitions=Partitions(config.node_id, logs, topic_configs),
            logs=logs,
            metrics=self._metrics,
            clock=self._clock,
            listeners={name: one.listener for name, one in self._listening.items()},
            schema_ids=self._schema_ids,
            topic_answers=TopicAnswers(config.node_id),
        )

    def _serve(self, broker: Broker, server: Server, started: MetadataSource, topic_configs: TopicConfigs) -> None:
        """Subscribe the broker to the metadata, and only then answer requests."""
        offline = self._offline = OfflinePartitions(broker.partitions, broker.logs, self._on_restored, self._apply)
        publisher = MetadataPublisher(broker, topic_configs, offline)
        publisher.on_config(lambda changed: setattr(server, "limits", changed.section(Limits)))
        data_plane = self._data_plane = DataPlane(broker, self._loop, self._on_fatal)
        publisher.start(started.controller.image)
        started.controller.subscribe(log_topic_changes)
        started.controller.subscribe(publisher)
        coordinators = self._coordinators = Coordinators(broker, self._loop)
        coordinators.start()
        started.controller.subscribe(coordinators.on_metadata)
        server.handle = data_plane.router.handle

    def _on_restored(self, topic: str) -> None:
        if self._coordinators is not None:
            self._coordinators.on_restored(topic)

    def _log_start(self, broker: Broker, *, took_s: float) -> None:
        self._log_places()
        _logger.info("[KafkaServer id=%d] started", broker.node_id)
        _logger.info(
            "Kafka Server started: %s, cluster %s, %d partitions, after %d ms (moldau %s)",
            ", ".join(f"{name}://{one.host}:{one.port}" for name, one in self._listening.items()),
            broker.cluster_id,
            len(broker.logs),
            took_s * 1000,
            moldau.__version__,
        )

    def _log_places(self) -> None:
        """Log the locations of data, metrics and health."""
        config = self._config
        _logger.info("data in %s", ", ".join(log_directories(config)))
        if self._metrics_server is not None:
            host = config.section(NodeSettings).metrics_host
            shown = f"[{host}]" if ":" in host else host or "0.0.0.0"
            _logger.info("metrics at http://%s:%d/metrics, health at /healthz", shown, self.metrics_port)
        elif not config.section(NodeSettings).metrics_port:
            _logger.info("metrics are off; metrics.http.port turns them on")
        if all(is_loopback(one.host) for one in self._listening.values()):
            _logger.info("only this machine can connect; --host 0.0.0.0 or listeners opens it to others")

    def _current_config(self) -> BrokerConfig:
        """The config, with the dynamic settings once they are loaded."""
        return self._config if self.broker is None else self.broker.config

    def _registry_address(self) -> RegistryAddress:
        return RegistryAddress.of(self._current_config(), self._announced_registries)

    def _announced_registries(self) -> Sequence[str]:
        return () if self._coordinators is None else announced_registries(self._coordinators)

    def _call_on_loop(self, function: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(self._between_appends, function)

    def _between_appends(self, function: Callable[[], None]) -> None:
        """Call `function` while no append runs, off the loop if possible: rolling opens, renames and deletes files."""
        if self._data_plane is None:
            function()
        else:
            self._data_plane.slow_appends.submit(function)

    async def _apply(self, change: Callable[[], None]) -> None:
        """Make a change on the loop while no append runs."""
        assert self._data_plane is not None
        await self._data_plane.slow_appends.apply(change)

    def _log_manager(self, directories: list[str]) -> LogManager:
        storage, maintenance = self._config.section(StorageSettings), self._maintenance
        events = LogEvents(
            on_roll=lambda log, segment: maintenance.submit(lambda: self._finish_roll(log, segment)),
            on_flush_due=lambda log: maintenance.submit(lambda: _flush(log)),
            on_fatal=self._on_fatal,
        )
        return LogManager(
            directories,
            self._files,
            self._clock,
            events=events,
            call_on_loop=self._call_on_loop,
            truncate_corruption=storage.truncate_corruption,
            recovery_threads=storage.recovery_threads,
            producer_id_expiration_ms=storage.producer_id_expiration_ms,
        )

    def _finish_roll(self, log: PartitionLog, segment: Segment) -> None:
        log.finish_roll(segment)
        self._has_rolled = True

    def _save_recovery_points(self, logs: LogManager) -> None:
        """Save them soon after a roll: whatever lies behind those on disk is read and checked after a crash.

        The checkpoint that Kafka's settings ask for comes once a minute, in which a fast disk takes many segments.
        """
        if self._has_rolled:
            self._has_rolled = False
            logs.checkpoint_recovery_points()

    def _start_upkeep(self, logs: LogManager, started: MetadataSource) -> None:
        """Start the periodic jobs at Kafka's intervals, in the maintenance thread, and the cleaner in its threads."""
        from moldau.log.cleaning.cleaner import Cleaner, CleanerSettings

        storage, clock, every = self._config.section(StorageSettings), self._clock, self._maintenance.every
        every(
            storage.retention_check_interval_ms,
            lambda: logs.retention_round(clock.now_ms()),
            first_after_ms=storage.initial_task_delay_ms,
        )
        every(_FLUSH_ROUND_MS, lambda: logs.flush_round(clock.now_ms()))
        every(_DELETION_ROUND_MS, lambda: logs.delete_retired(clock.now_ms()))
        every(storage.checkpoint_interval_ms, logs.checkpoint)
        every(_RECOVERY_POINT_ROUND_MS, lambda: self._save_recovery_points(logs))
        every(storage.high_watermark_checkpoint_interval_ms, logs.checkpoint_high_watermarks)
        every(_SNAPSHOT_ROUND_MS, started.snapshot_round)
        every(_MANIFEST_ROUND_MS, lambda: logs.manifest_round(clock.now_ms()), first_after_ms=0)
        self._maintenance.start()
        self._cleaner = Cleaner(
            lambda: logs,
            settings=lambda: self._current_config().section(CleanerSettings),
            hand_over=self._maintenance.submit,
            files=self._files,
            clock=clock,
        )
        self._cleaner.start()

    def _start_watchdog(self, started: MetadataSource) -> None:
        data_plane = self._data_plane
        assert data_plane is not None
        self._watchdog = Watchdog(
            self._loop,
            [
                (data_plane.slow_appends.activity, "appends wait, everything else is served"),
                (started.activity, "changes of metadata wait, everything else is served"),
                (data_plane.group_commit.activity, "acknowledgements that ask for the disk wait"),
                (self._maintenance.activity, "flushes, checkpoints and retention wait"),
            ],
            on_loop_stall=data_plane.slow_appends.note_slow,
        )

    def _attach_metrics(self, broker: Broker, server: Server, started: MetadataSource) -> None:
        if self._metrics_server is None:
            return
        self._loop_monitor = LoopMonitor(self._loop)
        parts = Parts(
            broker_state=lambda: self.state,
            started_ms=self._clock.now_ms(),
            server=server,
            cleaner=lambda: self._cleaner,
            metadata_log=started.metadata_log,
            loop_monitor=self._loop_monitor,
            watchdog=self._watchdog,
        )
        attach_metrics(self._metrics, broker, parts)

    async def _start_metrics_server(self) -> None:
        """Listen on `metrics.http.port` or the environment's JMX_PORT; without either, or with port 0, do nothing."""
        settings = self._config.section(NodeSettings)
        port = settings.metrics_port
        if not port:
            return
        from moldau.server.http import MetricsServer

        self._metrics_server = MetricsServer(self._metrics, lambda: self.state, self._stalls, self._offline_reasons)
        try:
            self.metrics_port = await self._metrics_server.start(settings.metrics_host, port)
        except OSError as error:
            # Not fatal: a second broker on the machine must be able to start without an extra option.
            self._metrics_server = None
            _logger.warning(
                "metrics are off: cannot listen on port %d (%s); set metrics.http.port",
                port,
                os.strerror(error.errno) if error.errno else error,
            )

    def _offline_reasons(self) -> dict[str, str]:
        """Partitions that cannot be used, each with its reason. Called in the metrics server's thread."""
        offline = [] if self.broker is None else self.broker.partitions.offline()
        return {str(one.topic_partition): str(one.offline_error) for one in offline}

    def _stalls(self) -> tuple[bool, list[Stall]]:
        """Whether the loop hangs, and everything that hangs. Called in the metrics server's thread."""
        watchdog = self._watchdog
        return (False, []) if watchdog is None else (watchdog.is_loop_stuck, watchdog.stalls())

    async def stop(self) -> None:
        """Send pending replies, write everything to disk, and write the clean-shutdown marker."""
        if self.state == BrokerState.NOT_RUNNING:
            return
        was_running = self.state == BrokerState.RUNNING
        self.state = BrokerState.SHUTTING_DOWN
        await self._leave_cluster()
        if self._server is not None:
            self._server.drain()
        if self._coordinators is not None:
            self._coordinators.close()
        if self._offline is not None:
            await self._offline.close()
        if self._data_plane is not None:
            await self._data_plane.close()
        self._schema_ids.close()
        if self._server is not None:
            # One iteration of the loop, to send the replies that waited for the last sync.
            await asyncio.sleep(0.01)
            self._server.close()
        if self._cleaner is not None:
            await self._loop.run_in_executor(None, self._cleaner.stop)
        await self._loop.run_in_executor(None, self._maintenance.stop)
        if self._loop_monitor is not None:
            self._loop_monitor.stop()
        if self._watchdog is not None:
            await self._loop.run_in_executor(None, self._watchdog.stop)
        if self._metrics_server is not None:
            await self._metrics_server.close()
        if self._descriptors is not None:
            self._descriptors.close()
        await self._close_metadata()
        if self._logs is not None:
            await self._loop.run_in_executor(None, self._logs.close if was_running else self._logs.abandon)
        self.state = BrokerState.NOT_RUNNING
        if was_running:
            _logger.info("[KafkaServer id=%d] shut down completed", self._config.node_id)

    async def _leave_cluster(self) -> None:
        """Tell others that this node stops, while it still serves."""

    async def _close_metadata(self) -> None:
        if self._controller is not None:
            await self._loop.run_in_executor(None, self._controller.close)


def directory_ids(identities: Mapping[str, MetaProperties], log_dirs: Sequence[str]) -> list[uuid.UUID]:
    own = [identities[path].directory_id for path in identities if path in log_dirs]
    return [directory_id for directory_id in own if directory_id is not None]


def _flush(log: PartitionLog) -> None:
    log.flush()


def refuse(connection: Connection, view: memoryview, start: int, end: int) -> Handled:
    raise CloseConnectionError("the broker is not ready yet")
