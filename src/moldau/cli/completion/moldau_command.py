"""`moldau completion`: prints the completion script for a shell, and the candidates it requests at each Tab.

Names of topics and groups come from the cluster of the command line, if it answers quickly. Start at `main`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.command_line import CommandParser
from moldau.cli.completion.scripts import FILES_MARK, SCRIPTS
from moldau.cli.sub_commands import add_connection, command_parser, properties_of, run_command

__all__ = ["main", "parser"]

LOOKUP_MS = 1000
"""The timeout of a lookup in the cluster: short, because the user waits after pressing Tab."""

CANDIDATES = "candidates"


def main(argv: Sequence[str]) -> int:
    # The words after "candidates" are the user's command line, not options of this command.
    if argv[:2] == [CANDIDATES, "--"]:
        return _answer(argv[2:] or [""])
    return run_command(parser(), argv, _script)


def parser() -> CommandParser:
    made = command_parser(
        "completion",
        "Print the script that lets a shell complete moldau's commands, options, topics and groups.",
        [
            "source <(moldau completion bash)                 # this shell",
            "moldau completion bash >> ~/.bashrc              # every bash from now on",
            "source <(moldau completion zsh)",
            "moldau completion zsh > ~/.zfunc/_moldau         # a folder of zsh's $fpath",
        ],
    )
    made.add_argument("shell", choices=tuple(SCRIPTS))
    return made


def _script(options: argparse.Namespace) -> None:
    print(SCRIPTS[options.shell], end="")


def _answer(words: Sequence[str]) -> int:
    """Print one candidate per line, with its description after a tab."""
    from moldau.cli.completion.candidates import Names, candidates

    found = candidates(words)
    for word, text in found.words.items():
        print(f"{word}\t{text}")
    if found.names is Names.FILES:
        print(FILES_MARK)
    elif found.names is not None:
        for name in _looked_up(found.names is Names.TOPICS, found.connection):
            if name.startswith(words[-1]):
                print(f"{name}\t")
    return 0


def _looked_up(wants_topics: bool, connection: Sequence[str]) -> list[str]:
    """Names of topics or groups from the cluster; empty, without an error message, if it does not answer."""
    from moldau.cli.topics.selection import INTERNAL_TOPICS
    from moldau.client.admin import Admin
    from moldau.client.groups import Groups
    from moldau.core.errors import MoldauError

    options = argparse.ArgumentParser(add_help=False)
    add_connection(options, has_output=False)
    try:
        given, _ = options.parse_known_args(list(connection))
        properties = properties_of(given)
        admin = Admin(properties["bootstrap.servers"], properties, timeout_ms=LOOKUP_MS)
        if wants_topics:
            return [name for name in admin.topic_names() if name not in INTERNAL_TOPICS]
        return sorted(listing.group_id for listing in Groups(admin).listings())
    except (MoldauError, OSError, SystemExit):
        return []
