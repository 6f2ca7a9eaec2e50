"""Help for whoever calls a method that is not there: Java's spelling, or the right method on the wrong thing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, NoReturn

__all__ = ["Hinting"]

HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
RESERVED = {"foreach": "for_each", "as": "as_", "with": "with_"}


class Hinting:
    """Says what to call instead of an attribute that does not exist."""

    hints: ClassVar[dict[str, str]] = {}
    """Methods that belong to something else, and how to get there."""

    if not TYPE_CHECKING:  # a type checker should go on to say that the attribute does not exist

        def __getattr__(self, name: str) -> NoReturn:
            """Called only for what was not found."""
            raise AttributeError(_advice(type(self), name), name=name, obj=self)


def _advice(kind: type[Hinting], name: str) -> str:
    spelled = RESERVED.get(name) or HUMP.sub("_", name).lower()
    if spelled != name and hasattr(kind, spelled):
        return f"{kind.__name__} has no {name}; in Python it is {spelled}"
    if spelled in kind.hints:
        return f"{kind.__name__} has no {name}; {kind.hints[spelled]}"
    return f"{kind.__name__!r} object has no attribute {name!r}"
