"""`schema-registry-stop`: ask the registries of this user to shut down in good order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.registry.start import ROLE
from moldau.cli.server.stop import stop_all
from moldau.server.process.running import running_servers

__all__ = ["schema_registry_stop"]


def schema_registry_stop(arguments: Sequence[str] | None = None) -> int:
    """Send SIGTERM to each; each leaves its group, finishes what was begun and ends."""
    parser = argparse.ArgumentParser(prog="schema-registry-stop", description=__doc__)
    parser.parse_args(arguments)
    return stop_all([server for server in running_servers() if ROLE in server.process_roles], "schema registry")
