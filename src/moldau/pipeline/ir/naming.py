"""The names of nodes, stores and internal topics, numbered as Kafka Streams numbers them.

One counter serves a whole topology, and a name that the user chose still consumes a number: so the other generated
names do not change, and a topology ported from Java keeps its names. Start at `Names`.
"""

from __future__ import annotations

import re

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.origin import callers_origin

__all__ = ["Names", "checked_name"]

MAX_LENGTH = 249
LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def checked_name(name: str) -> str:
    """The name, if it is valid as part of a topic name; raises `TopologyError` otherwise."""
    if not isinstance(name, str) or not LEGAL.fullmatch(name) or name in {".", ".."} or len(name) > MAX_LENGTH:
        raise TopologyError(
            f"{name!r} cannot be a name: letters, digits, '.', '_' and '-' are allowed, at most {MAX_LENGTH} of them",
            callers_origin(),
        )
    return name


class Names:
    """Generates the names of one topology."""

    def __init__(self) -> None:
        self._used = 0

    def _number(self) -> str:
        self._used += 1
        return f"{self._used - 1:010d}"

    def processor(self, prefix: str) -> str:
        """The next name of this prefix."""
        return f"{prefix}{self._number()}"

    def store(self, prefix: str) -> str:
        """The next name of a store; the prefix is that of the operator it belongs to."""
        return f"{prefix}STATE-STORE-{self._number()}"

    def given_or_next(self, name: str | None, prefix: str) -> str:
        """The name the user gave, or the next one; either way a number is consumed."""
        generated = self.processor(prefix)
        return generated if name is None else checked_name(name)

    def suffixed_or_next(self, name: str | None, suffix: str, prefix: str) -> str:
        """As `given_or_next`, for one of several names derived from the same given name."""
        generated = self.processor(prefix)
        return generated if name is None else checked_name(name + suffix)
