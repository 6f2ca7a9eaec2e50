"""Runs one node as a process: limits, logging, garbage collection, signals, exit status. Start at `run`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.core.config import BrokerConfig
from moldau.core.config.sections import NodeSettings
from moldau.core.errors import StartupError
from moldau.server.directories import has_id, node_id_for
from moldau.server.process.descriptors import raise_limit
from moldau.server.process.garbage import settle_garbage_collection
from moldau.server.process.late_imports import keep_imports_possible
from moldau.server.process.log_output import configure_logging
from moldau.server.process.running import announce

if TYPE_CHECKING:
    from moldau.server.cluster.controller_node import ControllerNode
    from moldau.server.node import Node

__all__ = ["check", "node_class", "run", "stop_at_once"]

_logger = logging.getLogger("moldau.server")


def check(settings: Mapping[str, str]) -> BrokerConfig:
    """Parse and check the settings; raises an error with a one-line message."""
    config = BrokerConfig(settings)
    return config if config.node_id >= 0 else BrokerConfig(settings, node_id=node_id_for(config))


def _with_id(settings: Mapping[str, str]) -> BrokerConfig:
    """The checked settings; a broker without an id takes that of its folder, else an unused one of its cluster."""
    config = BrokerConfig(settings)
    if config.node_id >= 0 or has_id(config):
        return check(settings)
    from moldau.server.cluster.finder import unused_id

    return BrokerConfig(settings, node_id=unused_id(config))


def run(settings: Mapping[str, str], *, may_format: bool, log_format: str) -> int:
    """Run until a stop signal; returns the exit status."""
    configure_logging(log_format)
    config = _with_id(settings)
    for warning in config.warnings:
        _logger.warning(warning)
    raise_limit()
    keep_imports_possible()
    import uvloop

    with announce(config.node_id, tuple(config.section(NodeSettings).roles or ("broker", "controller"))):
        return uvloop.run(_serve(config, may_format=may_format))


def stop_at_once(error: BaseException) -> None:
    """After a failed fsync the content of the disk is unknown: exit at once, and let recovery check it."""
    _logger.critical("stopping at once: %s", error)
    logging.shutdown()
    os._exit(1)


def node_class(config: BrokerConfig) -> type[Node]:
    """The kind of broker that the settings ask for; imported here, because no process needs every kind."""
    if config.is_in_cluster:
        from moldau.server.cluster.broker_node import ClusterNode

        return ClusterNode
    from moldau.server.node import Node

    return Node


def _new_node(config: BrokerConfig, *, may_format: bool) -> Node | ControllerNode:
    if config.section(NodeSettings).roles == ["controller"]:
        from moldau.server.cluster.controller_node import ControllerNode

        return ControllerNode(config, may_format=may_format, on_fatal=stop_at_once)
    return node_class(config)(config, may_format=may_format, on_fatal=stop_at_once)


async def _serve(config: BrokerConfig, *, may_format: bool) -> int:
    loop = asyncio.get_running_loop()
    stop = loop.create_future()

    def request_stop(name: str) -> None:
        _logger.info("received %s, shutting down", name)
        node.give_up_start()
        if not stop.done():
            stop.set_result(0)

    node = _new_node(config, may_format=may_format)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, request_stop, number.name)
    try:
        await node.start()
    except StartupError:
        await node.stop()
        if stop.done():
            return 0
        raise
    settle_garbage_collection()
    status: Any = await stop
    await node.stop()
    return int(status)
