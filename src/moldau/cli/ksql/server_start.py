"""`moldau ksql-server` and `ksql-server-start`: run a ksql server in the foreground. Start at `moldau_ksql_server`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from moldau.cli.command_line import CommandParser
from moldau.cli.server.service_command import ServiceCommand
from moldau.ksql.settings import DEFAULT_PORT, KsqlSettings

__all__ = ["COMMAND", "ksql_server_start", "moldau_ksql_server", "parser"]

ROLE = "ksql-server"

_USAGE = """\
USAGE: ksql-server-start [-daemon] [ksql-server.properties] [--queries-file FILE] [--override property=value]*

Runs a ksql server over the brokers that bootstrap.servers names (localhost:9092 unless told), on the address that
listeners names: every interface and port 8088 unless the file tells, this machine alone without a file. SIGTERM or
ksql-server-stop ends it. With a file of queries it runs these, and takes no statements from clients."""


def moldau_ksql_server(arguments: Sequence[str] | None = None) -> int:
    """Run a server; a file, the environment and options set its address, brokers and registry."""
    return COMMAND.run_with_options(parser().parse_args(arguments))


def ksql_server_start(arguments: Sequence[str] | None = None) -> int:
    """Run a server as ksqlDB's script does: a properties file, then overrides."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if "--queries-file" in words[:-1]:
        place = words.index("--queries-file")
        words[place : place + 2] = ["--override", f"ksql.queries.file={words[place + 1]}"]
    return COMMAND.run_as_script(words)


def _build(settings: KsqlSettings) -> Any:
    from moldau.server.services.ksql import ksql_instance

    return ksql_instance(settings)


COMMAND = ServiceCommand(
    role=ROLE,
    module="moldau.cli.ksql.server_start",
    usage=_USAGE,
    prefix="KSQL_",
    default_port=DEFAULT_PORT,
    option_keys={
        "bootstrap_server": "bootstrap.servers",
        "schema_registry": "ksql.schema.registry.url",
        "queries_file": "ksql.queries.file",
        "data": "ksql.streams.state.dir",
    },
    settings_of=KsqlSettings.of,
    build=_build,
)


def parser() -> CommandParser:
    made = ServiceCommand.parser(
        "moldau ksql-server",
        "Run a ksql server: streaming SQL over topics, in the words of ksqlDB, on Spark. Without\n"
        "arguments it listens on port 8088 of this machine, over the brokers at localhost:9092.",
        "examples:\n"
        "  moldau ksql-server\n"
        "  moldau ksql-server --schema-registry http://localhost:8081\n"
        "  moldau ksql-server --port 18088 --bootstrap-server localhost:19092 --data ./ksql-state\n"
        "  moldau ksql-server ksql-server.properties --override ksql.service.id=team_a_\n\n"
        "then, in another terminal:\n"
        "  ksql\n"
        '  curl -X POST localhost:8088/ksql --data \'{"ksql": "SHOW STREAMS;"}\'\n',
        file_help="a ksql-server.properties file",
    )
    made.add_argument("--schema-registry", metavar="URL", help="the registry of AVRO, PROTOBUF and JSON_SR")
    made.add_argument(
        "--queries-file", metavar="FILE", help="run the statements of this file, and take none from clients"
    )
    made.add_argument("--data", metavar="FOLDER", help="where the state of queries is kept")
    return made


if __name__ == "__main__":
    sys.exit(ksql_server_start())
