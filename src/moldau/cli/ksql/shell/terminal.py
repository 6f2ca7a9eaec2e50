"""The screen: lines of output, a status line at the bottom while a query runs, and the file of SPOOL.

Start at `Terminal.show`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from typing import TextIO

from moldau.cli.tool import ToolError

__all__ = ["Terminal"]

CLEAR_LINE = "\r\x1b[K"
CLEAR_SCREEN = "\x1b[H\x1b[2J\x1b[3J"


class Terminal:
    """Standard output, whether it is a terminal, a pipe or a file."""

    def __init__(self, *, is_interactive: bool) -> None:
        self.is_interactive = is_interactive
        """Whether someone types: errors then stand between results, and not on standard error."""
        self._is_terminal = sys.stdout.isatty()
        self._has_status = False
        self._spool: TextIO | None = None

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns

    def show(self, lines: Iterable[str]) -> None:
        """Print lines at once."""
        self.clear_status()
        text = "".join(f"{line}\n" for line in lines)
        sys.stdout.write(text)
        sys.stdout.flush()
        self._write_spool(text)

    def show_error(self, message: str) -> None:
        if self.is_interactive:
            self.show([message])
            return
        self.clear_status()
        print(message, file=sys.stderr, flush=True)
        self._write_spool(f"{message}\n")

    def show_status(self, text: str) -> None:
        """Show a line that the next output takes the place of; nothing in a pipe or file."""
        if self._is_terminal and not self._has_status:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._has_status = True

    def clear_status(self) -> None:
        if self._has_status:
            sys.stdout.write(CLEAR_LINE)
            self._has_status = False

    def clear(self) -> None:
        if self._is_terminal:
            sys.stdout.write(CLEAR_SCREEN)
            sys.stdout.flush()

    # The file of SPOOL

    @property
    def is_spooling(self) -> bool:
        return self._spool is not None

    def start_spool(self, path: str) -> None:
        """Write all that is shown to a file too; raises `ToolError`."""
        self.stop_spool()
        try:
            self._spool = open(path, "w", encoding="utf-8")  # noqa: SIM115, open until SPOOL OFF
        except OSError as error:
            raise ToolError(f"Cannot SPOOL to file {path}: {error.strerror}") from None

    def stop_spool(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def record_input(self, prompt: str, line: str) -> None:
        """A typed line, which the terminal has shown already."""
        self._write_spool(f"{prompt}{line}\n")

    def _write_spool(self, text: str) -> None:
        if self._spool is None:
            return
        try:
            self._spool.write(text)
            self._spool.flush()
        except OSError as error:
            self._spool = None
            print(f"SPOOL has ended, the file cannot be written: {error.strerror}", file=sys.stderr)
