"""Parses options with the rules of Kafka's tools, which differ from those of Python's own parsers.

`--opt value`, `--opt=value` and `-opt value` are the same, options may repeat, some have an optional
value, and a word that belongs to no option is stored and not an error.
This module does not print or exit: `cli.tool` does. Start at `Parser.parse`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Option", "Parsed", "Parser", "UsageError", "parse_bool"]

HELP_WIDTH = 100
DESCRIPTION_COLUMN = 42


class UsageError(Exception):
    """The command line is invalid; the usage is printed after the message."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a tool."""

    name: str
    help: str
    value: str | None = None
    """The name of the value in the usage, such as `topic`; `None` makes the option a flag."""
    type: Callable[[str], Any] = str
    default: Any = None
    aliases: tuple[str, ...] = ()
    """Other names with the same meaning, mostly from older releases; not shown in the usage."""
    takes_many: bool = False
    """Takes every following word up to the next option as a value, as `--producer-props a=b c=d` does."""
    bare_value: Any = None
    """The value used when none is given; `None` makes a value mandatory."""
    is_required: bool = False
    is_hidden: bool = False

    @property
    def is_flag(self) -> bool:
        return self.value is None


@dataclass(slots=True)
class Parsed:
    """A parsed command line: values by the options' canonical names."""

    options: dict[str, Option]
    found: dict[str, list[Any]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    """Words that belong to no option, each with the option it followed: see `words_after`."""
    word_owners: list[str | None] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    """The names of all options in the order given, including repetitions."""

    def has(self, name: str) -> bool:
        return name in self.found

    def value(self, name: str) -> Any:
        """The one value of an option, or its default."""
        values = self.found.get(name)
        if not values:
            return self.options[name].default
        if len(values) > 1:
            raise UsageError(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0]

    def values(self, name: str) -> list[Any]:
        return self.found.get(name, [])

    def words_after(self, name: str) -> list[str]:
        """The words without an option that directly followed the given option's value."""
        return [word for word, owner in zip(self.words, self.word_owners, strict=True) if owner == name]

    def require(self, *names: str) -> None:
        for name in names:
            if not self.has(name):
                raise UsageError(f'Missing required argument "[{name}]"')

    def forbid(self, names: Iterable[str], *, because_of: str) -> None:
        """Raise `UsageError` if `because_of` and one of `names` are both given."""
        if not self.has(because_of):
            return
        for name in names:
            if self.has(name):
                raise UsageError(f'Option "[{because_of}]" can\'t be used with option "[{name}]"')

    def exactly_one(self, names: Sequence[str], complaint: str) -> str:
        given = [name for name in names if self.has(name)]
        if len(given) != 1:
            raise UsageError(complaint)
        return given[0]


class Parser:
    """The options of one tool, and its help text."""

    def __init__(self, description: str, options: Sequence[Option], *, epilog: str = "") -> None:
        self.description = description
        self.epilog = epilog
        self.options = {option.name: option for option in (*options, *_COMMON)}
        self._by_name = {name: option for option in self.options.values() for name in (option.name, *option.aliases)}

    def parse(self, argv: Sequence[str]) -> Parsed:
        """Parse a command line; raises `UsageError` with Kafka's message."""
        parsed = Parsed(self.options)
        words = _Words(argv)
        owner: str | None = None
        for word in words:
            if word == "--":
                parsed.words.extend(words)
                parsed.word_owners.extend([None] * (len(parsed.words) - len(parsed.word_owners)))
            elif not _looks_like_option(word):
                parsed.words.append(word)
                parsed.word_owners.append(owner)
            else:
                owner = self._take(word, words, parsed)
        return parsed

    def check_required(self, parsed: Parsed) -> None:
        parsed.require(*(option.name for option in self.options.values() if option.is_required))

    def usage(self) -> str:
        """The description and a table of the options, in alphabetical order."""
        shown = sorted((o for o in self.options.values() if not o.is_hidden), key=lambda option: option.name)
        lines = [self.description, "", _row("Option", "Description"), _row("------", "-----------")]
        lines += [_row(_left_column(option), _right(option)) for option in shown]
        if self.epilog:
            lines += ["", self.epilog.strip("\n")]
        return "\n".join(lines)

    def _take(self, word: str, words: _Words, parsed: Parsed) -> str:
        name, equals, attached = word.lstrip("-").partition("=")
        option = self._by_name.get(name)
        if option is None:
            raise UsageError(f"{name} is not a recognized option")
        values = parsed.found.setdefault(option.name, [])
        parsed.order.append(option.name)
        if option.is_flag:
            if equals:
                raise UsageError(f"Option {name} takes no value, but {attached!r} was given")
            return option.name
        raw = [attached] if equals else self._following(option, name, words)
        if option.takes_many:
            raw += words.take_while(lambda following: not _looks_like_option(following))
        values.extend(_convert(option, text) for text in raw)
        return option.name

    def _following(self, option: Option, name: str, words: _Words) -> list[str]:
        """The value in the next word. An optional value cannot begin with a dash. A mandatory value can (`--time -1`,
        `--shift-by -2`), unless it is the name of an option: then the value is missing."""
        following = words.peek()
        if option.bare_value is not None:
            return [option.bare_value if following is None or _looks_like_option(following) else next(words)]
        if following is None or (_looks_like_option(following) and self._names_option(following)):
            raise UsageError(f"Option {name} requires an argument")
        return [next(words)]

    def _names_option(self, word: str) -> bool:
        return word.lstrip("-").partition("=")[0] in self._by_name


class _Words(Iterator[str]):
    """An iterator over the words of a command line, with one word of lookahead."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = list(argv)
        self._position = 0

    def __next__(self) -> str:
        if self._position == len(self._argv):
            raise StopIteration
        self._position += 1
        return self._argv[self._position - 1]

    def peek(self) -> str | None:
        return self._argv[self._position] if self._position < len(self._argv) else None

    def take_while(self, accept: Callable[[str], bool]) -> list[str]:
        taken = []
        while (following := self.peek()) is not None and accept(following):
            taken.append(next(self))
        return taken


def parse_bool(text: str) -> bool:
    """Parse a boolean like Java: only `true`, in upper or lower case, is true."""
    return text.strip().lower() == "true"


def _looks_like_option(word: str) -> bool:
    """Whether a word begins with a dash; a single dash is a value."""
    return len(word) > 1 and word.startswith("-")


def _convert(option: Option, text: str) -> Any:
    try:
        return option.type(text)
    except ValueError as error:
        detail = str(error) if option.type not in (int, float) else ""
        complaint = f"Cannot parse argument '{text}' of option {option.name}"
        raise UsageError(f"{complaint}: {detail}" if detail else complaint) from None


def _left_column(option: Option) -> str:
    if option.is_flag:
        return f"--{option.name}"
    label = f"<{option.value}>" if option.bare_value is None else f"[{option.value}]"
    return f"--{option.name} {label}"


def _right(option: Option) -> str:
    text = f"REQUIRED: {option.help}" if option.is_required else option.help
    if option.default is not None:
        text += f" (default: {option.default})"
    return text


def _row(left: str, right: str) -> str:
    wrapped = textwrap.wrap(right, HELP_WIDTH - DESCRIPTION_COLUMN) or [""]
    first = f"{left:<{DESCRIPTION_COLUMN}}" if len(left) < DESCRIPTION_COLUMN else f"{left}\n{'':{DESCRIPTION_COLUMN}}"
    return "\n".join([first + wrapped[0], *(" " * DESCRIPTION_COLUMN + line for line in wrapped[1:])])


_COMMON = (
    Option("help", "Show this text and leave."),
    Option("version", "Show the version and leave."),
)
