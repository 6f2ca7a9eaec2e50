"""SIGTERM and SIGINT end a running application in good order; before and after, they are the program's own.

Start at `StopSignals`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["StopSignals"]


class StopSignals:
    """The handlers of one application. Several may be installed one over the other; each passes signals on."""

    def __init__(self, stop: Callable[[], object], is_over: Callable[[], bool]) -> None:
        """`stop` may take its time: it gets a thread. Once `is_over`, signals go where they went before."""
        self._stop = stop
        self._is_over = is_over
        self._former: dict[signal.Signals, Any] = {}

    def take(self) -> None:
        """Stop at the next signal; without effect outside of the main thread, which alone may have signals."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._former[number] = signal.signal(number, self._told)

    def give_back(self) -> None:
        """Put the former handlers back, except where another application has installed its own over ours."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in [number for number in self._former if signal.getsignal(number) == self._told]:
            signal.signal(number, self._former.pop(number))

    def _told(self, number: int, frame: FrameType | None) -> None:
        former = self._former.get(signal.Signals(number))
        if self._is_over():
            _pass_on(former, number, frame)
            return
        # Closing waits for threads, which a signal handler must not.
        threading.Thread(target=self._stop, name="stop", daemon=True).start()
        if callable(former) and former is not signal.default_int_handler:
            former(number, frame)


def _pass_on(former: Any, number: int, frame: FrameType | None) -> None:
    if callable(former):
        former(number, frame)
    elif former is signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
