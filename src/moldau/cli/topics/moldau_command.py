"""`moldau topics`: list, create, describe, alter and delete."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.cluster_options import pairs
from moldau.cli.command_line import CommandParser
from moldau.cli.screen import Bytes
from moldau.cli.sub_commands import add_connection, admin_for, command_parser, run_command, screen_for
from moldau.cli.tool import ToolError
from moldau.cli.topics.selection import INTERNAL_TOPICS, matching
from moldau.cli.topics.totals import TopicTotals, sum_of_known, topic_totals
from moldau.client.admin import Admin, TopicDescription
from moldau.client.errors import ClientError
from moldau.core.errors import ErrorCode

__all__ = ["main", "parser"]


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, lambda options: _VERBS[options.verb](options))


def _list(options: argparse.Namespace) -> None:
    admin = admin_for(options)
    names = matching(admin.topic_names(), options.pattern, exclude_internal=not options.internal)
    topics = admin.describe_topics(names)
    totals = topic_totals(admin, topics)
    rows = [_row(topic, totals[topic.name]) for topic in topics]
    screen = screen_for(options)
    if not rows and not screen.is_json:
        screen.note(_why_empty(options.pattern))
        return
    sums = (
        f"total of {len(rows)}",
        sum(len(topic.partitions) for topic in topics),
        "",
        sum_of_known([found.messages for found in totals.values()]),
        _bytes(sum_of_known([found.size_bytes for found in totals.values()])),
        "",
    )
    screen.table(("Topic", "Partitions", "Replicas", "Messages", "Size", "State"), rows, total=sums)


def _row(topic: TopicDescription, totals: TopicTotals) -> tuple[object, ...]:
    partitions, size = len(topic.partitions), _bytes(totals.size_bytes)
    return (topic.name, partitions, topic.replication_factor, totals.messages, size, _health(topic))


def _bytes(size: int | None) -> Bytes | None:
    return None if size is None else Bytes(size)


def _why_empty(pattern: str | None) -> str:
    if pattern is not None:
        return f"No topic matches {pattern}. `moldau topics` lists them all."
    return "No topics yet. Make one with: moldau topics create <name>"


def _create(options: argparse.Namespace) -> None:
    admin = admin_for(options)
    try:
        admin.create_topic(
            options.name,
            partitions=options.partitions,
            replication_factor=options.replication_factor,
            configs=pairs(options.config, what="config"),
        )
    except ClientError as error:
        if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS or not options.if_not_exists:
            raise
        screen_for(options).done(f"{options.name} is already there", topic=options.name, created=False)
        return
    screen_for(options).done(f"Created {options.name}", topic=options.name, created=True)


def _describe(options: argparse.Namespace) -> None:
    admin = admin_for(options)
    screen = screen_for(options)
    topic = _one(admin, options.topic)
    entries = admin.describe_configs("topic", [topic.name])[topic.name]
    own = {entry.name: entry.value for entry in entries if entry.source == "DYNAMIC_TOPIC_CONFIG"}
    if screen.is_json:
        partitions = [
            {"partition": p.partition, "leader": p.leader, "replicas": p.replicas, "isr": p.isr}
            for p in topic.partitions
        ]
        screen.document({"topic": topic.name, "id": topic.topic_id, "configs": own, "partitions": partitions})
        return
    screen.note(f"{topic.name}  id {topic.topic_id}, {_health(topic)}")
    for key, value in sorted(own.items()):
        screen.note(f"  {key} = {value}")
    rows = [(p.partition, p.leader, p.replicas, p.isr) for p in topic.partitions]
    screen.table(("Partition", "Leader", "Replicas", "In sync"), rows)


def _alter(options: argparse.Namespace) -> None:
    admin = admin_for(options)
    changes = pairs(options.config, what="config")
    if options.partitions is None and not changes and not options.unset:
        raise ToolError("nothing to alter: give --partitions, --config or --unset")
    if options.partitions is not None:
        admin.create_partitions(options.topic, options.partitions)
    if changes or options.unset:
        admin.alter_configs("topic", options.topic, add=changes, delete=options.unset)
    screen_for(options).done(f"Altered {options.topic}", topic=options.topic, altered=True)


def _delete(options: argparse.Namespace) -> None:
    admin = admin_for(options)
    admin.delete_topics(options.topics)
    screen_for(options).done(f"Deleted {', '.join(options.topics)}", deleted=options.topics)


_VERBS = {"list": _list, "create": _create, "describe": _describe, "alter": _alter, "delete": _delete}


def _one(admin: Admin, name: str) -> TopicDescription:
    try:
        return admin.describe_topics([name])[0]
    except ClientError as error:
        if error.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ToolError(f"there is no topic {name}; `moldau topics list` shows what there is") from None
        raise


def _health(topic: TopicDescription) -> str:
    leaderless = sum(partition.leader is None for partition in topic.partitions)
    behind = sum(len(partition.isr) < len(partition.replicas) for partition in topic.partitions)
    if leaderless:
        return f"{leaderless} without leader"
    if behind:
        return f"{behind} under-replicated"
    return "internal" if topic.name in INTERNAL_TOPICS else "healthy"


def parser() -> CommandParser:
    made = command_parser(
        "topics",
        "List, create, describe, alter and delete topics.",
        [
            "moldau topics",
            "moldau topics list 'orders.*'",
            "moldau topics create orders --partitions 3 --config retention.ms=3600000",
            "moldau topics describe orders -o json",
            "moldau topics alter orders --partitions 6",
            "moldau topics delete orders",
        ],
        default_verb="list",
    )
    listing = made.add_verb("list", help="names, partitions, messages, size on disk and health")
    listing.add_argument("pattern", nargs="?", help="a regular expression for names")
    listing.add_argument("--internal", action="store_true", help="also the topics of the cluster itself")
    create = made.add_verb("create", help="make a topic")
    create.add_argument("name", metavar="topic")
    create.add_argument("-p", "--partitions", type=int, help="how many partitions (default: the broker's)")
    create.add_argument("-r", "--replication-factor", type=int, help="on how many brokers (default: the broker's)")
    create.add_argument("-c", "--config", action="append", default=[], metavar="KEY=VALUE", help="a topic config")
    create.add_argument("--if-not-exists", action="store_true", help="be content when it is already there")
    describe = made.add_verb("describe", help="partitions, leaders, replicas and configs")
    describe.add_argument("topic")
    alter = made.add_verb("alter", help="more partitions, other configs")
    alter.add_argument("topic")
    alter.add_argument("-p", "--partitions", type=int, help="grow to this many partitions")
    alter.add_argument("-c", "--config", action="append", default=[], metavar="KEY=VALUE", help="set a config")
    alter.add_argument("--unset", action="append", default=[], metavar="KEY", help="unset a config")
    delete = made.add_verb("delete", help="delete topics and their records")
    delete.add_argument("topics", nargs="+", metavar="topic")
    for verb in (listing, create, describe, alter, delete):
        add_connection(verb)
    return made
