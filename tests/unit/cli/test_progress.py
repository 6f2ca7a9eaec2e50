"""The line that changes while a person waits, and what a log sees instead."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from moldau.cli.progress import CLEAR_LINE, Steps, live_line, render_progress


class Screen(io.StringIO):
    """A terminal that remembers all that was written, and tells when something was."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text.strip("\r\x1b[2K"):
            self.drawn.set()
        return super().write(text)


def test_a_terminal_sees_the_line_and_then_nothing_of_it() -> None:
    screen = Screen()
    with live_line(lambda seconds: "halfway there", stream=screen):
        assert screen.drawn.wait(30)
    assert "halfway there" in screen.getvalue()
    assert screen.getvalue().endswith(CLEAR_LINE)


def test_a_pipe_sees_nothing() -> None:
    stream = io.StringIO()
    with live_line(lambda seconds: "halfway there", stream=stream):
        pass
    assert stream.getvalue() == ""


def test_what_others_write_meanwhile_begins_on_a_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with live_line(lambda seconds: "halfway there"):
        assert screen.drawn.wait(30)
        print("a warning", file=sys.stderr)
    assert f"{CLEAR_LINE}a warning\n" in screen.getvalue()
    assert sys.stderr is screen


def test_a_line_is_cut_to_the_terminals_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    screen = Screen()
    with live_line(lambda seconds: "x" * 200, stream=screen):
        assert screen.drawn.wait(30)
    assert max(len(piece) for piece in screen.getvalue().split(CLEAR_LINE)) == 19


def test_steps_are_lines_in_a_log() -> None:
    stream = io.StringIO()
    with Steps(stream) as steps:
        steps.begin("fetching")
        steps.begin("starting")
    assert stream.getvalue() == "· fetching\n· starting\n"


def test_steps_on_a_terminal_say_how_each_ended() -> None:
    screen = Screen()

    def work() -> None:
        with Steps(screen) as steps:
            steps.begin("fetching")
            steps.begin("starting")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        work()
    assert "✓ fetching" in screen.getvalue()
    assert "✗ starting" in screen.getvalue()


@pytest.mark.parametrize(
    ("done", "wanted", "seconds", "text"),
    [(340_000, 1_000_000, 2, " 34 %  340,000 of 1,000,000  170,000/s"), (0, 0, 0, "100 %  0 of 0  0/s")],
)
def test_counts(done: int, wanted: int, seconds: float, text: str) -> None:
    assert render_progress(done, wanted, seconds) == text
