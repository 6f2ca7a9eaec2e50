"""Topic names: which are legal, and which would share a metric name. Start at `check_topic_name`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from moldau.controller.errors import RefusedError
from moldau.core.errors import ErrorCode

__all__ = ["METADATA_TOPIC", "check_topic_name", "first_collision"]

METADATA_TOPIC = "__cluster_metadata"
LONGEST_NAME = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def check_topic_name(name: str) -> None:
    """Raise `RefusedError` for an invalid name. Names are used as folder names, hence the limits."""
    problem = _problem(name)
    if problem is not None:
        raise RefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def _problem(name: str) -> str | None:
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return "'.' and '..' are not allowed"
    if len(name) > LONGEST_NAME:
        return f"{name!r} has {len(name)} characters, at most {LONGEST_NAME} are allowed"
    if _LEGAL.fullmatch(name) is None:
        return f"{name!r} has characters other than ASCII letters, digits, '.', '_' and '-'"
    return None


def first_collision(name: str, others: Iterable[str]) -> str | None:
    """The first of `others` with the same metric name, in which '.' is replaced by '_'."""
    if "." not in name and "_" not in name:
        return None
    metric = name.replace(".", "_")
    return next((other for other in others if other != name and other.replace(".", "_") == metric), None)
