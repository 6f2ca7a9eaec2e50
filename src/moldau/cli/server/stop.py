"""`kafka-server-stop`: ask the servers of this user to shut down in good order."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from moldau.server.process.running import RunningServer, running_servers

__all__ = ["choose_servers", "kafka_server_stop", "stop_all"]

KAFKA_ROLES = frozenset({"broker", "controller"})


def kafka_server_stop(arguments: Sequence[str] | None = None) -> int:
    """Send SIGTERM to each matching server; each then drains, writes its checkpoints and leaves."""
    parser = argparse.ArgumentParser(prog="kafka-server-stop", description=__doc__, allow_abbrev=False)
    parser.add_argument("--process-role", choices=("broker", "controller"), help="only servers with this role")
    parser.add_argument("--node-id", type=int, help="only the server with this node id")
    options = parser.parse_args(arguments)
    servers = choose_servers(running_servers(), process_role=options.process_role, node_id=options.node_id)
    return stop_all(servers, "kafka server")


def stop_all(servers: Sequence[RunningServer], what: str) -> int:
    """Send SIGTERM to each; it is a failure where there is none."""
    if not servers:
        print(f"No {what} to stop", file=sys.stderr)
        return 1
    for server in servers:
        os.kill(server.pid, signal.SIGTERM)
    return 0


def choose_servers(
    servers: Sequence[RunningServer], *, process_role: str | None, node_id: int | None
) -> list[RunningServer]:
    """The brokers and controllers that match; a node id is more exact than a role and wins over it, as in Kafka."""
    servers = [server for server in servers if KAFKA_ROLES & set(server.process_roles)]
    if node_id is not None:
        return [server for server in servers if server.node_id == node_id]
    if process_role is not None:
        return [server for server in servers if process_role in server.process_roles]
    return servers
