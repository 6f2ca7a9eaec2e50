"""Blocking calls that nobody has to wait for: in daemon threads, which do not keep a process from ending.

asyncio's own threads do: a question to a broker that is away would hold a stopped registry for as long as the
question may take. Start at `in_daemon_thread`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["in_daemon_thread", "joined"]

Result = TypeVar("Result")


async def in_daemon_thread(call: Callable[[], Result], *, name: str) -> Result:
    """Return what a blocking call returns or raise what it raises; when cancelled, the call is left to itself."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, failure = None, None
        try:
            result = call()
        except BaseException as error:
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future


async def joined(thread: threading.Thread, timeout_s: float) -> bool:
    """Wait for a thread to end, but not longer than `timeout_s`; whether it did."""
    try:
        await asyncio.wait_for(in_daemon_thread(thread.join, name="registry-join"), max(0.0, timeout_s))
    except TimeoutError:
        return False
    return True
