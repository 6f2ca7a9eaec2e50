"""Signals that stop an application, and whose they are when there is nothing left to stop."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from moldau.streams.stop_signals import StopSignals

WAIT_S = 10


@pytest.fixture(autouse=True)
def _python_s_own_handlers() -> Iterator[None]:
    former = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


class Application:
    """Something that a signal stops."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.signals = StopSignals(self.stopped.set, self.stopped.is_set)
        self.signals.take()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_application_and_nothing_else(number: signal.Signals) -> None:
    application = Application()
    signal.raise_signal(number)
    assert application.stopped.wait(WAIT_S)
    application.signals.give_back()


def test_an_application_that_has_ended_by_itself_does_not_keep_ctrl_c_from_the_program() -> None:
    application = Application()
    application.stopped.set()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_second_signal_ends_the_process_while_the_first_still_stops_the_application() -> None:
    program = """
import signal, threading
from moldau.streams import stop_signals
stop_signals.SAME_SIGNAL_S = 0.0
stop_signals.StopSignals(threading.Event().wait, lambda: False).take()
for number in (signal.SIGINT, signal.SIGINT):
    print("signal", flush=True)
    signal.raise_signal(number)
print("still here")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "signal\nsignal\n", "")


def test_signals_in_quick_succession_are_one() -> None:
    stops: list[int] = []
    stopping = StopSignals(lambda: stops.append(1), lambda: False)
    stopping.take()
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGTERM)
    stopping.is_over = lambda: True
    stopping.give_back()
    assert len(stops) <= 1


def test_signals_are_given_back() -> None:
    application = Application()
    application.signals.give_back()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_reaches_all_applications() -> None:
    one, other = Application(), Application()
    signal.raise_signal(signal.SIGINT)
    assert one.stopped.wait(WAIT_S)
    assert other.stopped.wait(WAIT_S)


def test_one_that_has_ended_does_not_end_the_program_while_another_stops() -> None:
    ended, running = Application(), Application()
    ended.stopped.set()
    signal.raise_signal(signal.SIGINT)
    assert running.stopped.wait(WAIT_S)


def test_applications_that_end_in_the_order_they_began_leave_ctrl_c_to_the_program() -> None:
    one, other = Application(), Application()
    for application in (one, other):
        application.stopped.set()
        application.signals.give_back()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_threads_other_than_the_main_one_have_no_signals() -> None:
    started = threading.Thread(target=Application)
    started.start()
    started.join(WAIT_S)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
