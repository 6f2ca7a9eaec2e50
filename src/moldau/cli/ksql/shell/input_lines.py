"""Lines of input become statements and commands: a statement ends with `;`, however many lines it has.

Start at `InputBuffer` for lines as they are typed, at `split_input` for a whole text.
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.cli.ksql.shell.commands import Command, parse_command
from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.syntax.splitting import split_statements

__all__ = ["InputBuffer", "split_input"]


class InputBuffer:
    """What was typed since the last complete statement."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @property
    def is_empty(self) -> bool:
        return not self._lines

    def feed(self, line: str, *, is_last: bool = False) -> str | Command | None:
        """What is complete with this line, None if more must follow.

        `is_last` tells that nobody has typed further yet: then an empty line ends a statement that lacks only its `;`.
        """
        if self.is_empty:
            command = parse_command(line)
            if command is not None or not _has_content(line):
                return command
        self._lines.append(line)
        if ";" in line:
            split = split_statements("\n".join(self._lines))
            return self.take() if split.rest is None and not split.is_open else None
        if is_last and not line.strip() and _lacks_only_semicolon("\n".join(self._lines)):
            return self.take()
        return None

    def take(self) -> str:
        """All that is there, complete or not."""
        text = "\n".join(self._lines).strip()
        self._lines.clear()
        return text


def split_input(text: str) -> Iterator[str | Command]:
    """The commands of a text and the statements between them; the last statement may lack its `;`."""
    buffer, statements = InputBuffer(), ""
    for line in text.splitlines():
        found = buffer.feed(line)
        if isinstance(found, Command):
            if statements:
                yield statements
            statements = ""
            yield found
        elif found is not None:
            statements = f"{statements}\n{found}" if statements else found
    rest = buffer.take()
    if statements or rest:
        yield "\n".join(filter(None, (statements, rest)))


def _has_content(line: str) -> bool:
    split = split_statements(line)
    return bool(split.statements) or split.rest is not None or split.is_open


def _lacks_only_semicolon(text: str) -> bool:
    try:
        return bool(parse(text, allow_missing_semicolon=True))
    except KsqlParseError:
        # A variable has no value here; whoever writes one ends the statement with `;`.
        return False
