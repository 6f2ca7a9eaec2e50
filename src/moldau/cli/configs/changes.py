"""The configs that an `--alter` adds and removes. No I/O. Start at `parse_changes`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.cli.options import Parsed, UsageError
from moldau.client.connection import load_properties

__all__ = ["Changes", "parse_add_config", "parse_changes"]

_COMMA_OUTSIDE_BRACKETS = re.compile(r",(?![^\[]*\])")


@dataclass(frozen=True, slots=True)
class Changes:
    add: Mapping[str, str]
    delete: tuple[str, ...]


def parse_changes(parsed: Parsed) -> Changes:
    if parsed.has("add-config") and parsed.has("add-config-file"):
        raise UsageError("Only one of --add-config or --add-config-file must be specified.")
    add: dict[str, str] = {}
    for text in parsed.values("add-config"):
        add |= parse_add_config(text)
    if parsed.has("add-config-file"):
        add = load_properties(parsed.value("add-config-file"))
    delete = tuple(key.strip() for text in parsed.values("delete-config") for key in text.split(",") if key.strip())
    if not add and not delete:
        raise UsageError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if both := sorted(set(add) & set(delete)):
        raise UsageError(f"The same config cannot be added and deleted at once: {', '.join(both)}")
    return Changes(add, delete)


def parse_add_config(text: str) -> dict[str, str]:
    """Parse `k=v,k2=[a,b]`: values with commas are in square brackets, which are removed."""
    found = {}
    for part in _COMMA_OUTSIDE_BRACKETS.split(text):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                'Invalid entity config: all configs to be added must be in the format "key=val". '
                f"Found: {part.strip()} (values with commas go into brackets: key=[a,b])"
            )
        found[key.strip()] = value.strip().removeprefix("[").removesuffix("]")
    return found
