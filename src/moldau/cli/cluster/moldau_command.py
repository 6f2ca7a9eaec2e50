"""`moldau cluster`: the cluster's id, its brokers, and the APIs they support."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.command_line import CommandParser
from moldau.cli.sub_commands import add_connection, admin_for, command_parser, run_command, screen_for

__all__ = ["main", "parser"]


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, _cluster)


def parser() -> CommandParser:
    made = command_parser(
        "cluster",
        "Show the cluster's id and brokers, or the requests they understand.",
        ["moldau cluster", "moldau cluster --apis", "moldau cluster -b broker1:9092 -o json"],
    )
    made.add_argument("--apis", action="store_true", help="the versions of each request a broker understands")
    add_connection(made)
    return made


def _cluster(options: argparse.Namespace) -> None:
    admin, screen = admin_for(options), screen_for(options)
    if options.apis:
        _apis(options)
        return
    cluster = admin.describe_cluster()
    if screen.is_json:
        nodes = [{"id": n.id, "host": n.host, "port": n.port, "rack": n.rack} for n in cluster.nodes]
        screen.document({"cluster_id": cluster.cluster_id, "controller": cluster.controller_id, "brokers": nodes})
        return
    screen.note(f"cluster {cluster.cluster_id}")
    rows = [
        (n.id, f"{n.host}:{n.port}", n.rack, "controller" if n.id == cluster.controller_id else "")
        for n in cluster.nodes
    ]
    screen.table(("Broker", "Address", "Rack", "Role"), rows)


def _apis(options: argparse.Namespace) -> None:
    from moldau.protocol.api import APIS, ApiKey

    with admin_for(options).wire() as client:
        offered = client.api_versions()
    rows = [
        (key, ApiKey(key).display_name if key in APIS else "unknown", low, high)
        for key, (low, high) in sorted(offered.items())
    ]
    screen_for(options).table(("Key", "Request", "From", "To"), rows)
