"""The findings of a comparison, in a form that can be returned and shared without copying.

Types may use one another many times. If every use copied the findings of the type below it, their number would
double with each level, and a schema of two kilobytes would use up all memory. So findings form a graph: joining two
of them makes a node with two edges, and `distinct` visits each node once. Start at `Findings`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moldau.schemas.incompatibility import Incompatibility

__all__ = ["NOTHING", "Findings", "join_findings"]


class Findings:
    """A graph of findings. Immutable; true if there is at least one finding."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: Incompatibility | Findings) -> None:
        self._parts: Final = tuple(part for part in parts if isinstance(part, Incompatibility) or part)

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __add__(self, other: Findings) -> Findings:
        if not other:
            return self
        return Findings(self, other) if self else other

    def distinct(self) -> list[Incompatibility]:
        """Every finding once, in the order in which they were found."""
        found: dict[Incompatibility, None] = {}
        seen: set[int] = set()
        waiting: list[Incompatibility | Findings] = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Incompatibility):
                found[part] = None
            elif id(part) not in seen:
                seen.add(id(part))
                waiting.extend(reversed(part._parts))
        return list(found)


NOTHING: Final = Findings()


def join_findings(parts: Iterable[Incompatibility | Findings]) -> Findings:
    """All findings of the parts, in their order."""
    return Findings(*parts)
