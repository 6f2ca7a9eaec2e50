"""Halves of surrogate pairs, which functions on texts may leave and UTF-8 cannot hold."""

from __future__ import annotations

from typing import Any

__all__ = ["without_surrogates"]


def without_surrogates(value: Any) -> Any:
    """The same value with a question mark for each half of a pair, which is what Java writes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without_surrogates(item) for item in value)
    return value
