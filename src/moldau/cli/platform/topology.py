"""`moldau topology`: the pipelines of a platform as one graph, from the sources of connectors to the sinks.

Each service tells its own pipelines at `/topology`; this command asks them and puts the answers together. Start at
`main`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from moldau.cli.command_line import CommandParser
from moldau.cli.platform.up import add_data, platform_folder
from moldau.cli.sub_commands import command_parser, run_command
from moldau.cli.tool import ToolError
from moldau.core.graphs import merged, mermaid
from moldau.server.platform.status_file import load_status

__all__ = ["main", "parser"]

PIPELINES = ("connect", "ksql")
"""The services of a platform that run pipelines."""
TIMEOUT_S = 15.0


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, _topology)


def _topology(options: argparse.Namespace) -> int:
    graph = merged(_graph_at(url) for url in [*_of_platform(options), *options.urls])
    if not graph["nodes"]:
        print("No pipeline runs yet: start a connector or a query, or name the URL of an application.", file=sys.stderr)
    print(json.dumps(graph, indent=2) if options.output == "json" else mermaid(graph), end="")
    return 0


def _of_platform(options: argparse.Namespace) -> list[str]:
    """The services that run; none if only others are asked for."""
    folder = platform_folder(options)
    status = load_status(folder)
    services = {} if status is None else status.services
    found = [f"http://{services[name].address}" for name in PIPELINES if name in services and services[name].process]
    if not found and not options.urls:
        raise ToolError(
            f"neither Connect nor ksql runs in {folder}; start them with `moldau up`, or name the URL of an application"
        )
    return found


def _graph_at(url: str) -> Any:
    target = f"{url if '://' in url else f'http://{url}'}".rstrip("/")
    request = urllib.request.Request(f"{target}/topology", headers={"accept": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            document = json.load(answer)
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise ToolError(f"{target}/topology does not answer: {reason}") from None
    if not isinstance(document, dict) or not {"nodes", "edges"} <= document.keys():
        raise ToolError(f"{target}/topology is not a graph: this is not a service of moldau that runs pipelines")
    return document


def parser() -> CommandParser:
    made = command_parser(
        "topology",
        "Draw all pipelines as one graph: connectors, queries and applications, and the topics between them.\n"
        "The diagram is Mermaid's, which Markdown pages and https://mermaid.live show.",
        [
            "moldau topology                            # Connect and ksql of `moldau up`",
            "moldau topology http://localhost:7070      # and a Streams application with application.server",
            "moldau topology -o json",
        ],
    )
    made.add_argument("urls", nargs="*", metavar="URL", help="further services: Streams applications, other platforms")
    made.add_argument("-o", "--output", choices=("mermaid", "json"), default="mermaid", help="how to show it")
    add_data(made)
    return made
