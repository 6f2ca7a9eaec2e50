"""`moldau ksql-server` and `ksql-server-start`: run a ksql server in the foreground. Start at `moldau_ksql_server`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from moldau.cli.command_line import CommandParser
from moldau.cli.server.background import start_in_background
from moldau.cli.server.starting import (
    HELP_WORDS,
    add_check_and_log,
    add_file_and_overrides,
    daemon_and_rest,
    fail,
    gather_service_settings,
    overrides_in,
    service_listener,
)
from moldau.core.errors import MoldauError
from moldau.ksql.settings import DEFAULT_PORT, KsqlSettings

__all__ = ["ksql_server_start", "moldau_ksql_server", "parser"]

ROLE = "ksql-server"
PREFIX = "KSQL_"

_USAGE = """\
USAGE: ksql-server-start [-daemon] [ksql-server.properties] [--queries-file FILE] [--override property=value]*

Runs a ksql server over the brokers that bootstrap.servers names (localhost:9092 unless told), on the address that
listeners names: every interface and port 8088 unless the file tells, this machine alone without a file. SIGTERM or
ksql-server-stop ends it. With a file of queries it runs these, and takes no statements from clients."""


def moldau_ksql_server(arguments: Sequence[str] | None = None) -> int:
    """Run a server; a file, the environment and options set its address, brokers and registry."""
    options = parser().parse_args(arguments)
    overrides = list(options.override)
    if options.host is not None or options.port is not None:
        port = DEFAULT_PORT if options.port is None else options.port
        overrides.append(f"listeners={service_listener(options.file, options.host, port)}")
    if options.bootstrap_server is not None:
        overrides.append(f"bootstrap.servers={options.bootstrap_server}")
    if options.schema_registry is not None:
        overrides.append(f"ksql.schema.registry.url={options.schema_registry}")
    if options.queries_file is not None:
        overrides.append(f"ksql.queries.file={options.queries_file}")
    if options.data is not None:
        overrides.append(f"ksql.streams.state.dir={options.data}")
    return _run(options.file, overrides, check_only=options.check_config, log_format=options.log_format)


def ksql_server_start(arguments: Sequence[str] | None = None) -> int:
    """Run a server as ksqlDB's script does: a properties file, then overrides."""
    in_background, words = daemon_and_rest(arguments)
    if words and words[0] in HELP_WORDS:
        print(_USAGE)
        return 0
    if in_background:
        return start_in_background("moldau.cli.ksql.server_start", words, "ksql-server.out")
    file = Path(words.pop(0)) if words and not words[0].startswith("-") else None
    if "--queries-file" in words[:-1]:
        place = words.index("--queries-file")
        words[place : place + 2] = [f"ksql.queries.file={words[place + 1]}"]
    return _run(file, overrides_in(words), check_only=False, log_format="text")


def _run(file: Path | None, overrides: Sequence[str], *, check_only: bool, log_format: str) -> int:
    try:
        settings = KsqlSettings.of(
            gather_service_settings(file, os.environ, overrides, prefix=PREFIX, default_port=DEFAULT_PORT)
        )
        for warning in settings.warnings:
            print(f"moldau: {warning}", file=sys.stderr)
        if check_only:
            print("The configuration is valid.")
            return 0
        return _serve(settings, log_format)
    except MoldauError as error:
        return fail(error)


def _serve(settings: KsqlSettings, log_format: str) -> int:
    from moldau.server.ksql import ksql_instance
    from moldau.server.services import run_services

    return run_services(lambda: [ksql_instance(settings)], roles=(ROLE,), log_format=log_format)


def parser() -> CommandParser:
    made = CommandParser(
        prog="moldau ksql-server",
        description="Run a ksql server: streaming SQL over topics, in the words of ksqlDB, on Spark. Without\n"
        "arguments it listens on port 8088 of this machine, over the brokers at localhost:9092.",
        epilog="examples:\n"
        "  moldau ksql-server\n"
        "  moldau ksql-server --schema-registry http://localhost:8081\n"
        "  moldau ksql-server --port 18088 --bootstrap-server localhost:19092 --data ./ksql-state\n"
        "  moldau ksql-server ksql-server.properties --override ksql.service.id=team_a_\n\n"
        "then, in another terminal:\n"
        "  ksql\n"
        '  curl -X POST localhost:8088/ksql --data \'{"ksql": "SHOW STREAMS;"}\'\n',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_file_and_overrides(made, file_help="a ksql-server.properties file")
    made.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="the brokers that hold the topics")
    made.add_argument("--schema-registry", metavar="URL", help="the registry of AVRO, PROTOBUF and JSON_SR")
    made.add_argument(
        "--queries-file", metavar="FILE", help="run the statements of this file, and take none from clients"
    )
    made.add_argument("--data", metavar="FOLDER", help="where the state of queries is kept")
    made.add_argument(
        "--host",
        help="listen on this address (0.0.0.0 for every interface; default: this machine only, without a file)",
    )
    made.add_argument("--port", type=int, help="listen on this port (0 picks a free one and says which)")
    add_check_and_log(made)
    return made


if __name__ == "__main__":
    sys.exit(ksql_server_start())
