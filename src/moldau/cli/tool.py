"""The frame around every Kafka-style tool: usage, exit codes, log lines, and what becomes of errors.

A tool is a parser and a function; a user's mistake ends in one clear line, never in a traceback.
Start at `run`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime

import moldau
from moldau.cli.options import Parsed, Parser, UsageError
from moldau.core.errors import MoldauError

__all__ = ["INTERRUPTED", "ToolError", "ended", "forget_output", "log_line", "run", "say", "warn_about_stray_words"]

INTERRUPTED = 130


class ToolError(MoldauError):
    """A tool cannot go on; the message is for the person at the terminal."""


def run(
    parser: Parser,
    body: Callable[[Parsed], int | None],
    argv: Sequence[str] | None,
    *,
    needs_arguments: bool = True,
    report: Callable[[MoldauError], None] | None = None,
) -> int:
    """Parse, run `body`, and turn every outcome into an exit code.

    `report` prints a failure in the tool's own form; without it the message goes to stderr.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if needs_arguments and not words:
            raise UsageError("")
        parsed = parser.parse(words)
        if parsed.has("help"):
            raise UsageError("")
        if parsed.has("version"):
            print(f"{moldau.__version__} (moldau)")
            return 0
        parser.check_required(parsed)
        return ended(lambda: body(parsed), report)
    except UsageError as error:
        if str(error):
            print(error, file=sys.stderr)
        print(parser.usage(), file=sys.stderr)
        return 1


def ended(body: Callable[[], int | None], report: Callable[[MoldauError], None] | None = None) -> int:
    """Run `body` and turn its outcome into an exit code, whoever has parsed the words for it."""
    try:
        return body() or 0
    except MoldauError as error:
        (report or _report)(error)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        forget_output()
        return 1


def _report(error: MoldauError) -> None:
    print(f"Error: {error}", file=sys.stderr)


def forget_output() -> None:
    """Whoever read our output has left, as `head` does; the interpreter must not try to flush into it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str = "") -> None:
    """Print to stdout at once, so that scripts that read along see each line."""
    print(text, flush=True)


def log_line(level: str, text: str, source: str) -> None:
    """Write a line to stderr in the form of Kafka's log4j pattern."""
    now = datetime.now()
    stamp = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"
    print(f"[{stamp}] {level} {text} ({source})", file=sys.stderr, flush=True)


def warn_about_stray_words(parsed: Parsed, used: Sequence[str] = ()) -> None:
    """Name the words that no option claimed: Kafka's tools pass over them, which hides typing mistakes."""
    stray = [word for word in parsed.words if word not in used]
    if stray:
        print(f"Ignored, as they belong to no option: {' '.join(stray)}", file=sys.stderr)
