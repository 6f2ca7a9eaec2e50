"""Hints in the error for an unknown method: Java's spelling, a typo, or a method of another class."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

__all__ = ["FOLD_FIRST", "Hinting"]

FOLD_FIRST = "fold the groups first, with count(), reduce(...) or aggregate(...)"
"""The hint of grouped streams, with or without windows, for methods that only streams or tables have."""

HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
RESERVED = {"foreach": "for_each", "as": "as_", "with": "with_"}
CLOSE = 0.75
"""The minimum similarity of two names at which one is taken for a typo of the other."""


class _HintingType(type):
    """Adds hints for attributes of the class itself, such as `Stores.inMemoryKeyValueStore`."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> NoReturn:
            raise _no_attribute(cls, cls, name)


class Hinting(metaclass=_HintingType):
    """Base class whose `AttributeError` for an unknown attribute names the method to call instead."""

    __slots__ = ()
    hints: ClassVar[dict[str, str]] = {}
    """Names of methods that other classes have, each with the hint to show for it."""

    if not TYPE_CHECKING:  # hidden from type checkers, so that they still report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise `AttributeError` with a hint; Python calls this only for attributes that do not exist."""
            raise _no_attribute(type(self), self, name)


def _no_attribute(kind: type[Any], owner: object, name: str) -> AttributeError:
    advice = None if name.startswith("__") else _advice(kind, name)
    if advice is None:
        return AttributeError(f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=owner)
    # name=None: otherwise Python appends its own suggestion to our hint.
    return AttributeError(f"{kind.__name__} has no {name}; {advice}", name=None, obj=owner)


def _advice(kind: type[Any], name: str) -> str | None:
    spelled = RESERVED.get(name) or HUMP.sub("_", name).lower()
    public = [one for one in dir(kind) if not one.startswith("_") and one != "hints"]
    if spelled != name and spelled in public:
        return f"in Python it is {spelled}"
    if spelled in kind.hints:
        return str(kind.hints[spelled])
    joined = {one.replace("_", ""): one for one in public}
    meant = joined.get(spelled.replace("_", "")) or next(iter(get_close_matches(spelled, public, 1, CLOSE)), None)
    return None if meant is None else f"did you mean {meant}?"
