"""`moldau connect`: a worker without a file. Start at `main`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.command_line import CommandParser
from moldau.cli.connect.worker_start import DISTRIBUTED_DEFAULTS, run_worker
from moldau.cli.server.starting import add_check_and_log, add_file_and_overrides, fail
from moldau.connect.worker.settings import DEFAULT_PORT, WorkerSettings
from moldau.core.errors import MoldauError
from moldau.http.tls import listener_context
from moldau.server.config import load_file, parse_overrides

__all__ = ["main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a worker; a file and options set its address, brokers and topics."""
    options = parser().parse_args(arguments)
    try:
        given = dict(DISTRIBUTED_DEFAULTS) | (load_file(options.file) if options.file is not None else {})
        if options.bootstrap_server is not None:
            given["bootstrap.servers"] = options.bootstrap_server
        if options.host is not None or options.port is not None:
            port = DEFAULT_PORT if options.port is None else options.port
            given["listeners"] = f"http://{options.host or '127.0.0.1'}:{port}"
        if options.data is not None:
            given["moldau.connect.state.dir"] = options.data
        settings = WorkerSettings.of(given | parse_overrides(options.override), standalone=False)
        if options.check_config:
            listener_context(settings.listener, settings.listener_tls)
            print("The configuration is valid.")
            return 0
        return run_worker(settings, log_format=options.log_format)
    except MoldauError as error:
        return fail(error)


def parser() -> CommandParser:
    made = CommandParser(
        prog="moldau connect",
        description="Run a Connect worker: data in and out of topics by configuration, in the words of Kafka\n"
        "Connect, on Spark. Without arguments it listens on port 8083 of this machine, over the\n"
        "brokers at localhost:9092. Workers with the same group.id share the work.",
        epilog="examples:\n"
        "  moldau connect\n"
        "  moldau connect --port 18083 --bootstrap-server localhost:19092\n"
        "  moldau connect connect-distributed.properties --override group.id=team-a\n\n"
        "then, in another terminal:\n"
        "  curl localhost:8083/connectors\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_file_and_overrides(made, file_help="a connect-distributed.properties file")
    made.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="the brokers that hold the topics")
    made.add_argument("--data", metavar="FOLDER", help="where the engine process has its files")
    made.add_argument("--host", help="listen on this address (0.0.0.0 for every interface; default: this machine only)")
    made.add_argument("--port", type=int, help="listen on this port (0 picks a free one and says which)")
    add_check_and_log(made)
    return made
