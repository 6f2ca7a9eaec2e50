"""`moldau configs`: show, set and unset."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.cluster_options import pairs
from moldau.cli.command_line import CommandParser
from moldau.cli.configs.changes import Changes
from moldau.cli.configs.describe import own_overrides
from moldau.cli.configs.entities import Entity
from moldau.cli.configs.resources import change_configs, config_entries
from moldau.cli.sub_commands import add_connection, admin_for, command_parser, run_command, screen_for
from moldau.cli.tool import ToolError
from moldau.cli.topics.selection import matching

__all__ = ["main", "parser"]

TOPIC_LEVEL = "DYNAMIC_TOPIC_CONFIG"


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, lambda options: _VERBS[options.verb](options))


def _show(options: argparse.Namespace) -> None:
    if options.entity is None:
        _show_everything_set(options)
        return
    admin, entity = admin_for(options), _entity(options.entity)
    own = own_overrides(admin, entity)
    entries = sorted(config_entries(admin, entity), key=lambda entry: entry.name)
    rows = [
        (entry.name, entry.value, entry.source.lower().replace("_", " ").removesuffix(" config"))
        for entry in entries
        if (options.all or entry.name in own) and options.key in (None, entry.name)
    ]
    screen = screen_for(options)
    screen.table(("Key", "Value", "Source"), rows)
    if not rows:
        screen.note("Nothing is set here; --all shows what holds by default.")


def _show_everything_set(options: argparse.Namespace) -> None:
    """Show all configs set on topics, on single brokers, or for all brokers: everything that is not a default."""
    admin, screen = admin_for(options), screen_for(options)
    if options.all:
        raise ToolError("--all shows the effective settings of one entity: name a topic, broker:<id> or `brokers`")
    topics = matching(admin.topic_names(), None, exclude_internal=True)
    rows = [
        (f"topic:{name}", entry.name, entry.value)
        for name, entries in admin.describe_configs("topic", topics).items()
        for entry in sorted(entries, key=lambda entry: entry.name)
        if entry.source == TOPIC_LEVEL
    ]
    brokers = [Entity("brokers", str(node.id)) for node in admin.describe_cluster().nodes]
    for entity in (Entity("brokers", is_default=True), *brokers):
        name = "brokers" if entity.is_default else f"broker:{entity.name}"
        rows += [(name, key, value) for key, value in sorted(own_overrides(admin, entity).items())]
    if not rows and not screen.is_json:
        screen.note("Nothing is set anywhere; `moldau configs show <topic> --all` shows what holds by default.")
        return
    screen.table(("Entity", "Key", "Value"), rows)


def _set(options: argparse.Namespace) -> None:
    admin, entity = admin_for(options), _entity(options.entity)
    changes = Changes(pairs(options.pairs, what="config"), ())
    change_configs(admin, entity, changes)
    screen_for(options).done(
        f"Set {', '.join(changes.add)} on {options.entity}", entity=options.entity, set=changes.add
    )


def _unset(options: argparse.Namespace) -> None:
    admin, entity = admin_for(options), _entity(options.entity)
    change_configs(admin, entity, Changes({}, tuple(options.keys)))
    screen_for(options).done(
        f"Unset {', '.join(options.keys)} on {options.entity}", entity=options.entity, unset=options.keys
    )


_VERBS = {"show": _show, "set": _set, "unset": _unset}


def _entity(text: str) -> Entity:
    """Parse `topic:orders`, `broker:0`, `brokers` for the cluster's default, or just a topic's name."""
    kind, colon, name = text.partition(":")
    if text in ("brokers", "cluster"):
        return Entity("brokers", is_default=True)
    if not colon:
        return Entity("topics", text)
    types = {"topic": "topics", "broker": "brokers", "group": "groups", "logger": "broker-loggers"}
    if kind not in types or not name:
        raise ToolError(f"{text} is neither topic:<name> nor broker:<id>, group:<id> or logger:<id>")
    if kind in ("broker", "logger") and not name.isdigit():
        raise ToolError(f"a broker's id is a number, not {name}")
    return Entity(types[kind], name)


def parser() -> CommandParser:
    made = command_parser(
        "configs",
        "Show, set and unset configs. An entity is a topic's name, topic:<name>, broker:<id>, "
        "or `brokers` for what holds on all of them.",
        [
            "moldau configs                               # all that is set anywhere",
            "moldau configs show orders",
            "moldau configs show broker:0 --all",
            "moldau configs set orders retention.ms=3600000 cleanup.policy=compact",
            "moldau configs unset orders retention.ms",
            "moldau configs set brokers log.retention.ms=86400000",
        ],
        default_verb="show",
    )
    show = made.add_verb("show", help="what is set, and where from")
    show.add_argument("entity", nargs="?", help="a topic, topic:<name>, broker:<id> or brokers (default: all of them)")
    show.add_argument("key", nargs="?", help="one key only")
    show.add_argument("-a", "--all", action="store_true", help="also defaults")
    set_ = made.add_verb("set", help="set keys")
    set_.add_argument("entity")
    set_.add_argument("pairs", nargs="+", metavar="key=value")
    unset = made.add_verb("unset", help="go back to the default")
    unset.add_argument("entity")
    unset.add_argument("keys", nargs="+", metavar="key")
    for verb in (show, set_, unset):
        add_connection(verb)
    return made
