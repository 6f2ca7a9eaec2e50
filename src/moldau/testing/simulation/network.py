"""A network that loses, delays, doubles and reorders messages, and that can be cut.

Each message travels alone: its delay is drawn anew, so that a later one may overtake it. Start at `Network.send`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from moldau.testing.simulation.kernel import Kernel

__all__ = ["Network", "NetworkFaults"]


@dataclass(slots=True)
class NetworkFaults:
    loss: float = 0.0
    doubling: float = 0.0
    slow: float = 0.0
    """The share of messages that take up to `slow_ms`."""
    fast_ms: int = 5
    slow_ms: int = 1500


class Network:
    def __init__(self, kernel: Kernel, faults: NetworkFaults | None = None) -> None:
        self.faults = faults or NetworkFaults()
        self._kernel = kernel
        self._cuts: set[tuple[int, int]] = set()

    def send(self, source: int, target: int, deliver: Callable[[], None], *, may_double: bool = True) -> None:
        """Deliver a message once, twice or never. A cut stops what is sent; what is under way arrives."""
        kernel, faults = self._kernel, self.faults
        if (source, target) in self._cuts or kernel.chance(faults.loss):
            kernel.count("messages lost")
            return
        kernel.after(self._delay(), deliver)
        if may_double and faults.doubling and kernel.chance(faults.doubling):
            kernel.count("messages doubled")
            kernel.after(self._delay(), deliver)

    def _delay(self) -> int:
        random = self._kernel.random
        if self.faults.slow and random.random() < self.faults.slow:
            return random.randrange(self.faults.slow_ms) + 1
        return random.randrange(self.faults.fast_ms) + 1

    def is_cut(self, source: int, target: int) -> bool:
        return (source, target) in self._cuts

    def cut(self, some: Iterable[int], others: Iterable[int], *, is_one_way: bool = False) -> None:
        """Let nothing pass from `some` to `others`, nor back unless it is one way."""
        others = list(others)
        for one in some:
            for other in others:
                if one != other:
                    self._cuts.add((one, other))
                    if not is_one_way:
                        self._cuts.add((other, one))

    def heal(self) -> None:
        self._cuts.clear()
