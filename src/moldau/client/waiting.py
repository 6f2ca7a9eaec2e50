"""Calling librdkafka's blocking functions so that Ctrl-C and timeouts work.

Many of its calls block in C until the broker answers, and Python handles signals only when they return: Ctrl-C could
take a minute. Here such a call runs in a daemon thread while the caller waits in short slices. A caller that is
interrupted, or whose time is up, abandons the thread: it keeps its client alive, so that the interpreter does not wait
for the client's destructor either. Start at `interruptible`; for event loops at `in_daemon_thread`.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from moldau.client.errors import UnreachableError

__all__ = [
    "BlockingCall",
    "GivenUpError",
    "SerialCalls",
    "close_within",
    "in_daemon_thread",
    "interruptible",
    "join_thread",
    "never",
    "served",
]

Answer = TypeVar("Answer")

SLICE_S = 0.05


class GivenUpError(UnreachableError):
    """The wait for a broker ended because the program is ending."""


def never() -> bool:
    return False


def served(call: Callable[..., Answer], *arguments: Any) -> Answer:
    """Make a call that runs callbacks, such as `poll` and `flush`, and keep Ctrl-C a KeyboardInterrupt.

    If Ctrl-C arrives while the binding delivers a log line, it loses the KeyboardInterrupt and raises a SystemError,
    which would look like a bug in the program.
    """
    try:
        return call(*arguments)
    except SystemError:
        raise KeyboardInterrupt from None


class BlockingCall(Generic[Answer]):
    """A call in its own thread."""

    def __init__(self, call: Callable[[], Answer]) -> None:
        self._call = call
        self._outcome: list[tuple[Answer | None, BaseException | None]] = []
        self._done = threading.Event()
        self._errands: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    def start(self) -> BlockingCall[Answer]:
        threading.Thread(target=self._run, name="waiting-for-broker", daemon=True).start()
        return self

    def wait(self, timeout_s: float) -> bool:
        """Wait for the call to end, and serve `run_in_caller` meanwhile; returns whether it has ended."""
        deadline = time.monotonic() + timeout_s
        while not self._done.wait(min(SLICE_S, max(0.0, deadline - time.monotonic()))):
            self._run_errands()
            if time.monotonic() >= deadline:
                return False
        return True

    def answer(self) -> Answer:
        """Return what the call returned, or raise what it raised."""
        answer, error = self._outcome[0]
        if error is not None:
            raise error
        return answer  # type: ignore[return-value]

    def run_in_caller(self, errand: Callable[[], object]) -> None:
        """From inside the call: run a function in the thread that waits for the call, and wait until it is done."""
        is_done = threading.Event()

        def run() -> None:
            try:
                errand()
            finally:
                is_done.set()

        self._errands.put(run)
        is_done.wait()

    def _run(self) -> None:
        try:
            self._outcome.append((self._call(), None))
        except BaseException as error:
            self._outcome.append((None, error))
        self._done.set()

    def _run_errands(self) -> None:
        while True:
            try:
                errand = self._errands.get_nowait()
            except queue.Empty:
                return
            errand()


def interruptible(call: Callable[[], Answer], *, is_over: Callable[[], bool] = never) -> Answer:
    """Make a blocking call that Ctrl-C can interrupt; raises `GivenUpError` once `is_over()` is true.

    Signals reach only the main thread: in others, and without `is_over`, the call is made directly.
    """
    if is_over is never and threading.current_thread() is not threading.main_thread():
        return call()
    running = BlockingCall(call).start()
    while not running.wait(SLICE_S):
        if is_over():
            raise GivenUpError("the program ended before a broker answered")
    return running.answer()


def close_within(client: Any, timeout_s: float) -> bool:
    """Close a librdkafka client; returns whether it closed in time. If not, it is abandoned."""
    closing = BlockingCall(client.close).start()
    if not closing.wait(timeout_s):
        return False
    closing.answer()
    return True


async def in_daemon_thread(call: Callable[[], Answer], *, name: str) -> Answer:
    """From an event loop: return what a blocking call returns or raise what it raises.

    When cancelled, the call is abandoned. asyncio's own threads would delay the end of a stopped service until an
    unreachable broker answers or times out.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Answer] = loop.create_future()

    def settle(answer: Answer | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer)  # type: ignore[arg-type]

    def run() -> None:
        answer, failure = None, None
        try:
            answer = call()
        except BaseException as error:
            failure = error
        try:
            loop.call_soon_threadsafe(settle, answer, failure)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future


class SerialCalls:
    """Makes the calls of one librdkafka client from an event loop, never two at once.

    A call that was abandoned goes on in its thread. Closing the client meanwhile would free what that call still uses,
    which may end the process, so each call waits for the one before.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._in_use = threading.Lock()

    async def make(self, call: Callable[[], Answer]) -> Answer:
        """Return what a blocking call returns or raise what it raises; when cancelled, the call is abandoned."""
        return await in_daemon_thread(lambda: self._make_alone(call), name=self._name)

    def _make_alone(self, call: Callable[[], Answer]) -> Answer:
        with self._in_use:
            return call()


async def join_thread(thread: threading.Thread, timeout_s: float) -> bool:
    """From an event loop: wait for a thread to end, for `timeout_s` at most; returns whether it did."""
    try:
        await asyncio.wait_for(in_daemon_thread(thread.join, name="waiting-for-thread"), max(0.0, timeout_s))
    except TimeoutError:
        return False
    return True
