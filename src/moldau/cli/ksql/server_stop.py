"""`ksql-server-stop`: ask the ksql servers of this user to shut down in good order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.ksql.server_start import ROLE
from moldau.cli.server.stop import stop_all
from moldau.server.process.running import running_servers

__all__ = ["ksql_server_stop"]


def ksql_server_stop(arguments: Sequence[str] | None = None) -> int:
    """Send SIGTERM to each; each stops its queries in order and ends."""
    parser = argparse.ArgumentParser(prog="ksql-server-stop", description=__doc__)
    parser.parse_args(arguments)
    return stop_all([server for server in running_servers() if ROLE in server.process_roles], "ksql server")
