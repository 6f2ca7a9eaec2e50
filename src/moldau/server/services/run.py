"""Runs services as a process: any number of them in one event loop, from start until a stop signal.

A service is anything that can be started and stopped, such as a schema registry. Start at `run_services`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from moldau.server.process.garbage import settle_garbage_collection
from moldau.server.process.log_output import configure_logging
from moldau.server.process.running import announce

__all__ = ["Service", "run_services"]

_logger = logging.getLogger("moldau.server")


class Service(Protocol):
    async def start(self) -> None:
        """Return once the service is ready; raises `StartupError` with a one-line message."""
        ...

    async def stop(self) -> None:
        """Finish pending work, then stop. Called after a failed start too."""
        ...


def run_services(build: Callable[[], Sequence[Service]], *, roles: tuple[str, ...], log_format: str = "text") -> int:
    """Run until SIGTERM or SIGINT; returns the exit status. Tools find and stop the process by its `roles`."""
    import uvloop

    configure_logging(log_format)
    with announce(0, roles):
        uvloop.run(_serve(build()))
    return 0


async def _serve(services: Sequence[Service]) -> None:
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[str] = loop.create_future()

    def request_stop(name: str) -> None:
        if not stop.done():
            stop.set_result(name)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, request_stop, number.name)
    started: list[Service] = []
    try:
        for service in services:
            started.append(service)
            if not await _started_before(service, stop):
                _logger.info("received %s while starting, shutting down", stop.result())
                return
        settle_garbage_collection()
        _logger.info("received %s, shutting down", await stop)
    finally:
        for service in reversed(started):
            await service.stop()


async def _started_before(service: Service, stop: asyncio.Future[str]) -> bool:
    """Start a service, which may wait for other processes; returns whether it was ready before a stop signal."""
    starting = asyncio.ensure_future(service.start())
    both: set[asyncio.Future[Any]] = {starting, stop}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        await starting
        return True
    starting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await starting
    return False
