"""kafka-topics: create, list, describe, alter and delete topics."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, ZOOKEEPER, open_admin
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.tool import log_line, run, say, warn_about_stray_words
from moldau.client.admin import Admin
from moldau.client.errors import java_exception_prefix
from moldau.core.errors import MoldauError

__all__ = ["main"]

ACTIONS = ("list", "describe", "create", "alter", "delete")

PARSER = Parser(
    "Create, list, describe, alter and delete topics.",
    [
        BOOTSTRAP_SERVER,
        ZOOKEEPER,
        COMMAND_CONFIG,
        Option("list", "List the names of all topics."),
        Option("describe", "Show partitions, leaders, replicas and the topic's own configs."),
        Option("create", "Create a topic."),
        Option("alter", "Give a topic more partitions. Configs are changed with kafka-configs."),
        Option("delete", "Delete a topic and its records."),
        Option("topic", "The topic. A regular expression for all actions but --create.", "topic"),
        Option("topic-id", "Describe the topic with this id.", "topic id"),
        Option("partitions", "How many partitions the topic gets, or grows to with --alter.", "number", int),
        Option("replication-factor", "On how many brokers each partition is kept.", "number", int),
        Option(
            "replica-assignment",
            "Which brokers keep which partition: 0:1,1:2 puts partition 0 on brokers 0 and 1, partition 1 on 1 and 2.",
            "broker:broker,...",
        ),
        Option(
            "config",
            "A config of the new topic, such as retention.ms=3600000. May be repeated.",
            "name=value",
        ),
        Option(
            "delete-config",
            "With --alter --zookeeper: a config to remove. May be repeated.",
            "name",
        ),
        Option("if-exists", "Do nothing instead of failing when the topic is missing."),
        Option("if-not-exists", "Do nothing instead of failing when the topic is already there."),
        Option("exclude-internal", "Leave out the topics in which the cluster keeps its own state."),
        Option("under-replicated-partitions", "With --describe: only partitions with replicas out of sync."),
        Option("unavailable-partitions", "With --describe: only partitions without a leader."),
        Option(
            "under-min-isr-partitions", "With --describe: only partitions with fewer replicas in sync than required."
        ),
        Option(
            "at-min-isr-partitions", "With --describe: only partitions with just as many replicas in sync as required."
        ),
        Option("topics-with-overrides", "With --describe: only topics with configs of their own."),
        Option("partition-size-limit-per-response", "Accepted for compatibility.", "number", int),
        Option("force", "Accepted for compatibility: nothing asks for confirmation.", is_hidden=True),
        Option("disable-rack-aware", "Accepted for compatibility.", is_hidden=True),
    ],
    epilog="Example: kafka-topics --bootstrap-server localhost:9092 --create --topic orders --partitions 3",
)

_ALLOWED_WITH = {
    "config": ("create", "alter"),
    "delete-config": ("alter",),
    "partitions": ("create", "alter"),
    "replication-factor": ("create",),
    "replica-assignment": ("create", "alter"),
    "under-replicated-partitions": ("describe",),
    "unavailable-partitions": ("describe",),
    "under-min-isr-partitions": ("describe",),
    "at-min-isr-partitions": ("describe",),
    "topics-with-overrides": ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
    "topic-id": ("describe",),
}


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _topics, argv, report=_report)


def _topics(parsed: Parsed) -> None:
    action = parsed.exactly_one(
        ACTIONS, "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
    )
    _check(parsed, action)
    warn_about_stray_words(parsed, parsed.words_after("bootstrap-server"))
    _verb(action)(open_admin(parsed), parsed)


def _check(parsed: Parsed, action: str) -> None:
    """Check Kafka's rules for which options can be combined."""
    if action in ("create", "delete", "alter"):
        parsed.require("topic")
    if action == "alter" and parsed.has("bootstrap-server") and (parsed.has("config") or parsed.has("delete-config")):
        raise UsageError(
            'Option combination "[bootstrap-server],[config]" can\'t be used with option "[alter]" '
            "(the kafka-configs CLI supports altering topic configs with a --bootstrap-server option)"
        )
    if action == "alter" and not any(map(parsed.has, ("partitions", "config", "delete-config"))):
        parsed.require("partitions")
    for name, actions in _ALLOWED_WITH.items():
        parsed.forbid([other for other in ACTIONS if other not in actions], because_of=name)
    if action == "create":
        parsed.forbid(["partitions", "replication-factor"], because_of="replica-assignment")


def _verb(action: str) -> Callable[[Admin, Parsed], None]:
    """The function of a verb. Only this verb is imported, to keep the start fast."""
    if action == "create":
        from moldau.cli.topics.create import create

        return create
    if action == "list":
        from moldau.cli.topics.list import list_topics

        return list_topics
    if action == "describe":
        from moldau.cli.topics.describe import describe

        return describe
    if action == "alter":
        from moldau.cli.topics.alter import alter

        return alter
    from moldau.cli.topics.delete import delete

    return delete


def _report(error: MoldauError) -> None:
    say(f"Error while executing topic command : {error}")
    log_line("ERROR", f"{java_exception_prefix(error)}{error}", "org.apache.kafka.tools.TopicCommand")


if __name__ == "__main__":
    sys.exit(main())
