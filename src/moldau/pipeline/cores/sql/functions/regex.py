"""Functions with regular expressions."""

from __future__ import annotations

from moldau.pipeline.cores.sql import java_regex
from moldau.pipeline.cores.sql.functions.registry import BUILTIN

_REGEX = "REGULAR EXPRESSION"


@BUILTIN.scalar(
    "regexp_extract",
    "(pattern STRING, input STRING) -> STRING",
    "(pattern STRING, input STRING, group INTEGER) -> STRING",
    category=_REGEX,
)
def regexp_extract(pattern: str, text: str, group: int = 0) -> str | None:
    """What the first match of a pattern, or a group of it, covers; NULL if nothing matches."""
    compiled = java_regex.pattern(pattern)
    if not 0 <= group <= compiled.groups:
        return None
    found = compiled.search(text)
    return None if found is None else found.group(group)


@BUILTIN.scalar(
    "regexp_extract_all",
    "(pattern STRING, input STRING) -> ARRAY<STRING>",
    "(pattern STRING, input STRING, group INTEGER) -> ARRAY<STRING>",
    category=_REGEX,
)
def regexp_extract_all(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    """What all matches of a pattern, or a group of them, cover."""
    compiled = java_regex.pattern(pattern)
    if not 0 <= group <= compiled.groups:
        return None
    return [found.group(group) for found in compiled.finditer(text)]


@BUILTIN.scalar("regexp_replace", "(str STRING, regexp STRING, replacement STRING) -> STRING", category=_REGEX)
def regexp_replace(text: str, pattern: str, replacement: str) -> str:
    """The text with all matches of a pattern replaced; $1 in the replacement is the first group."""
    return java_regex.replace_all(text, java_regex.pattern(pattern), replacement)


@BUILTIN.scalar("regexp_split_to_array", "(text STRING, regexp STRING) -> ARRAY<STRING>", category=_REGEX)
def regexp_split_to_array(text: str, pattern: str) -> list[str]:
    """The parts of a text between matches of a pattern."""
    return java_regex.split(text, java_regex.pattern(pattern))
