"""How often a failure that lasts is logged: once, again every 30 seconds, and when it is over. Pure.

For refusals that brokers give; that no broker answers is `client.connection_log`'s to say.

Start at `Outage.failed`.
"""

from __future__ import annotations

__all__ = ["REMINDER_S", "Outage"]

REMINDER_S = 30.0


class Outage:
    """Something that cannot be reached for a while. Every event comes with its time."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began_s: float | None = None
        self._said_s = 0.0

    def failed(self, reason: str, now_s: float) -> str | None:
        """The line that a failure is worth, which for most of them is none."""
        if self._began_s is None:
            self._began_s = self._said_s = now_s
            return f"{self._what} cannot be reached: {reason}. Trying until it can"
        if now_s - self._said_s < REMINDER_S:
            return None
        self._said_s = now_s
        return f"{self._what} still cannot be reached after {now_s - self._began_s:.0f} s: {reason}"

    def recovered(self, now_s: float) -> str | None:
        """The line for the end of an outage; nothing where there was none."""
        if self._began_s is None:
            return None
        lasted_s, self._began_s = now_s - self._began_s, None
        return f"{self._what} is reached again after {lasted_s:.0f} s"
