"""`moldau registry` and `schema-registry-start`: run a schema registry in the foreground.

`moldau registry` has options of its own; `schema-registry-start` requires a properties file, as Confluent's script
does. Start at `moldau_registry`.
"""

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
from moldau.registry.settings import RegistrySettings

__all__ = ["moldau_registry", "parser", "schema_registry_start"]

ROLE = "schema-registry"
"""The role under which tools find the process."""

PREFIX = "SCHEMA_REGISTRY_"

_USAGE = """\
USAGE: schema-registry-start [-daemon] [schema-registry.properties] [--override property=value]*

Runs a schema registry over the brokers that kafkastore.bootstrap.servers names (localhost:9092 unless told),
on the address that listeners names: every interface and port 8081 unless the file tells, this machine alone without
a file. SIGTERM or schema-registry-stop ends it."""

_DEFAULT_PORT = 8081


def moldau_registry(arguments: Sequence[str] | None = None) -> int:
    """Run a registry; a file, the environment and options set its address and brokers."""
    options = parser().parse_args(arguments)
    overrides = list(options.override)
    if options.host is not None or options.port is not None:
        port = _DEFAULT_PORT if options.port is None else options.port
        overrides.append(f"listeners={service_listener(options.file, options.host, port)}")
    if options.bootstrap_server is not None:
        overrides.append(f"kafkastore.bootstrap.servers={options.bootstrap_server}")
    return _run(options.file, overrides, check_only=options.check_config, log_format=options.log_format)


def schema_registry_start(arguments: Sequence[str] | None = None) -> int:
    """Run a registry as Confluent's script does: a properties file, then overrides."""
    in_background, words = daemon_and_rest(arguments)
    if words and words[0] in HELP_WORDS:
        print(_USAGE)
        return 0
    if in_background:
        return start_in_background("moldau.cli.registry.start", words, "schema-registry.out")
    file = Path(words.pop(0)) if words and not words[0].startswith("-") else None
    return _run(file, overrides_in(words), check_only=False, log_format="text")


def _run(file: Path | None, overrides: Sequence[str], *, check_only: bool, log_format: str) -> int:
    try:
        settings = RegistrySettings.of(
            gather_service_settings(file, os.environ, overrides, prefix=PREFIX, default_port=_DEFAULT_PORT)
        )
        for warning in settings.warnings:
            print(f"moldau: {warning}", file=sys.stderr)
        if check_only:
            print("The configuration is valid.")
            return 0
        return _serve(settings, log_format)
    except MoldauError as error:
        return fail(error)


def _serve(settings: RegistrySettings, log_format: str) -> int:
    from moldau.registry.instance import RegistryInstance
    from moldau.server.services import run_services

    return run_services(lambda: [RegistryInstance(settings)], roles=(ROLE,), log_format=log_format)


def parser() -> CommandParser:
    made = CommandParser(
        prog="moldau registry",
        description="Run a schema registry that every Kafka client can use: Avro, JSON Schema and Protobuf, with\n"
        "compatibility checked at seven levels. Without arguments it listens on port 8081 of this machine\n"
        "and keeps its schemas in the topic _schemas of the brokers at localhost:9092.",
        epilog="examples:\n"
        "  moldau registry\n"
        "  moldau registry --port 18081 --bootstrap-server localhost:19092\n"
        "  moldau registry --host 0.0.0.0                 # for other machines too; nobody has to log in\n"
        "  moldau registry schema-registry.properties --override schema.compatibility.level=full\n"
        "  SCHEMA_REGISTRY_HOST_NAME=registry-1 moldau registry\n\n"
        "then, in another terminal:\n"
        "  curl -X POST -H 'Content-Type: application/json' localhost:8081/subjects/orders-value/versions \\\n"
        '    --data \'{"schema": "{\\"type\\": \\"string\\"}"}\'\n'
        "  curl localhost:8081/subjects\n"
        "  curl localhost:8081/openapi.json               # every call there is\n\n"
        "Several instances on one cluster elect a leader, which writes; the others forward to it.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_file_and_overrides(made, file_help="a schema-registry.properties file")
    made.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="the brokers that hold the schemas")
    made.add_argument(
        "--host",
        help="listen on this address (0.0.0.0 for every interface; default: this machine only, without a file)",
    )
    made.add_argument("--port", type=int, help="listen on this port (0 picks a free one and says which)")
    add_check_and_log(made)
    return made


if __name__ == "__main__":
    sys.exit(schema_registry_start())
