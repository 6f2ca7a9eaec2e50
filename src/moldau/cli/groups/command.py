"""kafka-consumer-groups: list, describe and delete groups, reset and delete their offsets.

This module has the options and which of them can be combined; each action has its own module. Start at `main`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, ZOOKEEPER, open_admin
from moldau.cli.groups.failures import plain_failure
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.tool import run, say, warn_about_stray_words
from moldau.client.errors import ClientError
from moldau.core.errors import MoldauError

__all__ = ["PARSER", "main"]

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCENARIOS = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "shift-by",
    "from-file",
)
LONGEST_TIMEOUT_MS = 3_600_000
DRY_RUN_WARNING = (
    "WARN: No action will be performed as the --execute option is missing. In a future major release, the default "
    "behavior will be to prompt the user before executing the reset rather than doing a dry run. You should add the "
    "--dry-run option explicitly if you are scripting this command and want to keep the current default behavior "
    "without prompting."
)

PARSER = Parser(
    "List, describe and delete consumer groups, and reset or delete the offsets they have committed.",
    [
        BOOTSTRAP_SERVER,
        COMMAND_CONFIG,
        ZOOKEEPER,
        Option("list", "Show all consumer groups."),
        Option("describe", "Show how far groups have read (--offsets), who is in them (--members), or their state."),
        Option("delete", "Delete groups without members, with all their offsets."),
        Option("reset-offsets", "Set the offsets of groups without members. See the scenarios --to-..., --shift-by."),
        Option("delete-offsets", "Forget the offsets of one group for some topics."),
        Option("validate-regex", "Tell whether a regular expression can be subscribed to (RE2).", "regex"),
        Option("group", "The group. May be repeated.", "group"),
        Option("all-groups", "All groups."),
        Option("topic", "A topic, or some of its partitions as topic:0,1. May be repeated.", "topic"),
        Option("all-topics", "All topics the group has offsets for."),
        Option("members", "With --describe: the members."),
        Option("offsets", "With --describe: offsets and lag. The default."),
        Option(
            "state",
            "With --describe: the group's state. With --list: show states, of all groups or of those in given ones.",
            "state,state,...",
            bare_value="",
        ),
        Option("type", "With --list: show types, of all groups or of those of given ones.", "type,type", bare_value=""),
        Option("verbose", "With --describe: more columns."),
        Option("timeout", "How long to wait for each answer.", "ms", int, 5000),
        Option("dry-run", "With --reset-offsets: only show the new offsets."),
        Option("execute", "With --reset-offsets: set them."),
        Option("export", "With --reset-offsets: show them as CSV."),
        Option("to-earliest", "Reset to the oldest record."),
        Option("to-latest", "Reset to the end."),
        Option("to-current", "Reset to the committed offset; where there is none, to the end."),
        Option("to-offset", "Reset to an offset.", "offset", int),
        Option("shift-by", "Reset to the committed offset and so many records further, or back.", "number", int),
        Option("by-duration", "Reset to so long ago: PnDTnHnMnS.", "duration"),
        Option("to-datetime", "Reset to a moment: YYYY-MM-DDTHH:mm:SS.sss, in UTC or with an offset.", "moment"),
        Option("from-file", "Reset to the offsets of a CSV file as --export writes it.", "file"),
        Option("new-consumer", "Accepted for compatibility.", is_hidden=True),
    ],
    epilog=(
        "Examples:\n"
        "  kafka-consumer-groups --bootstrap-server localhost:9092 --describe --group billing\n"
        "  kafka-consumer-groups --bootstrap-server localhost:9092 --group billing --topic orders "
        "--reset-offsets --to-earliest --execute"
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _run, argv, report=_report)


def _report(error: MoldauError) -> None:
    # A broker's error is only a code and needs a text; the tool's own errors have one.
    text = plain_failure(error) if isinstance(error, ClientError) else str(error)
    say(f"\nError: Executing consumer group command failed due to {text}")


def _run(parsed: Parsed) -> None:
    if parsed.has("validate-regex"):
        from moldau.cli.groups.regex import validate_regex

        parsed.forbid([action for action in ACTIONS if action != "validate-regex"], because_of="validate-regex")
        say(validate_regex(parsed.value("validate-regex")))
        return
    if not parsed.has("zookeeper"):
        parsed.require("bootstrap-server")
    _check(parsed)
    warn_about_stray_words(parsed, parsed.words_after("bootstrap-server"))

    from moldau.client.groups import Groups

    admin = open_admin(parsed, timeout_ms=parsed.value("timeout"))
    groups = Groups(admin)
    if parsed.has("list"):
        from moldau.cli.groups.list import show_groups

        show_groups(parsed, groups)
    elif parsed.has("describe"):
        from moldau.cli.groups.describe import describe_groups

        describe_groups(parsed, groups, admin)
    elif parsed.has("reset-offsets"):
        from moldau.cli.groups.reset import reset_offsets

        reset_offsets(parsed, groups, admin)
    else:
        from moldau.cli.groups.delete import delete_groups, delete_offsets

        (delete_groups if parsed.has("delete") else delete_offsets)(parsed, groups, admin)


def _check(parsed: Parsed) -> None:
    """Reject options that cannot be combined, with Kafka's messages and in Kafka's order."""
    if parsed.has("describe"):
        _check_describe(parsed)
    if parsed.has("delete"):
        _check_groups_given(parsed, "delete")
        if parsed.has("topic"):
            raise UsageError("The consumer does not support topic-specific offset deletion from a consumer group.")
    if parsed.has("delete-offsets") and not (parsed.has("group") and parsed.has("topic")):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if parsed.has("reset-offsets"):
        _check_reset(parsed)
    if not 0 <= parsed.value("timeout") <= LONGEST_TIMEOUT_MS:
        raise UsageError(f"--timeout must be between 0 and {LONGEST_TIMEOUT_MS}")
    parsed.forbid(["all-groups", "list"], because_of="group")
    parsed.forbid(["list", "describe"], because_of="topic")
    listed = ", ".join(f"--{action}" for action in ACTIONS)
    action = parsed.exactly_one(ACTIONS, f"Command must include exactly one action: {listed}")
    for option, actions in {
        "members": ("describe",),
        "offsets": ("describe",),
        "verbose": ("describe",),
        "state": ("describe", "list"),
        "type": ("list",),
    }.items():
        if parsed.has(option) and action not in actions:
            raise UsageError(f"Option(s) [{option}] are unavailable given other options on the command line")


def _check_describe(parsed: Parsed) -> None:
    _check_groups_given(parsed, "describe")
    if sum(parsed.has(name) for name in ("members", "offsets", "state")) > 1:
        raise UsageError("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if parsed.value("state"):
        raise UsageError("Option [describe] does not take a value for [state]")


def _check_reset(parsed: Parsed) -> None:
    if parsed.has("dry-run") and parsed.has("execute"):
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not parsed.has("dry-run") and not parsed.has("execute"):
        print(DRY_RUN_WARNING, file=sys.stderr, flush=True)
    _check_groups_given(parsed, "reset-offsets")
    for scenario in SCENARIOS:
        parsed.forbid([other for other in SCENARIOS if other != scenario], because_of=scenario)
    if not any(parsed.has(name) for name in ("all-topics", "topic", "from-file")):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
    if not any(parsed.has(scenario) for scenario in SCENARIOS):
        listed = ", ".join(f"[{scenario}]" for scenario in SCENARIOS)
        raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{listed}]")


def _check_groups_given(parsed: Parsed, action: str) -> None:
    if not parsed.has("group") and not parsed.has("all-groups"):
        raise UsageError(f"Option [{action}] takes one of these options: [group], [all-groups]")


if __name__ == "__main__":
    sys.exit(main())
