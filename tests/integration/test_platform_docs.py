"""The commands of docs/platform.md run as they are written, on free ports and in a home of their own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.free_ports import free_port

from moldau.server.platform.services import DEFAULT_PORTS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "platform.md").read_text()
BLOCKS = [block.splitlines() for block in re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)]


@pytest.mark.parametrize("commands", BLOCKS, ids=["looking", "using", "drawing"])
def test_the_commands_of_a_session_run(commands: list[str], tmp_path: Path) -> None:
    ports = {name: free_port() for name in DEFAULT_PORTS}
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(tmp_path),
        "MOLDAU_BOOTSTRAP_SERVERS": f"127.0.0.1:{ports['broker']}",
    }
    for command in commands:
        words = shlex.split(_at_ports(command, ports))
        if words[:2] == ["moldau", "up"]:
            words += [word for name, port in ports.items() for word in ("--port", f"{name}={port}")]
        words = [sys.executable, "-m", *words] if words[0] == "moldau" else [words[0], "-sf", *words[1:]]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False, env=environment)
        assert ran.returncode == 0, (command, ran.stdout, ran.stderr)


def _at_ports(command: str, ports: dict[str, int]) -> str:
    for name, port in DEFAULT_PORTS.items():
        command = command.replace(f"localhost:{port}", f"127.0.0.1:{ports[name]}")
    return command
