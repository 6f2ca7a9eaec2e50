"""What connectors may touch: the worker's list of paths and hosts. Start at `Limits`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from moldau.connect.api.errors import NotAllowedError

__all__ = ["HOSTS_KEY", "OPEN", "PATHS_KEY", "Limits"]

PATHS_KEY = "moldau.connect.allowed.paths"
HOSTS_KEY = "moldau.connect.allowed.hosts"


@dataclass(frozen=True, slots=True)
class Limits:
    """The folders and files, and the hosts, that connectors may use; None allows all, an empty tuple nothing."""

    paths: tuple[str, ...] | None = None
    hosts: tuple[str, ...] | None = None
    """Host names or patterns (`*.example.org`), each with an optional `:port`."""

    @classmethod
    def of(cls, paths: Iterable[str] | None, hosts: Iterable[str] | None) -> Limits:
        """Limits from the worker's settings; `*` in a list allows all."""

        def listed(texts: Iterable[str] | None) -> tuple[str, ...] | None:
            texts = None if texts is None else tuple(text.strip() for text in texts if text.strip())
            return None if texts is None or "*" in texts else texts

        return cls(listed(paths), listed(hosts))

    def check_path(self, path: str | Path) -> Path:
        """The path with links and `..` resolved; raises `NotAllowedError` unless it is an allowed one or below one."""
        resolved = Path(path).expanduser().resolve()
        if self.paths is None or any(resolved.is_relative_to(Path(one).expanduser().resolve()) for one in self.paths):
            return resolved
        raise NotAllowedError(
            f"connectors may not touch {resolved}: the worker's {PATHS_KEY} is {','.join(self.paths) or 'empty'}; "
            "add the folder there"
        )

    def check_host(self, host: str, port: int | None = None) -> None:
        """Raise `NotAllowedError` for a host that connectors may not connect to."""
        name = host.lower().strip("[]")
        if self.hosts is None or any(_is_match(one.lower(), name, port) for one in self.hosts):
            return
        shown = host if port is None else f"{host}:{port}"
        raise NotAllowedError(
            f"connectors may not connect to {shown}: the worker's {HOSTS_KEY} is {','.join(self.hosts) or 'empty'}; "
            "add the host there"
        )


def _is_match(pattern: str, host: str, port: int | None) -> bool:
    name, colon, port_text = pattern.rpartition(":")
    if not (colon and port_text.isdigit() and ("]" in name or ":" not in name)):
        return fnmatchcase(host, pattern.strip("[]"))
    return fnmatchcase(host, name.strip("[]")) and port == int(port_text)


OPEN = Limits()
"""Everything is allowed."""
