"""`moldau server` and `kafka-server-start`: run a node in the foreground or in the background.

`moldau server` needs no configuration and formats a per-user data folder on first use; `kafka-server-start`
requires a file, as in Kafka. Start at `moldau_server`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from moldau.cli.command_line import CommandParser
from moldau.cli.server.background import start_in_background
from moldau.cli.server.starting import (
    HELP_WORDS,
    add_check_and_log,
    add_file_and_overrides,
    daemon_and_rest,
    fail,
    overrides_in,
)
from moldau.core.errors import MoldauError, StartupError
from moldau.server.config import gather, laptop_defaults, with_address

__all__ = ["kafka_server_start", "moldau_server", "parser"]

_KAFKA_USAGE = "USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*"


def moldau_server(arguments: Sequence[str] | None = None) -> int:
    """Run a broker with sensible defaults; a file, the environment and overrides change them."""
    options = parser().parse_args(arguments)
    overrides = list(options.override)
    if options.data is not None:
        overrides.append(f"log.dirs={options.data}")
    try:
        if options.brokers is not None:
            if options.file is not None:
                raise StartupError(
                    "--brokers generates the brokers' configuration files; "
                    "with files of your own, start the brokers one by one"
                )
            from moldau.cli.server.several import run_several

            return run_several(options.brokers, options.data, options.host, options.port, options.override)
        defaults = laptop_defaults(os.environ, options.file)
        settings = gather(defaults=defaults, file=options.file, environ=os.environ, overrides=overrides)
        settings = with_address(settings, options.host, options.port)
        if options.file is None:
            from moldau.cli.server.several import check_alone

            check_alone(Path(settings["log.dirs"].partition(",")[0]))
        return _run(settings, may_format=True, check_only=options.check_config, log_format=options.log_format)
    except MoldauError as error:
        return fail(error)


def kafka_server_start(arguments: Sequence[str] | None = None) -> int:
    """Run a broker as Kafka's script does: a server.properties file, then overrides."""
    in_background, words = daemon_and_rest(arguments)
    if not words or words[0] in HELP_WORDS:
        print(_KAFKA_USAGE, file=sys.stderr)
        return 1
    if in_background:
        return start_in_background("moldau.cli.server.start", words, "kafkaServer.out")
    file, overrides = Path(words[0]), overrides_in(words[1:])
    try:
        settings = gather(defaults={}, file=file, environ=os.environ, overrides=overrides)
        # ZooKeeper-mode files have no formatting step, so the folder is formatted on first use.
        return _run(settings, may_format="process.roles" not in settings, check_only=False, log_format="text")
    except MoldauError as error:
        return fail(error)


def _run(settings: dict[str, str], *, may_format: bool, check_only: bool, log_format: str) -> int:
    from moldau.server.run import check, run

    if check_only:
        check(settings)
        print("The configuration is valid.")
        return 0
    return run(settings, may_format=may_format, log_format=log_format)


def parser() -> CommandParser:
    made = CommandParser(
        prog="moldau server",
        description="Run a broker that every Kafka client can use. Without arguments it listens on port 9092 of this "
        "machine and keeps its log in a folder of yours, made on first use.",
        epilog="examples:\n"
        "  moldau server\n"
        "  moldau server --port 19092 --data ./log\n"
        "  moldau server --brokers 3                      # a cluster on this machine\n"
        "  moldau server --host 0.0.0.0                   # for other machines too; nobody has to log in\n"
        "  moldau server server.properties --override log.retention.hours=24\n"
        "  KAFKA_NUM_PARTITIONS=3 moldau server",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_file_and_overrides(made, file_help="a server.properties file with Kafka's keys")
    made.add_argument(
        "--host",
        help="listen on this address (0.0.0.0 for every interface; default: this machine only, without a file)",
    )
    made.add_argument("--port", type=int, help="listen on this port (0 picks a free one and says which)")
    made.add_argument("--data", type=Path, metavar="FOLDER", help="keep the log here")
    made.add_argument("--brokers", metavar="N", help="run a cluster of N brokers (or auto) on ports 9092 and following")
    add_check_and_log(made)
    return made


if __name__ == "__main__":
    sys.exit(kafka_server_start())
