"""Rules between settings: combinations that are wrong although each value alone is fine.

Start at `check_together`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.core.errors import InvalidConfigError

if TYPE_CHECKING:
    from moldau.core.config.broker_config import BrokerConfig

__all__ = ["check_together"]

NOT_ABOVE = [
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
]
"""Pairs of which the first must not exceed the second."""


def check_together(config: BrokerConfig) -> None:
    """Raise `InvalidConfigError` for the first broken rule."""
    _check_identity(config)
    _check_order(config)
    _check_listeners(config)
    _check_folders(config)


def _check_identity(config: BrokerConfig) -> None:
    node_id, broker_id = config.static.get("node.id"), config.static.get("broker.id")
    if node_id is not None and broker_id is not None and node_id.strip() != broker_id.strip():
        raise InvalidConfigError(f"node.id={node_id} and broker.id={broker_id} differ; keep one of them")
    _check_quorum(config)


def _check_quorum(config: BrokerConfig) -> None:
    """A single node is its own quorum and needs no controller listener; one that names other controllers does."""
    voters, servers = config.value("controller.quorum.voters"), config.value("controller.quorum.bootstrap.servers")
    if config.value("process.roles") and (voters or servers) and not config.controller_listener_names:
        raise InvalidConfigError("controller.listener.names must say which listener is the controllers'")
    for voter in voters:
        node_id, at, address = voter.partition("@")
        host, colon, port = address.rpartition(":")
        if not (at and colon and host and node_id.isdigit() and port.isdigit()):
            raise InvalidConfigError(f"controller.quorum.voters: {voter!r} is not of the form id@host:port")


def _check_order(config: BrokerConfig) -> None:
    for lower, upper in NOT_ABOVE:
        if config.value(lower) > config.value(upper):
            raise InvalidConfigError(f"{lower}={config.value(lower)} must not be above {upper}={config.value(upper)}")
    if config.value("broker.heartbeat.interval.ms") * 2 > config.value("broker.session.timeout.ms"):
        raise InvalidConfigError("broker.session.timeout.ms must be at least twice broker.heartbeat.interval.ms")
    queued, largest = config.value("queued.max.request.bytes"), config.value("socket.request.max.bytes")
    if 0 < queued < largest:
        raise InvalidConfigError(
            f"queued.max.request.bytes={queued} must not be below socket.request.max.bytes={largest}"
        )


def _check_listeners(config: BrokerConfig) -> None:
    listeners, protocols = config.listeners, config.security_protocols
    if not listeners:
        raise InvalidConfigError("listeners must not be empty")
    for listener in (*listeners, *config.advertised_listeners):
        if listener.name not in protocols:
            raise InvalidConfigError(
                f"listener.security.protocol.map does not say which protocol listener {listener.name} speaks"
            )
    names = {listener.name for listener in listeners}
    unknown = [listener.name for listener in config.advertised_listeners if listener.name not in names]
    if unknown:
        raise InvalidConfigError(f"advertised.listeners names {', '.join(unknown)}, which listeners does not have")
    if config.is_set("inter.broker.listener.name") and config.is_set("security.inter.broker.protocol"):
        raise InvalidConfigError("set inter.broker.listener.name or security.inter.broker.protocol, not both")


def _check_folders(config: BrokerConfig) -> None:
    folders = config.value("log.dirs")
    if not folders or not all(folders):
        raise InvalidConfigError("log.dirs must name at least one folder")
    if len(set(folders)) != len(folders):
        raise InvalidConfigError(f"log.dirs names a folder twice: {', '.join(folders)}")
