"""The demo's broker: the normal `moldau server`, with its data in a temporary folder."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moldau.core.errors import StartupError

__all__ = ["created_topics", "running_broker"]

START_TIMEOUT_S = 30.0
PR_SET_PDEATHSIG = 1
STOP_TIMEOUT_S = 30.0


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """Start a broker that stores its log in `folder`, and yield its address."""
    port = _free_port()
    command = [sys.executable, "-m", "moldau.cli.main", "server", "--port", str(port), "--data", str(folder / "log")]
    command += ["--override", "metrics.http.port=0"]
    log_file = folder / "server.out"
    with log_file.open("wb") as output:
        # In a separate session, so that Ctrl-C reaches only the demo, which needs the broker for its shutdown.
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509, the demo has no threads yet
        )
    try:
        _wait_until_listening(port, process, log_file)
        yield f"127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_TIMEOUT_S)


def created_topics(bootstrap: str, partitions: int, *names: str) -> None:
    """Create the topics and wait until they exist."""
    from moldau.client.admin import Admin

    admin = Admin(bootstrap, timeout_ms=int(START_TIMEOUT_S * 1000))
    for name in names:
        admin.create_topic(name, partitions=partitions, replication_factor=1)


def _end_with_parent() -> None:
    """Make the kernel stop the broker if the demo is killed (Linux only); elsewhere it must be stopped by hand."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_until_listening(port: int, process: subprocess.Popen[bytes], log_file: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise StartupError(f"the broker did not start:\n{log_file.read_text()}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.005)
    raise StartupError(f"the broker did not listen on port {port} within {START_TIMEOUT_S:.0f} s")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
