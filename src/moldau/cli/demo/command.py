"""`moldau demo`: finds out which demo is meant. Start at `main`; `story.command` is the one without a name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from moldau.cli.command_line import CommandParser
from moldau.cli.sub_commands import command_parser, run_command

__all__ = ["main", "parser"]


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["counts"]:
        from moldau.cli.demo.counts.command import main as counts

        return counts(words[1:])
    if words[:1] == ["etl"]:
        return run_command(_etl_parser(), words[1:], _run_etl)
    return run_command(parser(), words, _run_story)


def _run_story(options: argparse.Namespace) -> int:
    from moldau.cli.demo.story.command import run_story  # takes a moment, in which Ctrl-C has to work already

    return run_story(options)


def _run_etl(options: argparse.Namespace) -> int:
    from moldau.cli.demo.story.command import run_etl

    return run_etl(options)


def parser() -> CommandParser:
    made = command_parser(
        "demo",
        "The whole platform at work: orders in a database stream through Connect into a topic, ksql and a Streams\n"
        "program add them up on Spark, results go to Parquet files and to a table that is asked over HTTP.\n"
        "It takes less than a minute, checks that every order was counted once, and leaves nothing behind.\n\n"
        "other demos:\n"
        "  moldau demo etl       database -> topic -> SQL on Spark -> Parquet, and nothing else\n"
        "  moldau demo counts    a broker and one pipeline: visits counted in windows",
        [
            "moldau demo",
            "moldau demo --keep                                        # leave the platform running",
            "moldau demo --rate 5000 --seconds 60",
            "moldau demo --database postgresql://me:secret@localhost/shop",
        ],
    )
    _add_options(made)
    return made


def _etl_parser() -> CommandParser:
    made = command_parser(
        "demo etl",
        "A database table becomes Parquet files without a program: Connect streams its rows into a topic, one\n"
        "statement of ksql adds them up on Spark, Connect writes the results. Every order is counted once.",
        ["moldau demo etl", "moldau demo etl --keep --seconds 30"],
    )
    _add_options(made)
    return made


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=_positive, default=500, help="orders per second (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=8, help="how long to go on once results come (default: %(default)s)"
    )
    parser.add_argument("--keep", action="store_true", help="leave the platform running at the end")
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="where everything is kept (default: a temporary folder)"
    )
    parser.add_argument(
        "--database", metavar="URL", help="use this database, as postgresql://user:password@host/name, not SQLite"
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
