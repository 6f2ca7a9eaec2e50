"""Typed lines, with history and completion by readline; lines of a pipe come as they are. Start at `LineEditor`."""

from __future__ import annotations

import contextlib
import select
import sys
from collections.abc import Callable
from pathlib import Path

from moldau.cli.ksql.shell.completion import DELIMITERS

try:
    import readline
except ImportError:  # on systems without it, lines are read without history
    readline = None  # type: ignore[assignment]

__all__ = ["LineEditor"]

HISTORY_LINES = 1000


class LineEditor:
    """Standard input as lines."""

    def __init__(self, history_file: Path, complete: Callable[[str], list[str]]) -> None:
        self.is_terminal = sys.stdin.isatty()
        self._history_file = history_file
        self._complete = complete
        self._found: list[str] = []
        if self.is_terminal and readline is not None:
            self._set_up()

    def _set_up(self) -> None:
        readline.set_auto_history(False)
        readline.set_completer(self._completion)
        readline.set_completer_delims(DELIMITERS)
        # libedit, which macOS has in place of readline, has other words for the same.
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        with contextlib.suppress(OSError):
            readline.read_history_file(self._history_file)

    def _completion(self, prefix: str, number: int) -> str | None:
        if number == 0:
            self._found = self._complete(prefix)
            if len(self._found) == 1:
                self._found[0] += " "
        return self._found[number] if number < len(self._found) else None

    def read(self, prompt: str) -> str:
        """The next line; raises `EOFError` at the end, and `KeyboardInterrupt`."""
        if self.is_terminal:
            return input(prompt)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")

    def has_more(self) -> bool:
        """Whether further input waits already, as after pasting several lines."""
        return bool(select.select([sys.stdin], [], [], 0)[0])

    def remember(self, text: str) -> None:
        """Add an input to the history; its lines become one, unless a comment would swallow the rest."""
        if not self.is_terminal or readline is None:
            return
        lines = [text] if "\n" not in text else text.split("\n") if "--" in text else [" ".join(text.split("\n"))]
        for line in lines:
            readline.add_history(line)

    def history(self) -> list[str]:
        if not self.is_terminal or readline is None:
            return []
        return [readline.get_history_item(number) for number in range(1, readline.get_current_history_length() + 1)]

    def close(self) -> None:
        """Save the history."""
        if self.is_terminal and readline is not None:
            readline.set_history_length(HISTORY_LINES)
            with contextlib.suppress(OSError):
                readline.write_history_file(self._history_file)
