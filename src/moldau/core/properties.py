"""Parser of Java properties files, the format of Kafka's configuration files."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["parse_properties"]

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*[=:\s]")


def parse_properties(text: str) -> dict[str, str]:
    """Parse `key=value`, `key: value` or `key value` lines; the last of a repeated key wins."""
    return dict(_split(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    """Drop comments and blanks, join lines that end in an odd number of backslashes."""
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        trailing = len(pending) - len(pending.rstrip("\\"))
        if trailing % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    found = _SEPARATOR.search(line)
    if found is None:
        return _unescape(line), ""
    key, rest = line[: found.end() - 1], line[found.end() - 1 :].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return _unescape(key), _unescape(rest).rstrip()


def _unescape(text: str) -> str:
    def replace(found: re.Match[str]) -> str:
        escape = found.group(1)
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        return _ESCAPES.get(escape, escape)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", replace, text)
