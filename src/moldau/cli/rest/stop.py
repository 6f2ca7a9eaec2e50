"""`kafka-rest-stop`: ask the REST proxies of this user to shut down in good order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.rest.start import ROLE
from moldau.cli.server.stop import stop_all
from moldau.server.process.running import running_servers

__all__ = ["kafka_rest_stop"]


def kafka_rest_stop(arguments: Sequence[str] | None = None) -> int:
    """Send SIGTERM to each; each leaves its groups, finishes what was begun and ends."""
    parser = argparse.ArgumentParser(prog="kafka-rest-stop", description=__doc__)
    parser.parse_args(arguments)
    return stop_all([server for server in running_servers() if ROLE in server.process_roles], "REST proxy")
