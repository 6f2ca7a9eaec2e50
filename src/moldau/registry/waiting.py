"""A start that waits for brokers says so, and for how much longer it will wait. Start at `told_while_waiting`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["told_while_waiting"]

FIRST_S = 1.0
NEXT_S = 30.0

_logger = logging.getLogger("moldau.registry")


@asynccontextmanager
async def told_while_waiting(
    servers: str, deadline: float, *, first_s: float = FIRST_S, next_s: float = NEXT_S
) -> AsyncIterator[None]:
    """Log that `servers` are waited for, after a moment and then now and again, until the block ends.

    `deadline` is the moment of the monotonic clock at which the start gives up.
    """
    task = asyncio.create_task(_tell(servers, deadline, first_s, next_s))
    try:
        yield
    finally:
        task.cancel()


async def _tell(servers: str, deadline: float, first_s: float, next_s: float) -> None:
    await asyncio.sleep(first_s)
    while True:
        left_s = max(0, round(deadline - time.monotonic()))
        _logger.info("waiting for brokers at %s, for %d s more; `moldau server` starts one", servers, left_s)
        await asyncio.sleep(next_s)
