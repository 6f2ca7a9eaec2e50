"""kafka-cluster: shows the cluster's id and its endpoints, and unregisters brokers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from moldau.cli.cluster.controllers import CONTROLLERS, open_controller
from moldau.cli.cluster_options import report_client_log
from moldau.cli.tool import run_body, say
from moldau.client.admin import Admin, Node
from moldau.client.connection import load_properties
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    if not words:
        parser.print_help()
        return 1
    options = parser.parse_args(words)
    return run_body(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    properties = load_properties(options.config) if options.config else {}
    if options.bootstrap_controller:
        _ask_controllers(options, properties)
        return
    admin = Admin(options.bootstrap_server, properties, report=report_client_log)
    if options.action == "cluster-id":
        cluster_id = admin.describe_cluster().cluster_id
        say(f"Cluster ID: {cluster_id}" if cluster_id else "The cluster has no id: its brokers are too old.")
    elif options.action == "list-endpoints":
        _list_endpoints(admin)
    elif options.action == "api-versions":
        from moldau.cli.cluster.api_versions import api_lines

        for node in admin.describe_cluster().nodes:
            with admin.wire(node.id) as client:
                say("\n".join(api_lines(node, client.api_versions())))
    else:
        from moldau.client.wire_admin import unregister_broker

        with admin.wire() as client:
            unregister_broker(client, options.id)
        say(f"Broker {options.id} is no longer registered.")


def _list_endpoints(admin: Admin) -> None:
    nodes = admin.describe_cluster().nodes
    host_width = max((len(node.host) for node in nodes), default=0)
    layout = f"{{:<10}} {{:<{host_width}}} {{:<10}} {{:<10}} {{:<10}} {{:<15}}"
    say(layout.format("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"))
    for node in nodes:
        say(layout.format(node.id, node.host, node.port, node.rack or "null", "unfenced", "broker"))


def _ask_controllers(options: argparse.Namespace, properties: dict[str, str]) -> None:
    with open_controller(options, properties) as client:
        question = Message(
            include_cluster_authorized_operations=False, endpoint_type=CONTROLLERS, include_fenced_brokers=False
        )
        cluster = client.send(ApiKey.DESCRIBE_CLUSTER, question)
        if options.action == "cluster-id":
            say(f"Cluster ID: {cluster.cluster_id}")
        elif options.action == "list-endpoints":
            host_width = max((len(one.host) for one in cluster.brokers), default=0)
            layout = f"{{:<10}} {{:<{host_width}}} {{:<10}} {{:<10}} {{:<15}}"
            say(layout.format("ID", "HOST", "PORT", "RACK", "ENDPOINT_TYPE"))
            for one in sorted(cluster.brokers, key=lambda each: each.broker_id):
                say(layout.format(one.broker_id, one.host, one.port, one.rack or "null", "controller"))
        elif options.action == "api-versions":
            from moldau.cli.cluster.api_versions import api_lines

            node = Node(cluster.controller_id, client.host, client.port)
            say("\n".join(api_lines(node, client.api_versions())))
        else:
            from moldau.client.wire_admin import unregister_broker

            unregister_broker(client, options.id)
            say(f"Broker {options.id} is no longer registered.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-cluster", description="Ask for the cluster's id and endpoints, or unregister a broker."
    )
    actions = parser.add_subparsers(dest="action", required=True)
    helps = {
        "cluster-id": "show the cluster's id",
        "unregister": "forget a broker that will not come back",
        "list-endpoints": "show where brokers listen",
        "api-versions": "show which requests the brokers understand",
    }
    for name, text in helps.items():
        action = actions.add_parser(name, help=text, description=text)
        target = action.add_mutually_exclusive_group(required=True)
        target.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="brokers of the cluster")
        target.add_argument("-C", "--bootstrap-controller", metavar="HOST:PORT", help="controllers of the cluster")
        action.add_argument("-c", "--config", "--command-config", metavar="FILE", help="client properties")
        if name == "unregister":
            action.add_argument("-i", "--id", type=int, required=True, help="the broker's id")
        if name == "list-endpoints":
            action.add_argument("--include-fenced-brokers", action="store_true", help="also brokers that are fenced")
    return parser


if __name__ == "__main__":
    sys.exit(main())
