"""What an application's Kafka clients complain about: each complaint once in a while, not once for every attempt.

Start at `report_sparingly`.
"""

from __future__ import annotations

import logging
import re
import threading
import time

__all__ = ["report_sparingly"]

logger = logging.getLogger("moldau.client")

SILENCE_S = 30.0
_VARYING = re.compile(r"\(after \d+ms in state \w+[^)]*\)|\d{4,}")
_said: dict[str, float] = {}
_lock = threading.Lock()


def report_sparingly(level: str, text: str) -> None:
    """Log a complaint unless the same one was logged less than half a minute ago."""
    plain = _VARYING.sub("", text)
    now = time.monotonic()
    with _lock:
        if now - _said.get(plain, -SILENCE_S) < SILENCE_S:
            return
        _said[plain] = now
    logger.log(logging.ERROR if level == "ERROR" else logging.WARNING, "%s", text)
