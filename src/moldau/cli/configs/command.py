"""kafka-configs: describe and alter configs of topics, brokers, users, clients and more."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, ZOOKEEPER, open_admin
from moldau.cli.configs.changes import parse_changes
from moldau.cli.configs.entities import QUOTA_TYPES, parse_entities
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.tool import run, say, warn_about_stray_words
from moldau.client.errors import java_exception_prefix
from moldau.core.errors import MoldauError

__all__ = ["main"]

PARSER = Parser(
    "Describe and alter configs of topics, brokers, users, clients, IPs, groups and loggers.",
    [
        BOOTSTRAP_SERVER,
        Option("bootstrap-controller", "The same, through a controller.", "host:port"),
        ZOOKEEPER,
        COMMAND_CONFIG,
        Option("describe", "Show configs."),
        Option("alter", "Change configs."),
        Option("all", "With --describe: also what is not set on the entity itself."),
        Option("entity-type", "topics, brokers, users, clients, ips, groups, client-metrics, broker-loggers.", "type"),
        Option("entity-name", "A topic's name, a broker's id, a user, a client id, an IP.", "name"),
        Option("entity-default", "The default for brokers, users, clients or ips."),
        Option("topic", "The same as --entity-type topics --entity-name ...", "topic"),
        Option("broker", "The same as --entity-type brokers --entity-name ...", "id"),
        Option("broker-defaults", "The same as --entity-type brokers --entity-default."),
        Option("broker-logger", "The same as --entity-type broker-loggers --entity-name ...", "id"),
        Option("user", "The same as --entity-type users --entity-name ...", "user"),
        Option("user-defaults", "The same as --entity-type users --entity-default."),
        Option("client", "The same as --entity-type clients --entity-name ...", "client id"),
        Option("client-defaults", "The same as --entity-type clients --entity-default."),
        Option("ip", "The same as --entity-type ips --entity-name ...", "address"),
        Option("ip-defaults", "The same as --entity-type ips --entity-default."),
        Option("group", "The same as --entity-type groups --entity-name ...", "group"),
        Option("client-metrics", "The same as --entity-type client-metrics --entity-name ...", "name"),
        Option("add-config", "Configs to set: k1=v1,k2=[a,b]. Brackets hold values with commas.", "k=v,..."),
        Option("add-config-file", "A properties file of configs to set.", "file"),
        Option("delete-config", "Configs to unset, so that defaults hold again.", "k,..."),
        Option("force", "Accepted for compatibility: nothing asks for confirmation.", is_hidden=True),
    ],
    epilog=(
        "Example: kafka-configs --bootstrap-server localhost:9092 --alter --topic orders "
        "--add-config retention.ms=3600000"
    ),
)

_ZOOKEEPER_WARNING = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.",
    "Use --bootstrap-server instead to specify a broker to connect to.",
)


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    return run(PARSER, _configs, words, report=partial(_report, words))


def _configs(parsed: Parsed) -> None:
    action = parsed.exactly_one(("describe", "alter"), "Command must include exactly one action: --describe, --alter")
    if parsed.has("bootstrap-controller") and not parsed.has("bootstrap-server"):
        parsed.found["bootstrap-server"] = parsed.found["bootstrap-controller"]
    if not parsed.has("bootstrap-server") and not parsed.has("zookeeper"):
        raise UsageError("One of the required --bootstrap-server or --bootstrap-controller arguments must be specified")
    entities = parse_entities(parsed)
    changes = parse_changes(parsed) if action == "alter" else None
    warn_about_stray_words(parsed, parsed.words_after("bootstrap-server"))
    is_zookeeper = not parsed.has("bootstrap-server")
    if is_zookeeper:
        for line in _ZOOKEEPER_WARNING:
            say(line)
    admin = open_admin(parsed)
    if entities[0].type in QUOTA_TYPES:
        from moldau.cli.configs.quotas import alter_quotas, describe_quotas

        if changes is not None:
            alter_quotas(admin, entities, changes)
        else:
            describe_quotas(admin, entities)
    elif changes is not None:
        from moldau.cli.configs.alter import alter

        alter(admin, entities[0], changes, is_zookeeper=is_zookeeper)
    else:
        from moldau.cli.configs.describe import describe, describe_for_zookeeper

        if is_zookeeper:
            describe_for_zookeeper(admin, entities[0])
        else:
            describe(admin, parsed, entities[0])


def _report(words: Sequence[str], error: MoldauError) -> None:
    if str(error).startswith("Invalid config(s)"):
        print(error, file=sys.stderr)
        return
    print(f"Error while executing config command with args '{' '.join(words)}'", file=sys.stderr)
    print(f"{java_exception_prefix(error)}{error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
