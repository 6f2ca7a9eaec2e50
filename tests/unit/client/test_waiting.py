"""Waiting for calls that block, and leaving them behind."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading

import pytest

from moldau.client.waiting import BlockingCall, GivenUpError, SerialCalls, close_within, interruptible


def fail() -> None:
    raise ValueError("no")


def test_answers_and_errors_come_back() -> None:
    assert interruptible(lambda: 7) == 7
    with pytest.raises(ValueError, match="no"):
        interruptible(fail)


def test_a_call_is_left_behind_once_it_is_over() -> None:
    forever = threading.Event()
    with pytest.raises(GivenUpError):
        interruptible(forever.wait, is_over=lambda: True)
    forever.set()


def test_what_the_call_wants_done_by_its_caller_is_done_there() -> None:
    threads: list[threading.Thread] = []

    def call() -> None:
        blocking.run_in_caller(lambda: threads.append(threading.current_thread()))

    blocking = BlockingCall(call)
    assert blocking.start().wait(10)
    assert threads == [threading.current_thread()]


def test_a_close_that_takes_too_long_is_left_to_itself() -> None:
    class Client:
        def __init__(self) -> None:
            self.may_end = threading.Event()

        def close(self) -> None:
            self.may_end.wait()

    client = Client()
    assert not close_within(client, 0.01)
    client.may_end.set()
    assert close_within(client, 10)


def test_ctrl_c_gets_through_a_call_that_never_returns() -> None:
    program = """
import ctypes, signal, threading
from moldau.client.waiting import interruptible
threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
try:
    interruptible(lambda: ctypes.CDLL(None).sleep(1000))
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted\n", "")


def test_a_second_signal_ends_a_tool_at_once() -> None:
    program = """
import signal, threading
from moldau.cli.tool import run_body
def body():
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.raise_signal(signal.SIGINT)
run_body(body)
print("still here")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


def test_a_client_is_closed_only_after_a_call_that_was_abandoned() -> None:
    steps: list[str] = []
    is_polling, may_end = threading.Event(), threading.Event()

    def poll() -> None:
        is_polling.set()
        may_end.wait()
        steps.append("polled")

    async def abandon_and_close() -> None:
        calls = SerialCalls("client")
        polling = asyncio.ensure_future(calls.make(poll))
        await asyncio.to_thread(is_polling.wait)
        polling.cancel()
        closing = asyncio.ensure_future(calls.make(lambda: steps.append("closed")))
        await asyncio.wait((polling,))
        assert not closing.done()
        may_end.set()
        await closing

    asyncio.run(abandon_and_close())
    assert steps == ["polled", "closed"]
