"""The commands of the terminal that are not SQL: HELP, OUTPUT, SPOOL and so on. Start at `parse_command`."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["COMMANDS", "Command", "help_lines", "parse_command"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command that was typed, and what follows its name, without quotes."""

    name: str
    argument: str = ""


COMMANDS: dict[str, tuple[str, str]] = {
    "HELP": ("HELP", "Show this text."),
    "CLEAR": ("CLEAR", "Clear the terminal."),
    "OUTPUT": ("OUTPUT [JSON|TABULAR]", "Show or set how results are shown."),
    "HISTORY": ("HISTORY", "Show what was typed before."),
    "VERSION": ("VERSION", "Show the version of this program."),
    "SERVER": ("SERVER [url]", "Show the server, or go to another."),
    "RUN SCRIPT": ("RUN SCRIPT 'file'", "Send a file as one request; no queries."),
    "SPOOL": ("SPOOL 'file' | SPOOL OFF", "Write input and output to a file too."),
    "REQUEST-PIPELINING": ("REQUEST-PIPELINING [ON|OFF]", "OFF: statements wait for earlier ones."),
    "SET CLI WRAP": ("SET CLI WRAP ON|OFF", "Wrap long rows, or clip them."),
    "SET CLI COLUMN-WIDTH": ("SET CLI COLUMN-WIDTH n", "The width of columns; 0 fits the screen."),
    "EXIT": ("EXIT", "Leave. Ctrl-D does the same."),
}
"""Every command: how it is written, and what it does."""

_NAMES = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in sorted(COMMANDS, key=len, reverse=True))
_PATTERN = re.compile(rf"\s*(?P<name>{_NAMES}|QUIT)(?:\s+(?P<argument>.*?))?\s*;?\s*", re.IGNORECASE)


def parse_command(line: str) -> Command | None:
    """The command in a line, None if the line is something else; `;` may follow."""
    found = _PATTERN.fullmatch(line)
    if found is None:
        return None
    name = " ".join(found["name"].upper().split())
    return Command("EXIT" if name == "QUIT" else name, _without_quotes(found["argument"] or ""))


def _without_quotes(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def help_lines() -> list[str]:
    width = max(len(usage) for usage, _ in COMMANDS.values())
    return [
        "Statements end with `;` and may go over several lines.",
        "TAB completes, Ctrl-C ends a query or clears the input.",
        "",
        "    SHOW STREAMS;                        also TABLES, TOPICS, QUERIES, FUNCTIONS",
        "    DESCRIBE orders;                     the columns of a stream or table",
        "    PRINT 'orders' FROM BEGINNING;       the records of a topic",
        "    SELECT * FROM orders EMIT CHANGES;   the rows of a stream as they come",
        "    SET 'auto.offset.reset'='earliest';  queries begin with the oldest records",
        "",
        "Commands of this program, in any case, with or without `;`:",
        "",
        *(f"    {usage:<{width}}  {text}" for usage, text in COMMANDS.values()),
    ]
