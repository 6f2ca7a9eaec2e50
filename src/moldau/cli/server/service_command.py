"""The commands of an HTTP service: `moldau NAME` with options, and a script that takes a properties file.

A service states its names, its settings and how it is built; reading words, files and the environment, checking and
running are the same for all. Start at `ServiceCommand`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from moldau.cli.command_line import CommandParser
from moldau.cli.server.background import start_in_background
from moldau.cli.server.starting import (
    HELP_WORDS,
    add_check_and_log,
    add_file_and_overrides,
    daemon_and_rest,
    fail,
    gather_service_settings,
    overrides_in,
    service_listener,
)
from moldau.core.errors import MoldauError
from moldau.http.tls import Listener, listener_context

__all__ = ["ServiceCommand"]


class Settings(Protocol):
    @property
    def warnings(self) -> Sequence[str]: ...
    @property
    def listener(self) -> Listener: ...
    @property
    def tls(self) -> Mapping[str, str]: ...


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, kw_only=True)
class ServiceCommand(Generic[S]):
    role: str
    """The role under which tools find the process."""
    module: str
    """The module that runs the script, for `-daemon`."""
    usage: str
    """The help of the script."""
    prefix: str
    """What environment variables with settings begin with."""
    default_port: int
    option_keys: Mapping[str, str]
    """The settings of options, such as `bootstrap_server` and `bootstrap.servers`."""
    settings_of: Callable[[Mapping[str, str]], S]
    build: Callable[[S], Any]
    """Builds the service; imports what it needs when it is called."""

    def settings_from(self, options: argparse.Namespace) -> S:
        """The settings of `moldau NAME`: options beat the file and the environment."""
        overrides = list(options.override)
        if options.host is not None or options.port is not None:
            port = self.default_port if options.port is None else options.port
            overrides.append(f"listeners={service_listener(options.file, options.host, port)}")
        given = {key: getattr(options, option) for option, key in self.option_keys.items()}
        overrides += [f"{key}={value}" for key, value in given.items() if value is not None]
        return self._gather(options.file, overrides)

    def run_with_options(self, options: argparse.Namespace) -> int:
        """Run it as `moldau NAME`."""
        return self._run(
            lambda: self.settings_from(options), check_only=options.check_config, log_format=options.log_format
        )

    def run_as_script(self, arguments: Sequence[str] | None) -> int:
        """Run it as the scripts of other distributions do: a properties file, then overrides."""
        in_background, words = daemon_and_rest(arguments)
        if words and words[0] in HELP_WORDS:
            print(self.usage)
            return 0
        if in_background:
            return start_in_background(self.module, words, f"{self.role}.out")
        file = Path(words.pop(0)) if words and not words[0].startswith("-") else None
        return self._run(lambda: self._gather(file, overrides_in(words)), check_only=False, log_format="text")

    def _gather(self, file: Path | None, overrides: Sequence[str]) -> S:
        gathered = gather_service_settings(
            file, os.environ, overrides, prefix=self.prefix, default_port=self.default_port
        )
        return self.settings_of(gathered)

    def _run(self, load_settings: Callable[[], S], *, check_only: bool, log_format: str) -> int:
        from moldau.server.services.run import run_services

        try:
            settings = load_settings()
            for warning in settings.warnings:
                print(f"moldau: {warning}", file=sys.stderr)
            if check_only:
                listener_context(settings.listener, settings.tls)
                print("The configuration is valid.")
                return 0
            return run_services(lambda: [self.build(settings)], roles=(self.role,), log_format=log_format)
        except MoldauError as error:
            return fail(error)

    @staticmethod
    def parser(prog: str, description: str, epilog: str, *, file_help: str) -> CommandParser:
        """The parser of `moldau NAME`, with the options that every service has."""
        made = CommandParser(
            prog=prog, description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        add_file_and_overrides(made, file_help=file_help)
        made.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="the brokers that hold the topics")
        made.add_argument(
            "--host",
            help="listen on this address (0.0.0.0 for every interface; default: this machine only, without a file)",
        )
        made.add_argument("--port", type=int, help="listen on this port (0 picks a free one and says which)")
        add_check_and_log(made)
        return made
