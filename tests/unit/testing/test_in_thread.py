"""A service in a thread may end by itself, be stopped, or both at the same moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from moldau.testing.in_thread import InThread


class ShortLived(InThread):
    """Ends when it is told to stop, or when `end` is set, whichever comes first."""

    what = "short-lived service"

    def __init__(self) -> None:
        super().__init__()
        self.end = threading.Event()

    async def serve(self, ready: Callable[[], None], stopping: asyncio.Event) -> None:
        ready()
        while not (self.end.is_set() or stopping.is_set()):
            await asyncio.sleep(0)


def test_stopping_what_has_ended_by_itself_does_nothing() -> None:
    service = ShortLived()
    service.start()
    thread = service._thread
    assert thread is not None
    service.end.set()
    thread.join(30)
    service.stop()
    service.stop()


def test_a_stop_may_race_with_the_end() -> None:
    for _ in range(100):
        service = ShortLived()
        service.start()
        asking = threading.Thread(target=lambda service=service: [service.ask_to_stop() for _ in range(200)])
        asking.start()
        service.end.set()
        service.stop()
        asking.join(30)
        assert not asking.is_alive()


def test_what_keeps_a_service_from_starting_is_raised() -> None:
    class Broken(ShortLived):
        async def serve(self, ready: Callable[[], None], stopping: asyncio.Event) -> None:
            raise RuntimeError("no disk")

    with pytest.raises(RuntimeError, match="no disk"):
        Broken().start()
