"""Shared code of the commands that start a server: arguments of Kafka's scripts, options, error output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from moldau.core.errors import MoldauError
from moldau.server.config import LOOPBACK, load_file, parse_overrides

__all__ = [
    "HELP_WORDS",
    "add_check_and_log",
    "add_file_and_overrides",
    "daemon_and_rest",
    "fail",
    "gather_service_settings",
    "overrides_in",
    "service_listener",
]

HELP_WORDS = ("--help", "-help", "-h")


def daemon_and_rest(arguments: Sequence[str] | None) -> tuple[bool, list[str]]:
    """Whether the command line begins with `-daemon`, and the other words."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    in_background = bool(words) and words[0] in ("-daemon", "--daemon")
    return in_background, words[1:] if in_background else words


def overrides_in(words: Sequence[str]) -> list[str]:
    """The `key=value` words; each may have `--override` before it."""
    return [word for word in words if word not in ("--override", "-override")]


def service_listener(file: Path | None, host: str | None, port: int) -> str:
    """The listener URL of an HTTP service: without a file only this machine can connect, as there is no login."""
    host = (host or ("0.0.0.0" if file is not None else LOOPBACK)).strip("[]")
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def gather_service_settings(
    file: Path | None, environ: Mapping[str, str], overrides: Sequence[str], *, prefix: str, default_port: int
) -> dict[str, str]:
    """The settings of an HTTP service: file, then environment, then overrides.

    With the prefix `KSQL_`, `KSQL_BOOTSTRAP_SERVERS` sets `bootstrap.servers`.
    """
    from_environment = {
        name.removeprefix(prefix).lower().replace("_", "."): text
        for name, text in environ.items()
        if name.startswith(prefix) and not name.endswith(("_OPTS", "_HOME"))
    }
    from_file = {"listeners": service_listener(None, None, default_port)} if file is None else load_file(file)
    return from_file | from_environment | parse_overrides(overrides)


def add_file_and_overrides(parser: argparse.ArgumentParser, *, file_help: str) -> None:
    parser.add_argument("file", nargs="?", type=Path, help=file_help)
    parser.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="set one key; beats file and environment"
    )


def add_check_and_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check-config", action="store_true", help="check the configuration and exit")
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="how log lines look")


def fail(error: MoldauError) -> int:
    print(f"moldau: {error}", file=sys.stderr)
    return 1
