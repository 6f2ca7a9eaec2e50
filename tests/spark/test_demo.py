"""The README's first command, in a short form: a process of its own, as a user starts it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_demo_counts_every_visit_once_and_ends_well() -> None:
    command = [sys.executable, "-m", "moldau.cli.main", "demo", "--seconds", "1", "--rate", "2000"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every visit was counted once" in done.stdout
    assert "Traceback" not in done.stderr
