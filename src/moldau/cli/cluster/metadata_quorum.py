"""kafka-metadata-quorum: who leads and who votes in the metadata quorum, and changes of its voters. Start at `main`."""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import moldau
from moldau.cli.cluster.controllers import open_controller, open_node
from moldau.cli.tool import ToolError, run_body, say
from moldau.cli.transactions.tables import table_lines
from moldau.client.connection import load_properties
from moldau.client.replica_admin import Quorum, QuorumReplica, add_voter, describe_quorum, remove_voter
from moldau.core.config import BrokerConfig
from moldau.core.ids import parse_uuid, render_uuid
from moldau.core.properties import parse_properties
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["main"]

COLUMNS = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    return run_body(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    properties = load_properties(options.command_config) if options.command_config else {}
    actions = {"describe": _describe, "add-controller": _add, "remove-controller": _remove}
    actions[options.action](options, properties)


# Describing


def _describe(options: argparse.Namespace, properties: dict[str, str]) -> None:
    with open_node(options, properties) as client:
        quorum = describe_quorum(client)
        question = Message(
            include_cluster_authorized_operations=False,
            endpoint_type=2 if options.bootstrap_controller else 1,
            include_fenced_brokers=False,
        )
        cluster_id = client.send(ApiKey.DESCRIBE_CLUSTER, question).cluster_id
    lines = _status(cluster_id, quorum) if options.status else _replication(quorum, options.human_readable)
    say("\n".join(lines))


def _status(cluster_id: str, quorum: Quorum) -> list[str]:
    leader = next(one for one in quorum.voters if one.id == quorum.leader_id)
    last = min(quorum.voters, key=lambda one: one.end_offset)
    lag_ms = -1
    if last is leader:
        lag_ms = 0
    elif leader.last_caught_up_ms >= 0 and last.last_caught_up_ms >= 0:
        lag_ms = leader.last_caught_up_ms - last.last_caught_up_ms
    facts = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.end_offset - last.end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _nodes(quorum.voters, quorum),
        "CurrentObservers": _nodes(quorum.observers, quorum),
    }
    return [f"{name + ':':<24}{value}" for name, value in facts.items()]


def _nodes(replicas: Sequence[QuorumReplica], quorum: Quorum) -> str:
    found = []
    for one in replicas:
        endpoints = [f'"{name}://{host}:{port}"' for name, host, port in quorum.endpoints.get(one.id, ())]
        directory = f', "directoryId": "{render_uuid(one.directory_id)}"' if one.directory_id is not None else ""
        listed = f', "endpoints": [{", ".join(endpoints)}]' if endpoints else ""
        found.append(f'{{"id": {one.id}{directory}{listed}}}')
    return f"[{', '.join(found)}]"


def _replication(quorum: Quorum, is_relative: bool) -> list[str]:
    leader = next(one for one in quorum.voters if one.id == quorum.leader_id)
    now_ms = int(time.time() * 1000)

    def at(moment_ms: int) -> str:
        return f"{now_ms - moment_ms} ms ago" if is_relative and moment_ms >= 0 else str(moment_ms)

    followers = [one for one in quorum.voters if one is not leader]
    kinds = (("Leader", [leader]), ("Follower", followers), ("Observer", quorum.observers))
    rows = [
        (
            str(one.id),
            render_uuid(one.directory_id or NO_DIRECTORY),
            str(one.end_offset),
            str(leader.end_offset - one.end_offset),
            at(one.last_fetch_ms),
            at(one.last_caught_up_ms),
            kind,
        )
        for kind, replicas in kinds
        for one in replicas
    ]
    return table_lines(COLUMNS, rows)


NO_DIRECTORY = parse_uuid("AAAAAAAAAAAAAAAAAAAAAA")


# Changing voters


def _add(options: argparse.Namespace, properties: dict[str, str]) -> None:
    if not options.command_config:
        raise ToolError(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    config = BrokerConfig(parse_properties(Path(options.command_config).read_text(encoding="utf-8")))
    if "controller" not in config.value("process.roles"):
        raise ToolError("The configuration file is not that of a controller: process.roles does not contain controller")
    folder = config.value("metadata.log.dir") or config.value("log.dirs")[0]
    try:
        meta = parse_properties((Path(folder) / "meta.properties").read_text(encoding="utf-8"))
        directory_id = parse_uuid(meta["directory.id"])
    except (OSError, KeyError, ValueError) as error:
        raise ToolError(f"{folder} has no meta.properties with a directory.id: format it first ({error})") from None
    endpoints = [
        (one.name, one.host or socket.gethostname(), one.port)
        for one in config.listeners
        if one.name in config.controller_listener_names
    ]
    if not endpoints:
        raise ToolError("listeners: there is none that controller.listener.names names")
    if not options.dry_run:
        with open_controller(options, properties) as client:
            add_voter(client, config.node_id, directory_id, endpoints)
    listed = ", ".join(f"{name}://{host}:{port}" for name, host, port in endpoints)
    done = "DRY RUN of adding" if options.dry_run else "Added"
    say(f"{done} controller {config.node_id} with directory id {render_uuid(directory_id)} and endpoints: {listed}")


def _remove(options: argparse.Namespace, properties: dict[str, str]) -> None:
    if options.controller_id < 0:
        raise ToolError("Invalid negative --controller-id: " + str(options.controller_id))
    try:
        directory_id = parse_uuid(options.controller_directory_id)
    except ValueError:
        raise ToolError(f"Failed to parse --controller-directory-id: {options.controller_directory_id}") from None
    if not options.dry_run:
        with open_controller(options, properties) as client:
            remove_voter(client, options.controller_id, directory_id)
    done = "DRY RUN of removing " if options.dry_run else "Removed "
    say(f"{done} KRaft controller {options.controller_id} with directory id {render_uuid(directory_id)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-metadata-quorum", description="See how the metadata quorum stands, and change its voters."
    )
    parser.add_argument("-v", "--version", action="version", version=f"{moldau.__version__} (moldau)")
    parser.add_argument("--command-config", metavar="FILE", help="client properties; the controller's file to add one")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers of the cluster")
    target.add_argument("--bootstrap-controller", metavar="HOST:PORT", help="controllers of the cluster")
    actions = parser.add_subparsers(dest="action", metavar="COMMAND", required=True)

    describing = actions.add_parser("describe", help="how the quorum stands")
    what = describing.add_mutually_exclusive_group(required=True)
    what.add_argument("--status", action="store_true", help="the leader, the voters and their lag in short")
    what.add_argument("--replication", "--re", action="store_true", help="how far each node is")
    describing.add_argument("--human-readable", "--hr", action="store_true", help="times as how long ago they were")

    adding = actions.add_parser("add-controller", help="make a running controller a voter")
    adding.add_argument("--dry-run", action="store_true", help="only say what would be done")
    removing = actions.add_parser("remove-controller", help="make a voter an observer again")
    removing.add_argument("-i", "--controller-id", type=int, required=True, metavar="ID", help="its node id")
    removing.add_argument(
        "-d", "--controller-directory-id", required=True, metavar="ID", help="its directory id, which describe tells"
    )
    removing.add_argument("--dry-run", action="store_true", help="only say what would be done")
    return parser


if __name__ == "__main__":
    sys.exit(main())
