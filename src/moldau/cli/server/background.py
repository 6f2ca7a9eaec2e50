"""Runs a command in the background, as Kafka's scripts do with `-daemon`: its output goes to a log file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from moldau.server.config import data_folder

__all__ = ["start_in_background"]


def start_in_background(module: str, words: Sequence[str], log_name: str) -> int:
    """Run `module` with these arguments in a new session; logs go to `LOG_DIR`, or beside the data folder."""
    folder = Path(os.environ.get("LOG_DIR") or data_folder(os.environ).parent / "logs")
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / log_name
    with output.open("ab") as stream:
        command = [sys.executable, "-m", module, *words]
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True)
    print(f"Started in the background; its log is {output}", file=sys.stderr)
    return 0
