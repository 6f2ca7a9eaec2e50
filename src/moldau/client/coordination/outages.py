"""Log lines of a service during an outage: one at the start, a reminder every 30 seconds, one at the end.

`Outage` decides when a failure that persists is logged (pure). `log_while_waiting` logs that a start waits for
brokers. A broker that does not answer a running service is reported by `client.connection_log`; `report_to` gives all
clients of one service the same `Report`, so that they log one line together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from moldau.client.connection_log import Report

__all__ = ["REMINDER_S", "Outage", "log_while_waiting", "report_to"]

FIRST_LINE_S = 1.0
"""A start that takes less is not logged."""
REMINDER_S = 30.0


class Outage:
    """The outage of a topic, a group or the like. Every event comes with its time."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._began_s: float | None = None
        self._logged_s = 0.0

    def failure_line(self, reason: str, now_s: float) -> str | None:
        """Record a failure; returns the line to log, which for most failures is none."""
        if self._began_s is None:
            self._began_s = self._logged_s = now_s
            return f"{self._subject} cannot be reached: {reason}. Trying until it can"
        if now_s - self._logged_s < REMINDER_S:
            return None
        self._logged_s = now_s
        return f"{self._subject} still cannot be reached after {now_s - self._began_s:.0f} s: {reason}"

    def recovery_line(self, now_s: float) -> str | None:
        """Record a success; returns the line to log when it ends an outage."""
        if self._began_s is None:
            return None
        lasted_s, self._began_s = now_s - self._began_s, None
        return f"{self._subject} is reached again after {lasted_s:.0f} s"


@asynccontextmanager
async def log_while_waiting(
    servers: str,
    deadline: float,
    logger: logging.Logger,
    *,
    first_s: float = FIRST_LINE_S,
    next_s: float = REMINDER_S,
) -> AsyncIterator[None]:
    """Log that the block waits for `servers`, after a moment and then every `next_s`, until it ends.

    `deadline` is the moment of the monotonic clock at which the start gives up.
    """

    async def log() -> None:
        await asyncio.sleep(first_s)
        while True:
            left_s = max(0, round(deadline - time.monotonic()))
            logger.info("waiting for brokers at %s, for %d s more; `moldau server` starts one", servers, left_s)
            await asyncio.sleep(next_s)

    task = asyncio.create_task(log())
    try:
        yield
    finally:
        task.cancel()


@cache
def report_to(logger: logging.Logger) -> Report:
    """The one `Report` of a logger: clients that share it log a broker's outage once."""

    def report(level: str, text: str) -> None:
        # Another writer has taken over, which is how a leader changes; the service is told by its next write.
        is_takeover = "fenced by" in text
        logger.log(logging.ERROR if level == "ERROR" and not is_takeover else logging.WARNING, "%s", text)

    return report
