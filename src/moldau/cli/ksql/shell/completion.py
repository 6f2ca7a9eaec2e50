"""Completion with TAB: words of the language, commands, functions, and the names that the server knows.

Start at `candidates`; `KnownNames` asks the server, at most once after each statement.
"""

from __future__ import annotations

from collections.abc import Collection

from moldau.cli.ksql.server_client import KsqlServerClient
from moldau.cli.ksql.shell.commands import COMMANDS
from moldau.core.errors import MoldauError
from moldau.pipeline.ksql.syntax.tokens import KEYWORDS

__all__ = ["DELIMITERS", "KnownNames", "candidates"]

DELIMITERS = " \t\n;(),=<>+*/%[]'`\"|!"
WORDS = KEYWORDS | {word for name in COMMANDS for word in name.split()} | {"JSON", "TABULAR", "OFF"}
TIMEOUT_S = 2.0


def candidates(prefix: str, names: Collection[str]) -> list[str]:
    """The words and names that begin with what was typed, in the case that was typed.

    A name that needs quotes keeps its case, and fits only as it is written.
    """
    upper = prefix.upper()
    in_lower_case = bool(prefix) and prefix == prefix.lower() and prefix != upper
    found = {word for word in (*WORDS, *names) if word.startswith(upper) and word == word.upper()}
    exact = {name for name in names if name != name.upper() and name.startswith(prefix)}
    return sorted({word.lower() if in_lower_case else word for word in found} | exact)


class KnownNames:
    """Names of sources, queries and functions, as the server last told them."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()

    def fetch(self, client: KsqlServerClient) -> frozenset[str]:
        """Ask the server; without an answer the names stay as they are, because TAB must never fail."""
        statements = "SHOW STREAMS; SHOW TABLES; SHOW QUERIES; SHOW FUNCTIONS;"
        try:
            documents = client.run_statements({"ksql": statements}, timeout_s=TIMEOUT_S)
        except MoldauError:
            return self._names
        found = set()
        for document in documents:
            for member, name in (("streams", "name"), ("tables", "name"), ("queries", "id"), ("functions", "name")):
                found |= {str(one[name]) for one in document.get(member) or ()}
        self._names = frozenset(found)
        return self._names

    @property
    def names(self) -> frozenset[str]:
        return self._names
