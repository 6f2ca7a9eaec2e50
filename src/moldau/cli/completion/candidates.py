"""Completion candidates for a `moldau` command line, from its parsers alone. Start at `candidates`.

Names of topics, groups and files are not looked up here: the result only says which kind is needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from moldau.cli.command_line import CONNECTION_OPTIONS, CommandParser, Scanned, UnknownOptionError, scan
from moldau.cli.main import COMMANDS, load
from moldau.cli.tools import TOOLS

__all__ = ["Candidates", "Names", "candidates"]


class Names(Enum):
    """Kinds of names that are not in a parser."""

    TOPICS = "topics"
    GROUPS = "groups"
    FILES = "files"


NAMED_BY = {
    "topic": Names.TOPICS,
    "topics": Names.TOPICS,
    "entity": Names.TOPICS,
    "pattern": Names.TOPICS,
    "group": Names.GROUPS,
    "groups": Names.GROUPS,
    "config_file": Names.FILES,
    "file": Names.FILES,
    "keep": Names.FILES,
    "data": Names.FILES,
    "topology": Names.FILES,
}
"""The kind of names an argument takes, by the argument's `dest` in the parser."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The matching words, each with its description, and the kind of names to look up."""

    words: Mapping[str, str] = field(default_factory=dict)
    names: Names | None = None
    connection: tuple[str, ...] = ()
    """The connection options typed so far, for looking up names in the cluster."""


def candidates(words: Sequence[str]) -> Candidates:
    """Candidates for the last of `words`, which may be empty; `words` do not include `moldau` itself."""
    *before, last = words
    scanned = _scan_words(before, CONNECTION_OPTIONS)
    command = next((number for number, word in enumerate(scanned) if word.option is None), None)
    if command is None:
        if _awaits_value(scanned, CONNECTION_OPTIONS):
            return Candidates()
        return _starting(last, _global_options() if last.startswith("-") else _commands(last))
    name = before[command]
    if name not in COMMANDS or not COMMANDS[name].parser:
        return Candidates(names=Names.FILES)
    parser: CommandParser = load(COMMANDS[name].parser)()
    return _of_command(parser, [*before[:command], *before[command + 1 :]], last)


def _of_command(parser: CommandParser, before: Sequence[str], last: str) -> Candidates:
    scanned = _scan_words(before, parser.takes_value)
    if parser.verbs:
        place = next((number for number, word in enumerate(scanned) if word.option is None), None)
        if place is not None and before[place] in parser.verbs:
            return _of_command(parser.verbs[before[place]], [*before[:place], *before[place + 1 :]], last)
        if place is not None:
            return Candidates()
        if not last.startswith("-") and not _awaits_value(scanned, parser.takes_value):
            return _starting(last, {name: _summary(parser, name) for name in parser.verbs})
        parser = parser.verbs.get(parser.default_verb or "", parser)
    return _of_leaf(parser, scanned, last)


def _of_leaf(parser: CommandParser, scanned: Sequence[Scanned], last: str) -> Candidates:
    options = parser._option_string_actions
    connection = tuple(word.text for word in scanned if word.option in CONNECTION_OPTIONS)
    if (waiting := _awaits_value(scanned, parser.takes_value)) is not None:
        return _values(options[waiting], last, connection) if waiting in options else Candidates()
    if last.startswith("-"):
        given = {options[word.option].dest for word in scanned if word.option in options}
        return _starting(
            last,
            {
                name: action.help or ""
                for name, action in options.items()
                if name.startswith("--") and (action.dest not in given or isinstance(action, argparse._AppendAction))
            },
        )
    action = _positional(parser, sum(word.option is None for word in scanned))
    return Candidates() if action is None else _values(action, last, connection)


def _values(action: argparse.Action, last: str, connection: tuple[str, ...]) -> Candidates:
    if action.choices is not None:
        return _starting(last, {str(choice): "" for choice in action.choices})
    return Candidates(names=NAMED_BY.get(action.dest), connection=connection)


def _positional(parser: CommandParser, number: int) -> argparse.Action | None:
    """The positional argument with the given number; the last one may take all that follow."""
    positionals = [action for action in parser._actions if not action.option_strings]
    if number < len(positionals):
        return positionals[number]
    return positionals[-1] if positionals and positionals[-1].nargs in ("*", "+") else None


def _scan_words(words: Sequence[str], options: Mapping[str, bool]) -> list[Scanned]:
    """The classified words; after an unknown option, all words that are not options count as plain words."""
    found: list[Scanned] = []
    try:
        for word in scan(words, options):
            found.append(word)
    except UnknownOptionError:
        found += [Scanned(word, None) for word in words[len(found) :] if not word.startswith("-")]
    return found


def _awaits_value(scanned: Sequence[Scanned], options: Mapping[str, bool]) -> str | None:
    """The option whose value comes next, or None."""
    if not scanned:
        return None
    text, option, is_value = scanned[-1]
    has_own_value = "=" in text or (not text.startswith("--") and len(text) > 2)
    return option if option is not None and not is_value and not has_own_value and options[option] else None


def _starting(prefix: str, words: Mapping[str, str]) -> Candidates:
    return Candidates({word: " ".join(text.split()) for word, text in words.items() if word.startswith(prefix)})


def _commands(last: str) -> dict[str, str]:
    """The `moldau` commands; Kafka's tools too, once two letters of a name are typed."""
    tools = dict.fromkeys(TOOLS, "as Apache Kafka's") if last[:1] in ("k", "s") and len(last) > 1 else {}
    return {**{name: command.summary for name, command in COMMANDS.items()}, **tools}


def _global_options() -> dict[str, str]:
    return {
        "--bootstrap-server": "brokers of the cluster",
        "--config-file": "client properties, for example for TLS and SASL",
        "--output": "how to show results",
        "--help": "list the commands",
        "--version": "show the version",
    }


def _summary(parser: Any, verb: str) -> str:
    return next((str(entry.help) for entry in parser._added._choices_actions if entry.dest == verb), "")
