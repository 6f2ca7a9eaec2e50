"""`moldau rest` and `kafka-rest-start`: run a REST proxy in the foreground. Start at `moldau_rest`."""

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
from moldau.rest.settings import DEFAULT_PORT, RestSettings

__all__ = ["kafka_rest_start", "moldau_rest", "parser"]

ROLE = "kafka-rest"
PREFIX = "KAFKA_REST_"

_USAGE = """\
USAGE: kafka-rest-start [-daemon] [kafka-rest.properties] [--override property=value]*

Runs a REST proxy over the brokers that bootstrap.servers names (localhost:9092 unless told), on the address that
listeners names: every interface and port 8082 unless the file tells, this machine alone without a file. SIGTERM or
kafka-rest-stop ends it."""


def moldau_rest(arguments: Sequence[str] | None = None) -> int:
    """Run a proxy; a file, the environment and options set its address, brokers and registry."""
    options = parser().parse_args(arguments)
    overrides = list(options.override)
    if options.host is not None or options.port is not None:
        port = DEFAULT_PORT if options.port is None else options.port
        overrides.append(f"listeners={service_listener(options.file, options.host, port)}")
    if options.bootstrap_server is not None:
        overrides.append(f"bootstrap.servers={options.bootstrap_server}")
    if options.schema_registry is not None:
        overrides.append(f"schema.registry.url={options.schema_registry}")
    return _run(options.file, overrides, check_only=options.check_config, log_format=options.log_format)


def kafka_rest_start(arguments: Sequence[str] | None = None) -> int:
    """Run a proxy as Confluent's script does: a properties file, then overrides."""
    in_background, words = daemon_and_rest(arguments)
    if words and words[0] in HELP_WORDS:
        print(_USAGE)
        return 0
    if in_background:
        return start_in_background("moldau.cli.rest.start", words, "kafka-rest.out")
    file = Path(words.pop(0)) if words and not words[0].startswith("-") else None
    return _run(file, overrides_in(words), check_only=False, log_format="text")


def _run(file: Path | None, overrides: Sequence[str], *, check_only: bool, log_format: str) -> int:
    try:
        settings = RestSettings.of(
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


def _serve(settings: RestSettings, log_format: str) -> int:
    from moldau.rest.instance import RestInstance
    from moldau.server.services import run_services

    return run_services(lambda: [RestInstance(settings)], roles=(ROLE,), log_format=log_format)


def parser() -> CommandParser:
    made = CommandParser(
        prog="moldau rest",
        description="Run a REST proxy: topics, records and consumer groups over HTTP, in versions 1, 2 and 3 of its\n"
        "API. Without arguments it listens on port 8082 of this machine, over the brokers at\n"
        "localhost:9092 and the schema registry at http://localhost:8081.",
        epilog="examples:\n"
        "  moldau rest\n"
        "  moldau rest --port 18082 --bootstrap-server localhost:19092\n"
        "  moldau rest kafka-rest.properties --override consumer.instance.timeout.ms=60000\n\n"
        "then, in another terminal:\n"
        "  curl localhost:8082/topics\n"
        "  curl -X POST -H 'Content-Type: application/vnd.kafka.json.v2+json' localhost:8082/topics/orders \\\n"
        '    --data \'{"records": [{"value": {"amount": 3}}]}\'\n'
        "  curl localhost:8082/openapi.json               # every call there is\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_file_and_overrides(made, file_help="a kafka-rest.properties file")
    made.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="the brokers that hold the topics")
    made.add_argument("--schema-registry", metavar="URL", help="the registry of avro, jsonschema and protobuf")
    made.add_argument(
        "--host",
        help="listen on this address (0.0.0.0 for every interface; default: this machine only, without a file)",
    )
    made.add_argument("--port", type=int, help="listen on this port (0 picks a free one and says which)")
    add_check_and_log(made)
    return made


if __name__ == "__main__":
    sys.exit(kafka_rest_start())
