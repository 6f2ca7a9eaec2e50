from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moldau.cli.demo.story.platform import MARK, Platform

GRANDCHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by their environment in /proc")
def test_the_end_finds_every_descendant_and_nobody_else(tmp_path: Path) -> None:
    environment = {**os.environ, MARK: str(tmp_path / "one")}
    with (
        subprocess.Popen([sys.executable, "-c", GRANDCHILD], env=environment, stdout=subprocess.PIPE) as child,
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], env={**os.environ, MARK: str(tmp_path / "one-more")}
        ) as other,
    ):
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        began = time.monotonic()
        Platform(tmp_path / "one", (), must_outlive=False).end()
        assert child.wait(10) < 0
        assert not Path(f"/proc/{grandchild}").exists() or "Z" in Path(f"/proc/{grandchild}/stat").read_text()
        assert time.monotonic() - began < 9, "a zombie is not waited for"
        assert other.poll() is None
        other.kill()


def test_every_service_has_a_port_of_its_own(tmp_path: Path) -> None:
    ports = Platform(tmp_path, (), must_outlive=False).ports
    assert len(set(ports.values())) == len(ports)
