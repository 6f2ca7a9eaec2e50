"""The line of the user's program that created a node, for error messages."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import PurePath

PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Origin:
    """A line of the user's program; line 0 where there is none."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{PurePath(self.file).name}:{self.line}" if self.line else "(unknown place)"

    @property
    def in_brackets(self) -> str:
        """The line behind a node's name, ` (program.py:7)`; nothing for nodes of SQL, which no line created."""
        return f" ({self})" if self.line else ""


UNKNOWN = Origin()


def callers_origin() -> Origin:
    """The innermost line on the stack that is not part of this package."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module != PACKAGE and not module.startswith(PACKAGE + "."):
            return Origin(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return UNKNOWN
