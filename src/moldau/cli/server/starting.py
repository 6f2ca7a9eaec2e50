"""Shared code of the commands that start a server: arguments of Kafka's scripts, options, error output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from moldau.core.errors import MoldauError

__all__ = ["HELP_WORDS", "add_check_and_log", "add_file_and_overrides", "daemon_and_rest", "fail", "overrides_in"]

HELP_WORDS = ("--help", "-help", "-h")


def daemon_and_rest(arguments: Sequence[str] | None) -> tuple[bool, list[str]]:
    """Whether the command line begins with `-daemon`, and the other words."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    in_background = bool(words) and words[0] in ("-daemon", "--daemon")
    return in_background, words[1:] if in_background else words


def overrides_in(words: Sequence[str]) -> list[str]:
    """The `key=value` words; each may have `--override` before it."""
    return [word for word in words if word not in ("--override", "-override")]


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
