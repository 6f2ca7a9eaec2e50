"""The result of a decision, and the check for read-only mode. Start at `Decision`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from moldau.registry.errors import NotPermittedError
from moldau.registry.records import Record
from moldau.registry.scopes import READ_ONLY_MODES, effective_mode, scope_of
from moldau.registry.state import State

__all__ = ["Decision", "check_writable"]

Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True)
class Decision(Generic[Reply]):
    reply: Reply
    records: tuple[Record, ...] = ()
    """Records to write in this order before replying; empty if nothing changes."""


def check_writable(state: State, subject: str | None) -> None:
    mode = effective_mode(state, scope_of(subject))
    if mode in READ_ONLY_MODES:
        what = f"Subject {subject}" if subject is not None else "The registry"
        raise NotPermittedError(f"{what} is in read-only mode ({mode})")
