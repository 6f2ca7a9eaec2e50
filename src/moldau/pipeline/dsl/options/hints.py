"""Help for whoever calls a method that is not there: Java's spelling, a slip, or the right one on the wrong thing."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

__all__ = ["FOLD_FIRST", "Hinting"]

FOLD_FIRST = "fold the groups first, with count(), reduce(...) or aggregate(...)"
"""What grouped streams say, with windows or without, to whom they are no stream and no table."""

HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
RESERVED = {"foreach": "for_each", "as": "as_", "with": "with_"}
CLOSE = 0.75
"""How alike two names must be for one to be a slip of the other."""


class _HintingType(type):
    """The same for what is called on the class itself, such as `Stores.inMemoryKeyValueStore`."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> NoReturn:
            raise _no_attribute(cls, cls, name)


class Hinting(metaclass=_HintingType):
    """Says what to call instead of an attribute that does not exist."""

    __slots__ = ()
    hints: ClassVar[dict[str, str]] = {}
    """Methods that belong to something else, and how to get there."""

    if not TYPE_CHECKING:  # a type checker should go on to say that the attribute does not exist

        def __getattr__(self, name: str) -> NoReturn:
            """Called only for what was not found."""
            raise _no_attribute(type(self), self, name)


def _no_attribute(kind: type[Any], owner: object, name: str) -> AttributeError:
    advice = None if name.startswith("__") else _advice(kind, name)
    if advice is None:
        return AttributeError(f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=owner)
    # Without the name, or Python adds a guess of its own behind ours.
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
