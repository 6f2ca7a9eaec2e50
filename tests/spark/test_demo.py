"""The README's first command, in a short form: a process of its own, as a user starts it."""

from __future__ import annotations

import signal
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


PREPARED_DEMO = """
import sys
from moldau.cli.main import main
from moldau.cli.streams import preparing
preparing.prepare = lambda say: False
sys.exit(main(["demo"]))
"""
"""The demo without the preparations of the very first one, which start a Spark of their own."""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_end_while_spark_starts_does_not_wait_for_spark(number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-c", PREPARED_DEMO]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        while demo.stdout.readline() not in ("starting Spark …\n", ""):
            pass
        demo.send_signal(number)
        output, errors = demo.communicate(timeout=120)
    assert demo.returncode == code
    assert output == "", "it did not go on until Spark ran"
    assert errors == "moldau demo: ended while Spark was starting; nothing is left behind\n"
