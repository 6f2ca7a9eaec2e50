"""The user's joiner in one form: (key, left value, right value) -> joined value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.pipeline.cores.calls import callable_of
from moldau.pipeline.ir.functions import Function

__all__ = ["Joiner", "joiner_of"]

Joiner = Callable[[Any, Any, Any], Any]


def joiner_of(function: Function, *, has_key: bool) -> Joiner:
    """A joiner that is always given the key, also where the user's has no use for it."""
    if has_key:
        return callable_of(function, "key", "left", "right")
    without_key = callable_of(function, "left", "right")
    return lambda key, left, right: without_key(left, right)
