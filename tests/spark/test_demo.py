"""The README's first command, in short forms: processes of their own, as a user starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.cli.demo.story.pipelines import TABLE_QUESTION
from moldau.server.platform.status_file import load_status

PATIENCE_S = 300
MOMENTS_S = 10.0
"""How long an interrupted demo may take to end on a machine that does other things too."""


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder for temporary files, of which the demo may leave none; Spark's sockets need a short path."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:
        yield Path(folder)


def demo(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "moldau", "demo", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        check=False,
    )


def left_in(folder: Path) -> set[str]:
    """What is there but the folders that all servers, and all Sparks, of a user share."""
    return {path.name for path in folder.iterdir()} - {f"moldau-{os.getuid()}", f"moldau-spark-{os.getuid()}"}


def processes_with(text: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in path.read_bytes():
                found.append((path.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_table_becomes_files_and_nothing_is_left(short: Path) -> None:
    done = demo("etl", "--seconds", "1", "--rate", "200", folder=short)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every order was counted once" in done.stdout
    assert done.stderr == ""
    assert left_in(short) == set()
    assert processes_with(f"MOLDAU_DEMO_FOLDER={short}") == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_story_counts_every_order_once_and_a_kept_platform_answers(tmp_path: Path) -> None:
    data = tmp_path / "kept"
    done = demo("--keep", "--seconds", "1", "--data", str(data), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every order was counted once" in done.stdout
    try:
        status = load_status(data)
        assert status is not None
        assert {one.phase for one in status.services.values()} == {"running"}
        request = urllib.request.Request(
            f"http://{status.services['ksql'].address}/query",
            json.dumps({"ksql": TABLE_QUESTION}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert "Czechia" in answer.read().decode()
        assert f"moldau down --data {data}" in done.stdout
    finally:
        words = [sys.executable, "-m", "moldau", "down", "--data", str(data)]
        subprocess.run(words, capture_output=True, timeout=PATIENCE_S, check=True)
    assert processes_with(f"MOLDAU_DEMO_FOLDER={data}") == []


PREPARED_DEMO = """
import sys
from moldau.cli.main import main
from moldau.cli.streams import preparing
preparing.prepare = lambda say: False
preparing.is_prepared = lambda: True
sys.exit(main(["demo", *sys.argv[1:]]))
"""
"""The demo without the preparations of the very first one, which start a Spark of their own."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("number", "code", "moment"),
    [
        (signal.SIGTERM, 143, "starting Connect"),
        (signal.SIGINT, 130, "Connect reads the first orders"),
    ],
)
def test_an_interrupt_ends_it_within_moments_and_cleans_up(
    number: signal.Signals, code: int, moment: str, short: Path
) -> None:
    command = [sys.executable, "-c", PREPARED_DEMO]
    environment = {**os.environ, "TMPDIR": str(short)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if moment in line:
                break
        running.send_signal(number)
        began = time.monotonic()
        _, errors = running.communicate(timeout=120)
    assert time.monotonic() - began < MOMENTS_S
    assert running.returncode == code
    assert errors == "moldau demo: ended early; nothing is left behind\n"
    assert left_in(short) == set()
    assert processes_with(f"MOLDAU_DEMO_FOLDER={short}") == []


@pytest.mark.slow
def test_the_counts_are_those_of_every_visit(tmp_path: Path) -> None:
    done = demo("counts", "--seconds", "1", "--rate", "2000", folder=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every visit was counted once" in done.stdout
    assert "Traceback" not in done.stderr


def test_an_end_while_spark_starts_does_not_wait_for_spark(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PREPARED_DEMO, "counts"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as counting:
        assert counting.stdout is not None
        while counting.stdout.readline() not in ("starting Spark …\n", ""):
            pass
        counting.send_signal(signal.SIGTERM)
        output, errors = counting.communicate(timeout=120)
    assert counting.returncode == 143
    assert output == "", "it did not go on until Spark ran"
    assert errors == "moldau demo: ended while Spark was starting; nothing is left behind\n"
