"""`moldau registry` and `schema-registry-start`: run a schema registry. Start at `moldau_registry`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from moldau.cli.command_line import CommandParser
from moldau.cli.server.service_command import ServiceCommand
from moldau.registry.settings import RegistrySettings

__all__ = ["COMMAND", "moldau_registry", "parser", "schema_registry_start"]

ROLE = "schema-registry"

_USAGE = """\
USAGE: schema-registry-start [-daemon] [schema-registry.properties] [--override property=value]*

Runs a schema registry over the brokers that kafkastore.bootstrap.servers names (localhost:9092 unless told),
on the address that listeners names: every interface and port 8081 unless the file tells, this machine alone without
a file. SIGTERM or schema-registry-stop ends it."""


def moldau_registry(arguments: Sequence[str] | None = None) -> int:
    """Run a registry; a file, the environment and options set its address and brokers."""
    return COMMAND.run_with_options(parser().parse_args(arguments))


def schema_registry_start(arguments: Sequence[str] | None = None) -> int:
    """Run a registry as Confluent's script does: a properties file, then overrides."""
    return COMMAND.run_as_script(arguments)


def _build(settings: RegistrySettings) -> Any:
    from moldau.registry.instance import RegistryInstance

    return RegistryInstance(settings)


COMMAND = ServiceCommand(
    role=ROLE,
    module="moldau.cli.registry.start",
    usage=_USAGE,
    prefix="SCHEMA_REGISTRY_",
    default_port=8081,
    option_keys={"bootstrap_server": "kafkastore.bootstrap.servers"},
    settings_of=RegistrySettings.of,
    build=_build,
)


def parser() -> CommandParser:
    return ServiceCommand.parser(
        "moldau registry",
        "Run a schema registry that every Kafka client can use: Avro, JSON Schema and Protobuf, with\n"
        "compatibility checked at seven levels. Without arguments it listens on port 8081 of this machine\n"
        "and keeps its schemas in the topic _schemas of the brokers at localhost:9092.",
        "examples:\n"
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
        file_help="a schema-registry.properties file",
    )


if __name__ == "__main__":
    sys.exit(schema_registry_start())
