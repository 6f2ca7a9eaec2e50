"""The loop of the terminal, with its input and session replaced."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.ksql.shell.loop import run_shell
from moldau.cli.ksql.shell.terminal import Terminal


class Interrupted:
    """Input at which Ctrl-C is pressed once, and then Ctrl-D."""

    def __init__(self, *, is_terminal: bool) -> None:
        self.is_terminal = is_terminal
        self._reads = 0

    def read(self, _prompt: str) -> str:
        self._reads += 1
        raise KeyboardInterrupt if self._reads == 1 else EOFError


class Nothing:
    """A session to which nothing may be given."""

    def run(self, given: Any) -> None:
        raise AssertionError(given)


def test_at_a_prompt_an_interrupt_drops_the_line() -> None:
    assert run_shell(Nothing(), Interrupted(is_terminal=True), Terminal(is_interactive=False)) == 0  # type: ignore[arg-type]


def test_where_statements_are_piped_in_an_interrupt_ends_the_terminal() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_shell(Nothing(), Interrupted(is_terminal=False), Terminal(is_interactive=False))  # type: ignore[arg-type]
