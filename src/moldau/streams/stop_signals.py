"""SIGTERM and SIGINT end running applications in good order; before and after, they are the program's own.

All applications of a process share one handler, so that one which has ended does not give a signal back to the program
while another still ends because of it. An end may take its time, for example while no broker answers; a second signal
does not wait for it. Start at `StopSignals`.
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
"""Signals in such a short time are one: a terminal and a wrapper script may both pass Ctrl-C on."""


class StopSignals:
    """What signals do to one application."""

    def __init__(self, stop: Callable[[], object], is_over: Callable[[], bool]) -> None:
        """`stop` may take its time: it gets a thread. Once all applications are over, signals are the program's."""
        self.stop = stop
        self.is_over = is_over
        self.signalled_s: float | None = None
        """When the first signal came."""

    def take(self) -> None:
        """Stop at the next signal; without effect outside of the main thread, which alone may have signals."""
        if threading.current_thread() is threading.main_thread():
            _applications.append(self)
            for number in NUMBERS:
                if signal.getsignal(number) is not _on_signal:
                    _programs_own[number] = signal.signal(number, _on_signal)

    def give_back(self) -> None:
        """Leave signals to the other applications, and where there are none to the program."""
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
        # Closing waits for threads, which a signal handler must not.
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
