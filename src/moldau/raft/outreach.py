"""When to send a request to whom: each peer has a moment at which it is asked next.

A request that is under way has that moment at its timeout, so that a lost one is repeated without any other
bookkeeping. Only the reply to the newest request to a peer counts. Start at `Outreach.take_due`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["MAX_DOUBLINGS", "NEVER", "Outreach"]

NEVER: Final = 2**63 - 1
MAX_DOUBLINGS: Final = 5


class Outreach:
    __slots__ = ("_due_ms", "_failures", "_numbers")

    def __init__(self, peers: Iterable[int] = (), due_ms: int = 0) -> None:
        self._due_ms = dict.fromkeys(peers, due_ms)
        self._numbers: dict[int, int] = {}
        self._failures: dict[int, int] = {}

    def next_ms(self) -> int:
        return min(self._due_ms.values(), default=NEVER)

    def take_due(self, now_ms: int) -> list[int]:
        """The peers to ask now; the caller must call `sent` or `postpone` for each of them."""
        return [peer for peer, due_ms in self._due_ms.items() if due_ms <= now_ms]

    def sent(self, peer: int, number: int, deadline_ms: int) -> None:
        self._numbers[peer] = number
        self._due_ms[peer] = deadline_ms

    def postpone(self, peer: int, due_ms: int) -> None:
        """Ask at `due_ms`; a reply to an earlier request does not count any more."""
        self._numbers.pop(peer, None)
        self._due_ms[peer] = due_ms

    def accept(self, peer: int, number: int, due_ms: int) -> bool:
        """Take a reply, and ask again at `due_ms`; false if the reply is not to the newest request."""
        if self._numbers.get(peer) != number:
            return False
        self._failures.pop(peer, None)
        self.postpone(peer, due_ms)
        return True

    def fail(self, peer: int, number: int, now_ms: int, backoff_ms: int) -> bool:
        """A request did not arrive: ask again after a pause that doubles with each failure; false as in `accept`."""
        failures = self._failures.get(peer, 0)
        if not self.accept(peer, number, now_ms + (backoff_ms << min(failures, MAX_DOUBLINGS))):
            return False
        self._failures[peer] = failures + 1
        return True

    def keep_only(self, peers: Iterable[int], due_ms: int) -> None:
        """Forget peers that are not listed, and ask new ones at `due_ms`."""
        self._due_ms = {peer: self._due_ms.get(peer, due_ms) for peer in peers}
        self._numbers = {peer: number for peer, number in self._numbers.items() if peer in self._due_ms}
