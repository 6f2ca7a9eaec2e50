"""The loop of the terminal: read lines, run what is complete, until Ctrl-D or EXIT. Start at `run_shell`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import moldau
from moldau.cli.ksql.shell.commands import Command
from moldau.cli.ksql.shell.input_lines import InputBuffer
from moldau.cli.ksql.shell.line_editor import LineEditor
from moldau.cli.ksql.shell.session import Session
from moldau.cli.ksql.shell.terminal import Terminal

__all__ = ["banner", "run_shell"]

PROMPT, CONTINUATION = "ksql> ", ">"


def banner(url: str, info: Mapping[str, Any] | None) -> list[str]:
    """What is shown first; `info` is None if the server does not answer."""
    lines = ["", "  moldau ksql: streaming SQL over topics", ""]
    version = "<unknown>" if info is None else info.get("version", "<unknown>")
    lines.append(f"CLI v{moldau.__version__}, Server v{version} located at {url}")
    lines.append(f"Server Status: {'<unknown>' if info is None else info.get('serverStatus', '<unknown>')}")
    if info is not None and version != moldau.__version__:
        lines += ["", f"WARNING: CLI and server version don't match. This may lead to unexpected errors ({version})."]
    return [*lines, "", "HELP shows the commands, TAB completes, EXIT or Ctrl-D leaves.", ""]


def run_shell(session: Session, editor: LineEditor, terminal: Terminal) -> int:
    """Read and run until the end of input; failures are shown and the session goes on."""
    buffer = InputBuffer()
    while True:
        prompt = PROMPT if buffer.is_empty else CONTINUATION
        try:
            line = editor.read(prompt)
            terminal.record_input(prompt, line)
            given = buffer.feed(line, is_last=editor.is_terminal and not editor.has_more())
        except EOFError:
            rest = buffer.take()
            if rest and not editor.is_terminal:
                session.run(rest)
            break
        except KeyboardInterrupt:
            if not editor.is_terminal:
                raise  # a script that is piped in; only at a prompt does Ctrl-C mean "not this line"
            buffer.take()
            terminal.show([""])
            continue
        if given is None:
            continue
        editor.remember(line if isinstance(given, Command) else given)
        if given == Command("EXIT"):
            terminal.show(["Exiting ksqlDB."])
            return 0
        _run(session, given, terminal)
    if editor.is_terminal:
        terminal.show(["", "Exiting ksqlDB."])
    return 0


def _run(session: Session, given: str | Command, terminal: Terminal) -> None:
    try:
        session.run(given)
    except KeyboardInterrupt:
        # The request may have reached the server, which then carries it out.
        terminal.show(["", "Interrupted"])
