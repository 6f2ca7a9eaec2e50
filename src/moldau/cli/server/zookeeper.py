"""`zookeeper-server-start` and `zookeeper-server-stop`: the controller of a cluster, by ZooKeeper's name.

Courses start it before the brokers; those whose file says `zookeeper.connect` find their cluster there, and tools find
brokers with `--zookeeper`. What it does is `server.zookeeper.node`. Start at `zookeeper_server_start`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from moldau.cli.server.background import start_in_background
from moldau.cli.server.starting import HELP_WORDS, daemon_and_rest, fail, overrides_in
from moldau.cli.server.stop import stop_all
from moldau.core.errors import MoldauError
from moldau.server.config import load_file, parse_overrides
from moldau.server.process.running import running_servers

__all__ = ["zookeeper_server_start", "zookeeper_server_stop"]

ROLE = "zookeeper"
"""By which the process is found among the running ones."""

_USAGE = "USAGE: zookeeper-server-start [-daemon] zookeeper.properties [--override property=value]*"


def zookeeper_server_start(arguments: Sequence[str] | None = None) -> int:
    """Run a controller with the `dataDir` and `clientPort` of a zookeeper.properties file."""
    in_background, words = daemon_and_rest(arguments)
    if not words or words[0] in HELP_WORDS:
        print(_USAGE, file=sys.stderr)
        return 1
    if in_background:
        return start_in_background("moldau.cli.server.zookeeper", words, "zookeeper.out")
    try:
        return _run(Path(words[0]), overrides_in(words[1:]))
    except MoldauError as error:
        return fail(error)


def zookeeper_server_stop(arguments: Sequence[str] | None = None) -> int:
    """Send SIGTERM to each of this user; brokers serve data on without it, and nothing can be changed."""
    parser = argparse.ArgumentParser(prog="zookeeper-server-stop", description=zookeeper_server_stop.__doc__)
    parser.parse_args(arguments)
    return stop_all([server for server in running_servers() if ROLE in server.process_roles], "zookeeper server")


def _run(file: Path, overrides: Sequence[str]) -> int:
    from moldau.server.run import stop_at_once
    from moldau.server.services.run import run_services
    from moldau.server.zookeeper.node import ZooKeeperNode
    from moldau.server.zookeeper.properties_file import ZooKeeperFile

    settings = ZooKeeperFile.of(load_file(file) | parse_overrides(overrides))
    return run_services(lambda: [ZooKeeperNode(settings, on_fatal=stop_at_once)], roles=(ROLE,))


if __name__ == "__main__":
    sys.exit(zookeeper_server_start())
