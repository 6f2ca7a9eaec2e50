"""`ksql`: the terminal of a ksql server, also for one statement (`-e`) or a file of them (`-f`). Start at `main`."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import moldau
from moldau.cli.command_line import CommandParser
from moldau.cli.ksql.server_client import Credentials, KsqlServerClient
from moldau.cli.ksql.shell.commands import Command
from moldau.cli.ksql.shell.completion import KnownNames, candidates
from moldau.cli.ksql.shell.input_lines import split_input
from moldau.cli.ksql.shell.line_editor import LineEditor
from moldau.cli.ksql.shell.loop import banner, run_shell
from moldau.cli.ksql.shell.session import OUTPUTS, Session, SessionSettings
from moldau.cli.ksql.shell.terminal import Terminal
from moldau.cli.tool import (
    OutputError,
    ToolError,
    default_stop_signals,
    exit_code_of,
    forget_output,
    open_streams,
)
from moldau.client.connection import load_properties
from moldau.core.errors import MoldauError
from moldau.security.keystores import trusted_certificates_pem

__all__ = ["main", "moldau_ksql", "moldau_parser", "parser"]

DEFAULT_SERVER = "http://localhost:8088"
HISTORY_FILE = ".ksql-history"
ASK = object()
"""The value of `-p` without a password behind it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the terminal; returns 1 if a statement of `-e` or `-f` failed."""
    return _run_with(parser().parse_args(arguments))


def moldau_ksql(arguments: Sequence[str] | None = None) -> int:
    """The same as `moldau ksql`."""
    return _run_with(moldau_parser().parse_args(arguments))


def _run_with(options: argparse.Namespace) -> int:
    open_streams()
    default_stop_signals()
    try:
        return _run(options)
    except OutputError as error:
        forget_output()
        print(f"ksql: {error}", file=sys.stderr)
        return 1
    except MoldauError as error:
        print(f"ksql: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        return exit_code_of(interrupt)
    except BrokenPipeError:
        forget_output()
        return 1


def _run(options: argparse.Namespace) -> int:
    properties = load_properties(options.config_file) if options.config_file else {}
    truststore = _truststore(properties)
    credentials = _credentials(options)
    settings = SessionSettings(
        output=options.output,
        row_limit=options.query_row_limit,
        timeout_s=None if options.query_timeout is None else options.query_timeout / 1000,
        properties={name: value for name, value in properties.items() if not name.startswith("ssl.")},
        variables=dict(_definition(one) for one in options.define),
    )

    def connect(url: str) -> KsqlServerClient:
        return KsqlServerClient(url, credentials, truststore)

    inputs = _inputs(options)
    if inputs is not None:
        session = Session(connect, options.server, Terminal(is_interactive=False), settings)
        return _run_inputs(session, inputs)
    return _run_interactively(connect, options.server, settings)


def _inputs(options: argparse.Namespace) -> list[str | Command] | None:
    """What `-e` and `-f` give, None without them."""
    if options.execute is not None:
        return list(split_input(options.execute))
    if options.file is None:
        return None
    try:
        return list(split_input(Path(options.file).read_text(encoding="utf-8")))
    except UnicodeDecodeError:
        raise ToolError(f"{options.file} is not UTF-8") from None
    except OSError as error:
        raise ToolError(f"cannot read {options.file}: {error.strerror}") from None


def _run_inputs(session: Session, inputs: Sequence[str | Command]) -> int:
    for given in inputs:
        if given == Command("EXIT"):
            return 0
        if not session.run(given):
            return 1
    return 0


def _run_interactively(connect: Callable[[str], KsqlServerClient], url: str, settings: SessionSettings) -> int:
    names = KnownNames()

    def complete(prefix: str) -> list[str]:
        if session.names_are_stale:
            session.names_are_stale = False
            names.fetch(session.client)
        return candidates(prefix, names.names)

    editor = LineEditor(Path.home() / HISTORY_FILE, complete)
    terminal = Terminal(is_interactive=True)
    session = Session(connect, url, terminal, settings, editor.history)
    if editor.is_terminal:
        _greet(session, terminal)
    try:
        return run_shell(session, editor, terminal)
    finally:
        terminal.stop_spool()
        editor.close()


def _greet(session: Session, terminal: Terminal) -> None:
    try:
        terminal.show(banner(session.client.url, session.client.info()))
    except MoldauError as error:
        terminal.show([*banner(session.client.url, None), str(error), ""])


def _definition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ToolError(f"-d needs name=value, not {text!r}")
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] == "'":
        value = value[1:-1].replace("''", "'")
    return name.strip().upper(), value


def _credentials(options: argparse.Namespace) -> Credentials | None:
    if options.token is not None:
        return Credentials(token=options.token)
    if options.user is None and options.confluent_api_key is not None:
        return Credentials(options.confluent_api_key, options.confluent_api_secret or "")
    if options.user is None:
        if options.password is not None:
            raise ToolError("-p needs the user too: -u name")
        return None
    if options.password is None or options.password is ASK:
        return Credentials(options.user, getpass.getpass(f"Password of {options.user}: "))
    return Credentials(options.user, options.password)


def _truststore(properties: dict[str, str]) -> str | None:
    location = properties.get("ssl.truststore.location")
    return trusted_certificates_pem(location, properties.get("ssl.truststore.password", "")) if location else None


def moldau_parser() -> CommandParser:
    return parser("moldau ksql")


def parser(name: str = "ksql") -> CommandParser:
    made = CommandParser(
        prog=name,
        description="The terminal of a ksql server. Without -e and -f it reads statements from the keyboard,\n"
        "or from a pipe.",
        epilog="examples:\n"
        "  ksql\n"
        "  ksql http://localhost:18088\n"
        "  ksql -e 'SHOW STREAMS;' --output JSON\n"
        "  ksql -f statements.sql -d topic=orders\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("server", nargs="?", default=DEFAULT_SERVER, help=f"the server (default: {DEFAULT_SERVER})")
    work = made.add_mutually_exclusive_group()
    work.add_argument("-e", "--execute", metavar="SQL", help="run statements and quit")
    work.add_argument("-f", "--file", metavar="FILE", help="run the statements of a file and quit")
    made.add_argument(
        "-d", "--define", action="append", default=[], metavar="NAME=VALUE", help="define a variable; may be repeated"
    )
    made.add_argument("--config-file", metavar="FILE", help="properties of the session, and ssl.truststore.*")
    made.add_argument("--output", type=str.upper, choices=OUTPUTS, default="TABULAR", help="how results are shown")
    made.add_argument("--query-row-limit", type=_positive, metavar="N", help="end queries after so many rows")
    made.add_argument("--query-timeout", type=_positive, metavar="MS", help="end queries after so many milliseconds")
    login = made.add_argument_group("login")
    login.add_argument("-u", "--user", help="the user's name")
    login.add_argument("-p", "--password", nargs="?", const=ASK, help="the password; asks for it if none follows")
    login.add_argument("-t", "--token", help="a bearer token")
    login.add_argument("--confluent-api-key", metavar="KEY", help="used as the user's name")
    login.add_argument("--confluent-api-secret", metavar="SECRET", help="used as the password")
    made.add_argument("--version", action="version", version=f"{moldau.__version__} (moldau)")
    return made


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


if __name__ == "__main__":
    sys.exit(main())
