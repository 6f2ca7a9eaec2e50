"""Signal handling: SIGTERM and SIGINT stop running applications cleanly; otherwise the program's handlers apply.

All applications of a process share one signal handler, so that an application that has ended does not restore the
program's handler while another is still stopping. Stopping may take long, for example while no broker answers; a second
signal ends the process at once. Start at `StopSignals`.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["StopSignals"]

NUMBERS = (signal.SIGTERM, signal.SIGINT)
SAME_SIGNAL_S = 1.0
"""Signals within this time count as one: a terminal and a wrapper script may both forward Ctrl-C."""


class StopSignals:
    """The reaction of one application to SIGTERM and SIGINT."""

    def __init__(self, stop: Callable[[], object], is_over: Callable[[], bool]) -> None:
        """`stop` may block: it runs in its own thread. `is_over` returns whether the application has ended."""
        self.stop = stop
        self.is_over = is_over
        self.signalled_s: float | None = None
        """The monotonic time of the first signal, or None."""

    def take(self) -> None:
        """Stop the application at the next signal; no effect outside the main thread, which alone can set handlers."""
        if threading.current_thread() is threading.main_thread():
            _applications.append(self)
            for number in NUMBERS:
                if signal.getsignal(number) is not _on_signal:
                    _programs_own[number] = signal.signal(number, _on_signal)

    def give_back(self) -> None:
        """Stop handling signals for this application; restore the program's handlers if no other application runs."""
        if self in _applications:
            _applications.remove(self)
        if threading.current_thread() is threading.main_thread() and not _running():
            for number in NUMBERS:
                if signal.getsignal(number) is _on_signal:
                    signal.signal(number, _programs_own.pop(number))


_applications: list[StopSignals] = []
_programs_own: dict[int, Any] = {}


def _running() -> list[StopSignals]:
    return [one for one in _applications if not one.is_over()]


def _on_signal(number: int, frame: FrameType | None) -> None:
    own, running, now_s = _programs_own.get(number), _running(), time.monotonic()
    if any(one.signalled_s is not None and now_s - one.signalled_s > SAME_SIGNAL_S for one in running):
        return _pass_on(signal.SIG_DFL, number, frame)
    for application in running:
        if application.signalled_s is not None:
            continue
        application.signalled_s = now_s
        # Closing waits for threads, and a signal handler must not block.
        threading.Thread(target=application.stop, name="stop", daemon=True).start()
    if not running:
        _pass_on(own, number, frame)
    elif callable(own) and own is not signal.default_int_handler:
        own(number, frame)
    return None


def _pass_on(own: Any, number: int, frame: FrameType | None) -> None:
    if callable(own):
        own(number, frame)
    elif own is signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
