"""What an application's Kafka clients complain about: each complaint once in a while, not once for every attempt.

A connection that breaks is worth a word only if it stays broken: brokers restart, and when everything is stopped one
of the two goes first. Start at `report_sparingly`.
"""

from __future__ import annotations

import logging
import re
import threading
import time

__all__ = ["ClientComplaints", "report_sparingly"]

logger = logging.getLogger("moldau.client")

SILENCE_S = 30.0
BROKEN_S = 2.0
"""How long a connection may be broken without a word."""

_VARYING = re.compile(r"\(after \d+ms in state \w+[^)]*\)|\d{4,}")
_BROKEN = re.compile(r"Connect to \S+ failed|Disconnected|Receive failed|Connection refused|brokers are down")
_TOLD_BY_THE_APPLICATION = "Static consumer fenced by other consumer"
"""Another instance has taken the application's place in its group, which ends this one with a sentence of its own."""


class ClientComplaints:
    """What was complained about, and when."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[float, float]] = {}
        """When each complaint was heard first and last; it begins anew after a silence."""
        self._said: dict[str, float] = {}
        self._lock = threading.Lock()

    def is_news(self, text: str, now_s: float) -> bool:
        """Whether to tell this complaint."""
        plain = _VARYING.sub("", text)
        if _TOLD_BY_THE_APPLICATION in plain:
            return False
        with self._lock:
            first, last = self._heard.get(plain, (now_s, now_s))
            if now_s - last > SILENCE_S:
                first = now_s
            self._heard[plain] = first, now_s
            if _BROKEN.search(plain) and now_s - first < BROKEN_S:
                return False
            if now_s - self._said.get(plain, -SILENCE_S) < SILENCE_S:
                return False
            self._said[plain] = now_s
            return True


_complaints = ClientComplaints()


def report_sparingly(level: str, text: str) -> None:
    """Log a complaint unless it may pass, or the same one was logged less than half a minute ago."""
    if _complaints.is_news(text, time.monotonic()):
        logger.log(logging.ERROR if level == "ERROR" else logging.WARNING, "%s", text)
