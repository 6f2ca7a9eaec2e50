"""`connect-stop`: ask the Connect workers of this user to shut down in good order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.connect.worker_start import ROLE
from moldau.cli.server.stop import stop_all
from moldau.server.process.running import running_servers

__all__ = ["connect_stop"]


def connect_stop(arguments: Sequence[str] | None = None) -> int:
    """Send SIGTERM to each; each ends its tasks in order."""
    parser = argparse.ArgumentParser(prog="connect-stop", description=__doc__)
    parser.parse_args(arguments)
    return stop_all([server for server in running_servers() if ROLE in server.process_roles], "Connect worker")
