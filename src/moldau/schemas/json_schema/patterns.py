"""Regular expressions of `patternProperties`, searched in linear time and compiled once per comparison.

A short pattern may need a large automaton (`a{1000}`), so compiling counts as effort and has a memory limit.
Start at `Patterns.match`.
"""

from __future__ import annotations

from typing import Any, Final

import re2

from moldau.schemas.pairs import Effort

__all__ = ["Patterns"]

_MAX_BYTES: Final = 512 * 1024
_STEPS_PER_CHARACTER: Final = 10
_NAME_CHARACTERS_PER_STEP: Final = 100


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_BYTES
    return options


_OPTIONS: Final = _options()


class Patterns:
    """The compiled patterns of one comparison."""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._compile: dict[str, Any] = {}

    def match(self, pattern: str, name: str) -> bool:
        """Whether the pattern occurs in a name. Patterns that RE2 does not support (look-around) match nothing."""
        if pattern not in self._compile:
            self._effort.spend(_STEPS_PER_CHARACTER * len(pattern))
            self._compile[pattern] = _compile(pattern)
        self._effort.spend(1 + len(name) // _NAME_CHARACTERS_PER_STEP)
        compiled = self._compile[pattern]
        return compiled is not None and bool(compiled.search(name))


def _compile(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error:
        return None
