"""Connections of tools that may be given brokers (`--bootstrap-server`) or controllers (`--bootstrap-controller`).

Start at `open_node`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from moldau.cli.cluster_options import report_client_log
from moldau.cli.tool import ToolError
from moldau.client.admin import Admin
from moldau.client.connection import normalize_servers
from moldau.client.replica_admin import describe_quorum
from moldau.client.wire import WireClient, wire_security
from moldau.core.errors import MoldauError
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["CONTROLLERS", "open_controller", "open_node"]

TIMEOUT_S = 30.0
CONTROLLERS = 2


def open_node(options: argparse.Namespace, properties: Mapping[str, str]) -> WireClient:
    """A broker, which forwards what controllers answer, or the leader of the controllers."""
    if options.bootstrap_server:
        servers = normalize_servers(options.bootstrap_server)
        return Admin(servers, properties, report=report_client_log).wire()
    return open_controller(options, properties)


def open_controller(options: argparse.Namespace, properties: Mapping[str, str]) -> WireClient:
    """The controller that leads; given brokers, they say where it is."""
    tls, mechanism = wire_security(properties)
    if options.bootstrap_server:
        with open_node(options, properties) as broker:
            quorum = describe_quorum(broker)
        at = quorum.endpoints.get(quorum.leader_id)
        if not at:
            raise ToolError("the brokers do not say where the controllers are; give --bootstrap-controller")
        return WireClient(at[0][1], at[0][2], TIMEOUT_S, tls=tls, mechanism=mechanism)
    question = Message(
        include_cluster_authorized_operations=False, endpoint_type=CONTROLLERS, include_fenced_brokers=False
    )
    trouble: MoldauError | None = None
    for server in normalize_servers(options.bootstrap_controller).split(","):
        host, _, port = server.rpartition(":")
        try:
            client = WireClient(host.strip("[]"), int(port), TIMEOUT_S, tls=tls, mechanism=mechanism)
            cluster = client.send(ApiKey.DESCRIBE_CLUSTER, question)
        except MoldauError as error:
            trouble = error
            continue
        leader = next((one for one in cluster.brokers if one.broker_id == cluster.controller_id), None)
        if leader is None or len(cluster.brokers) == 1:
            return client  # what a lone controller calls itself may mean nothing here
        client.close()
        return WireClient(leader.host, leader.port, TIMEOUT_S, tls=tls, mechanism=mechanism)
    raise trouble or ToolError(f"no controller answers at {options.bootstrap_controller}")
