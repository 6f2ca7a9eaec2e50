"""What a service logs while brokers are away or refuse it: one line, a reminder every 30 seconds, one at the end.

`Outage` decides when a refusal that lasts is worth a line (pure). `log_while_waiting` reports a start that waits for
brokers. A broker that does not answer a running service is reported by `client.connection_log`; `report_to` gives all
clients of one service the same place to report to, so that they log one line together.
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
"""A start that takes less needs no line."""
REMINDER_S = 30.0


class Outage:
    """Something that cannot be used for a while. Every event comes with its time."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._began_s: float | None = None
        self._logged_s = 0.0

    def failure_line(self, reason: str, now_s: float) -> str | None:
        """Note a failure; the line to log about it, which for most failures is none."""
        if self._began_s is None:
            self._began_s = self._logged_s = now_s
            return f"{self._subject} cannot be reached: {reason}. Trying until it can"
        if now_s - self._logged_s < REMINDER_S:
            return None
        self._logged_s = now_s
        return f"{self._subject} still cannot be reached after {now_s - self._began_s:.0f} s: {reason}"

    def recovery_line(self, now_s: float) -> str | None:
        """Note a success; the line to log when it ends an outage."""
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
    """Log that `servers` are waited for, after a moment and then every `next_s`, until the block ends.

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
        logger.log(logging.ERROR if level == "ERROR" else logging.WARNING, "%s", text)

    return report
