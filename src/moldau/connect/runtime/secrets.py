"""References to secrets in configurations: `${file:/path:key}`, `${env:NAME}`, `${directory:/path:file}`.

They are stored as they were written, and resolved where the value is used. `Secrets` remembers the values, so that none
gets into a trace, a log line, or the configuration of a task. Start at `Secrets.resolve`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from moldau.connect.api.errors import ConfigError
from moldau.core.properties import parse_properties

__all__ = ["HIDDEN", "Secrets"]

HIDDEN = "[hidden]"
SHORTEST = 3
"""Shorter values are not looked for in texts: they would be found everywhere."""

_REFERENCE = re.compile(r"\$\{([^}:]+):(?:([^}]*?):)?([^}]*)\}")


def _from_file(path: str, key: str) -> str:
    values = parse_properties(Path(path).read_text())
    if key not in values:
        raise KeyError(f"{path} has no key {key}")
    return values[key]


def _from_environment(_path: str, key: str) -> str:
    if key not in os.environ:
        raise KeyError(f"the worker's environment has no {key}")
    return os.environ[key]


def _from_directory(path: str, key: str) -> str:
    if "/" in key or key in ("", ".", ".."):
        raise KeyError(f"{key!r} is not the name of a file")
    return (Path(path) / key).read_text()


_PROVIDERS: Mapping[str, Callable[[str, str], str]] = {
    "file": _from_file,
    "env": _from_environment,
    "directory": _from_directory,
    "dir": _from_directory,
}
_CLASSES = {"FileConfigProvider": "file", "EnvVarConfigProvider": "env", "DirectoryConfigProvider": "directory"}


class Secrets:
    """`worker` are the worker's settings, which may give the providers other names."""

    def __init__(self, worker: Mapping[str, str] | None = None) -> None:
        self._providers = dict(_PROVIDERS)
        for name in (worker or {}).get("config.providers", "").split(","):
            kind = (worker or {}).get(f"config.providers.{name.strip()}.class", "").rpartition(".")[2]
            if kind in _CLASSES:
                self._providers[name.strip()] = _PROVIDERS[_CLASSES[kind]]
        self._known: dict[str, str] = {}
        """From values to the references that gave them."""

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """The configuration with values in place of references; raises `ConfigError`, which names each bad one."""
        problems: list[str] = []
        found = {name: self._resolve_text(name, text, problems) for name, text in config.items()}
        if problems:
            raise ConfigError(problems)
        return found

    def _resolve_text(self, name: str, text: str, problems: list[str]) -> str:
        def value_of(match: re.Match[str]) -> str:
            provider = self._providers.get(match[1])
            if provider is None:
                return match[0]  # not ours, for example ${topic}
            try:
                value = provider(match[2] or "", match[3])
            except (KeyError, OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error).strip("'\"")
                problems.append(f"{name}: {match[0]} cannot be resolved: {reason}")
                return ""
            self._known[value] = match[0]
            return value

        return _REFERENCE.sub(value_of, text) if isinstance(text, str) and "${" in text else text

    def unresolve(self, given: Mapping[str, str], configs: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
        """The configurations of tasks with references in place of the values that came from them.

        `given` is the connector's configuration as it was written.
        """
        resolved = self.resolve(given)
        unchanged = {name: text for name, text in given.items() if resolved[name] != text}
        return [
            {
                name: unchanged[name] if name in unchanged and text == resolved[name] else self._with_references(text)
                for name, text in config.items()
            }
            for config in configs
        ]

    def _with_references(self, text: str) -> str:
        for value, reference in self._known.items():
            if len(value) >= SHORTEST:
                text = text.replace(value, reference)
        return text

    def hide(self, text: str) -> str:
        """The text without any value that came from a reference."""
        for value in sorted(self._known, key=len, reverse=True):
            for form in {value, value.strip(), repr(value)[1:-1]}:
                if len(form) >= SHORTEST:
                    text = text.replace(form, HIDDEN)
        return text
