"""Functions of users as they travel with a plan: the text of their modules. Start at `FunctionLibrary`.

A plan is data, so that any process can run it; the functions it calls must come along. `pipeline.cores` loads them
where the plan runs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

__all__ = ["FunctionLibrary"]


@dataclass(frozen=True, slots=True)
class FunctionLibrary:
    """The modules of a folder: equal text is the same library, wherever it was read."""

    name: str
    """Where it was read, for messages."""
    modules: tuple[tuple[str, str], ...] = field(repr=False)
    """The text of each module, by its name."""

    @property
    def digest(self) -> str:
        """Tells one text from another."""
        return hashlib.sha256(repr(self.modules).encode()).hexdigest()[:16]
