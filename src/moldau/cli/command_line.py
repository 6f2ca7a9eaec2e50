"""The parser of the `moldau` command line: positions of options, default verbs, suggestions for typing errors.

`moldau topics -b host:9092 list` and `moldau topics list -b host:9092` are the same, `moldau topics` lists, and a
mistyped verb or option is rejected with the closest valid one as a suggestion. Start at `CommandParser.parse_args`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, NoReturn

__all__ = ["CONNECTION_OPTIONS", "CommandParser", "Scanned", "UnknownOptionError", "did_you_mean", "scan"]

CONNECTION_OPTIONS: Mapping[str, bool] = {
    "-b": True,
    "--bootstrap-server": True,
    "--config-file": True,
    "-X": True,
    "-o": True,
    "--output": True,
}
"""Options of nearly every command, also allowed before the command. True: a value follows."""

HELP = ("-h", "--help")
OTHER_WORDS = {
    "broker": "server",
    "start": "server",
    "up": "server",
    "run": "server",
    "sr": "registry",
    "consumer-groups": "groups",
    "ls": "list",
    "show": "describe",
    "get": "describe",
    "add": "create",
    "new": "create",
    "rm": "delete",
    "remove": "delete",
    "update": "alter",
}
"""Verbs of other tools, and the verb to suggest instead."""


class UnknownOptionError(Exception):
    """An option that a command does not have; the message is its name."""


class Scanned(NamedTuple):
    """A word of a command line, classified."""

    text: str
    option: str | None
    """The full name of the option that the word is, or is the value of; None for a plain word."""
    is_value: bool = False
    """Whether the word is an option's value, separate from the option."""


def scan(words: Sequence[str], options: Mapping[str, bool]) -> Iterator[Scanned]:
    """Classify words as options, their values and plain words; `options` maps each name to whether a value follows.

    Raises `UnknownOptionError` at an unknown option. After `--` everything is a plain word.
    """
    left = iter(words)
    for word in left:
        if word == "--":
            yield from (Scanned(rest, None) for rest in (word, *left))
        elif not _is_option(word):
            yield Scanned(word, None)
        else:
            name, has_value = _find_option(word, options)
            yield Scanned(word, name)
            if not has_value and options[name]:
                yield from (Scanned(value, name, is_value=True) for value in islice(left, 1))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` if a known word is similar, else an empty string."""
    import difflib  # only needed for typing errors

    names = list(known)
    synonym = OTHER_WORDS.get(word)
    near = [synonym] if synonym in names else difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if not near and len(word) > 2:
        near = [name for name in names if name.startswith(word)][:1]
    return f"; did you mean {near[0]}?" if near else ""


class CommandParser(argparse.ArgumentParser):
    """An `argparse` parser for one command. If it has verbs, options may be before or after the verb.

    `default_verb` is used when no verb is given.
    """

    def __init__(self, *args: Any, default_verb: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.default_verb = default_verb
        self.verbs: dict[str, CommandParser] = {}

    def add_verb(self, name: str, *, help: str, **kwargs: Any) -> CommandParser:
        """Add a sub-command; its namespace has `verb` set to `name`."""
        if not self.verbs:
            self._added = self.add_subparsers(dest="verb", required=True, metavar="verb", parser_class=CommandParser)
        made: CommandParser = self._added.add_parser(name, help=help, **kwargs)
        self.verbs[name] = made
        return made

    @property
    def takes_value(self) -> dict[str, bool]:
        """Every option of this command and of its verbs: whether a value follows."""
        found = {name: action.nargs != 0 for name, action in self._option_string_actions.items()}
        for verb in self.verbs.values():
            for name, has_value in verb.takes_value.items():
                found[name] = found.get(name, False) or has_value
        return found

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        words = self.arranged(list(sys.argv[1:] if args is None else args))
        options, rest = self.parse_known_args(words, namespace)
        if rest:
            leaf = self.verbs.get(words[0], self) if words else self
            leaf.error(f"unexpected arguments: {' '.join(rest)!r}")
        return options

    def arranged(self, words: Sequence[str]) -> list[str]:
        """The same words with the verb (or the default verb) in front; exits at an unknown verb or option."""
        if not self.verbs:
            self._check_options(words)
            return list(words)
        try:
            scanned = list(scan(words, self.takes_value))
        except UnknownOptionError as unknown:
            self._refuse_option(str(unknown), words)
        place = next((number for number, word in enumerate(scanned) if word.option is None), None)
        if place is None:
            if any(word.option in HELP for word in scanned):
                return ["--help"]
            if self.default_verb is None:
                self.print_help(sys.stderr)
                self.exit(2)
            return [self.default_verb, *words]
        verb, others = words[place], [*words[:place], *words[place + 1 :]]
        if verb not in self.verbs:
            self._refuse_verb(verb)
        self.verbs[verb]._check_options(others)
        return [verb, *others]

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: {message}\n`{self.prog} --help` explains it.\n")

    def _check_options(self, words: Sequence[str]) -> None:
        try:
            list(scan(words, self.takes_value))
        except UnknownOptionError as unknown:
            self._refuse_option(str(unknown), words)

    def _refuse_option(self, name: str, words: Sequence[str]) -> NoReturn:
        verb = self.verbs.get(next((word for word in words if word in self.verbs), ""))
        if verb is not None:
            verb._refuse_option(name, ())
        bare = name.lstrip("-")
        if bare in self.verbs:
            self._refuse(f"there is no option {name}; did you mean `{self.prog} {bare}`?")
        known = [option for option in self.takes_value if option.startswith("--")]
        self._refuse(f"there is no option {name}{did_you_mean(f'--{bare}', known)}")

    def _refuse_verb(self, word: str) -> NoReturn:
        hint = did_you_mean(word, self.verbs)
        if not hint and self.default_verb is not None:
            hint = f"; did you mean `{self.prog} {self.default_verb} {word}`?"
        self._refuse(f"there is no {word!r} here{hint or '.'} There are {_list_names(self.verbs)}.")

    def _refuse(self, text: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {text}\n`{self.prog} --help` explains it.\n")


def _list_names(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _is_option(word: str) -> bool:
    """Whether a word is an option; a single dash and negative numbers are plain words."""
    return len(word) > 1 and word.startswith("-") and not word[1:].replace(".", "", 1).isdigit()


def _find_option(word: str, options: Mapping[str, bool]) -> tuple[str, bool]:
    """The option that a word names, and whether its value is in the same word. Long names may be abbreviated."""
    name, equals, _ = word.partition("=")
    if name in options:
        return name, bool(equals)
    if word.startswith("--"):
        longer = [option for option in options if option.startswith(name)]
        if len(longer) == 1:
            return longer[0], bool(equals)
        raise UnknownOptionError(name)
    if f"-{name}" in options:
        # -bootstrap-server, as Kafka's tools allow, would be read as -b with the value ootstrap-server.
        raise UnknownOptionError(name)
    short = word[:2]
    if short not in options:
        raise UnknownOptionError(name)
    if options[short]:
        return short, True
    return _find_option(f"-{word[2:]}", options)
