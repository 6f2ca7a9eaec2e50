"""Shared code of all Kafka-style tools: usage, exit codes, log lines, and error handling.

A tool is a parser and a function; a user's mistake is reported in one line, never as a traceback.
Start at `run`.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import FrameType
from typing import Any

import moldau
from moldau.cli.options import Parsed, Parser, UsageError
from moldau.core.errors import MoldauError

__all__ = [
    "CLOSE_S",
    "INTERRUPTED_S",
    "OutputError",
    "Terminated",
    "ToolError",
    "catch_stop_signals",
    "default_stop_signals",
    "end_on_second_signal",
    "exit_code_of",
    "forget_output",
    "interrupts",
    "log_line",
    "open_streams",
    "run",
    "run_body",
    "say",
    "time_to_close_s",
    "warn_about_stray_words",
]

INTERRUPTED, TERMINATED = 130, 143
"""The exit codes that a shell reports for a command ended by Ctrl-C or SIGTERM."""

INTERRUPTED_S = 1.0
"""How long a broker may take to answer once a signal has ended the tool."""

CLOSE_S = 10.0
"""How long closing a consumer may take at the end of its work."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM: ends a tool as Ctrl-C does, with its own exit code."""


class OutputError(MoldauError):
    """Standard output cannot be written: it is closed, or its disk is full."""


class ToolError(MoldauError):
    """A tool cannot continue; the message is for the user."""


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
        return run_body(lambda: body(parsed), report)
    except UsageError as error:
        if str(error):
            print(error, file=sys.stderr)
        print(parser.usage(), file=sys.stderr)
        return 1


def run_body(body: Callable[[], int | None], report: Callable[[MoldauError], None] | None = None) -> int:
    """Run `body` and turn its outcome into an exit code; the arguments are already parsed."""
    open_streams()
    try:
        with interrupts():
            code = body() or 0
            sys.stdout.flush()
            return code
    except OutputError as error:
        forget_output()
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except MoldauError as error:
        (report or _report)(error)
        return 1
    except KeyboardInterrupt as interrupt:
        return exit_code_of(interrupt)
    except BrokenPipeError:
        forget_output()
        return 1


def open_streams() -> None:
    """Make a failing standard output raise `OutputError`, and replace streams that are closed (`>&-`).

    Python sets closed streams to None, and the next file or socket opened would get their descriptors.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115, for the rest of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        # Opened read-only, so that writing fails with EBADF, as on a closed descriptor.
        output = _Output(os.open(os.devnull, os.O_RDONLY), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(output))
    elif (given := sys.__stdout__) is not None and sys.stdout is given:
        given.flush()
        output = _Output(given.fileno(), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(output), given.encoding, given.errors, line_buffering=given.line_buffering
        )


class _Output(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"cannot write to standard output: {error.strerror}") from None


def time_to_close_s() -> float:
    """How long a broker may take, for `finally` blocks: shorter while Ctrl-C or SIGTERM is being handled."""
    return INTERRUPTED_S if isinstance(sys.exception(), KeyboardInterrupt) else CLOSE_S


def exit_code_of(interrupt: KeyboardInterrupt) -> int:
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED


@contextmanager
def interrupts() -> Iterator[None]:
    """In this block SIGTERM raises an exception as Ctrl-C does; a second signal of either ends the process at once."""

    came: list[type[KeyboardInterrupt]] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        end_on_second_signal()
        came.append(Terminated if number == signal.SIGTERM else KeyboardInterrupt)
        raise came[0]

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    for number in STOP_SIGNALS:
        signal.signal(number, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        # The old handlers are not restored: the next signal must end the rest of the shutdown.
        raise
    except SystemError:
        # confluent_kafka loses the exception of a signal that arrives while it calls the log callback.
        if came:
            raise came[0] from None
        raise
    except BaseException:
        _restore(before)
        raise
    else:
        _restore(before)


def catch_stop_signals(stop: Callable[[], None]) -> None:
    """Call `stop` on SIGINT or SIGTERM, for tools with their own shutdown; a second signal ends the process."""

    def caught(number: int, frame: FrameType | None) -> None:
        end_on_second_signal()
        stop()

    for number in STOP_SIGNALS:
        signal.signal(number, caught)


def default_stop_signals() -> None:
    """Restore Python's default handlers: Ctrl-C raises, SIGTERM ends the process."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_on_second_signal() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _report(error: MoldauError) -> None:
    print(f"Error: {error}", file=sys.stderr)


def forget_output() -> None:
    """Redirect stdout to /dev/null, so that later flushes do not fail: its reader has closed it, as `head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str = "") -> None:
    """Print to stdout and flush, so that programs that read the output get each line at once."""
    print(text, flush=True)


def log_line(level: str, text: str, source: str) -> None:
    """Write a line to stderr in Kafka's log4j format."""
    now = datetime.now()
    stamp = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"
    print(f"[{stamp}] {level} {text} ({source})", file=sys.stderr, flush=True)


def warn_about_stray_words(parsed: Parsed, used: Sequence[str] = ()) -> None:
    """Print the words that belong to no option: Kafka's tools ignore them, which hides typing errors."""
    stray = [word for word in parsed.words if word not in used]
    if stray:
        print(f"Ignored, as they belong to no option: {' '.join(stray)}", file=sys.stderr)
