"""`schema-registry-stop`: ask the registries of this user to shut down in good order."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from moldau.server.registry import ROLE
from moldau.server.running import running_servers

__all__ = ["schema_registry_stop"]


def schema_registry_stop(arguments: Sequence[str] | None = None) -> int:
    """Send SIGTERM to each; each leaves its group, finishes what was begun and ends."""
    parser = argparse.ArgumentParser(prog="schema-registry-stop", description=__doc__)
    parser.parse_args(arguments)
    registries = [server for server in running_servers() if ROLE in server.process_roles]
    if not registries:
        print("No schema registry to stop", file=sys.stderr)
        return 1
    for registry in registries:
        os.kill(registry.pid, signal.SIGTERM)
    return 0
