"""`moldau rest` and `kafka-rest-start`: run a REST proxy in the foreground. Start at `moldau_rest`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from moldau.cli.command_line import CommandParser
from moldau.cli.server.service_command import ServiceCommand
from moldau.rest.settings import DEFAULT_PORT, RestSettings

__all__ = ["COMMAND", "kafka_rest_start", "moldau_rest", "parser"]

ROLE = "kafka-rest"

_USAGE = """\
USAGE: kafka-rest-start [-daemon] [kafka-rest.properties] [--override property=value]*

Runs a REST proxy over the brokers that bootstrap.servers names (localhost:9092 unless told), on the address that
listeners names: every interface and port 8082 unless the file tells, this machine alone without a file. SIGTERM or
kafka-rest-stop ends it."""


def moldau_rest(arguments: Sequence[str] | None = None) -> int:
    """Run a proxy; a file, the environment and options set its address, brokers and registry."""
    return COMMAND.run_with_options(parser().parse_args(arguments))


def kafka_rest_start(arguments: Sequence[str] | None = None) -> int:
    """Run a proxy as Confluent's script does: a properties file, then overrides."""
    return COMMAND.run_as_script(arguments)


def _build(settings: RestSettings) -> Any:
    from moldau.rest.instance import RestInstance

    return RestInstance(settings)


COMMAND = ServiceCommand(
    role=ROLE,
    module="moldau.cli.rest.start",
    usage=_USAGE,
    prefix="KAFKA_REST_",
    default_port=DEFAULT_PORT,
    option_keys={"bootstrap_server": "bootstrap.servers", "schema_registry": "schema.registry.url"},
    settings_of=RestSettings.of,
    build=_build,
)


def parser() -> CommandParser:
    made = ServiceCommand.parser(
        "moldau rest",
        "Run a REST proxy: topics, records and consumer groups over HTTP, in versions 1, 2 and 3 of its\n"
        "API. Without arguments it listens on port 8082 of this machine, over the brokers at\n"
        "localhost:9092 and the schema registry at http://localhost:8081.",
        "examples:\n"
        "  moldau rest\n"
        "  moldau rest --port 18082 --bootstrap-server localhost:19092\n"
        "  moldau rest kafka-rest.properties --override consumer.instance.timeout.ms=60000\n\n"
        "then, in another terminal:\n"
        "  curl localhost:8082/topics\n"
        "  curl -X POST -H 'Content-Type: application/vnd.kafka.json.v2+json' localhost:8082/topics/orders \\\n"
        '    --data \'{"records": [{"value": {"amount": 3}}]}\'\n'
        "  curl localhost:8082/openapi.json               # every call there is\n",
        file_help="a kafka-rest.properties file",
    )
    made.add_argument("--schema-registry", metavar="URL", help="the registry of avro, jsonschema and protobuf")
    return made


if __name__ == "__main__":
    sys.exit(kafka_rest_start())
