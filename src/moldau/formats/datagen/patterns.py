"""Random texts that fit a simple pattern such as `User_[1-9]{0,2}`. Start at `text_maker`.

A pattern has characters, `.`, `\\d`, classes in brackets, and `?`, `*`, `+` or `{m,n}` behind them; nothing else.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from random import Random

from moldau.formats.errors import FormatError

__all__ = ["text_maker"]

MOST = 8
"""How often `*` and `+` repeat at most."""
LONGEST = 1000
_ATOM = re.compile(r"\[(?P<class>[^\]]+)\]|\\(?P<escaped>.)|(?P<any>\.)|(?P<plain>[^\[\]\\.?*+{}()|^$])", re.DOTALL)
_COUNT = re.compile(r"\{(?P<least>\d+)(?P<comma>,(?P<most>\d+)?)?\}|(?P<sign>[?*+])")
_SIGNS = {"?": (0, 1), "*": (0, MOST), "+": (1, MOST)}
_LETTERS = string.ascii_letters + string.digits
_ESCAPES = {"d": string.digits, "w": _LETTERS + "_", "s": " "}


def text_maker(pattern: str) -> Callable[[Random], str]:
    """A function that makes texts; raises `FormatError` for a pattern that is not understood."""
    parts: list[tuple[str, int, int]] = []
    position = 0
    while position < len(pattern):
        atom = _ATOM.match(pattern, position)
        if atom is None:
            raise FormatError(f"the pattern {pattern!r} is not understood from {pattern[position:]!r} on")
        position = atom.end()
        count = _COUNT.match(pattern, position)
        least, most = _repetitions(count)
        position = count.end() if count is not None else position
        if not 0 <= least <= most <= LONGEST:
            raise FormatError(f"the pattern {pattern!r} repeats {least} to {most} times; 0 to {LONGEST} are possible")
        parts.append((_characters(atom), least, most))

    def make(random: Random) -> str:
        return "".join(
            random.choice(characters) for characters, least, most in parts for _ in range(random.randint(least, most))
        )

    return make


def _repetitions(count: re.Match[str] | None) -> tuple[int, int]:
    if count is None:
        return 1, 1
    if count["sign"]:
        return _SIGNS[count["sign"]]
    least = int(count["least"][:6])
    if count["comma"] is None:
        return least, least
    return least, int(count["most"][:6]) if count["most"] else least + MOST


def _characters(atom: re.Match[str]) -> str:
    if atom["any"]:
        return _LETTERS
    if atom["escaped"]:
        return _ESCAPES.get(atom["escaped"], atom["escaped"])
    if atom["plain"]:
        return atom["plain"]
    found = ""
    for one in re.finditer(r"\\(?P<escaped>.)|(?P<from>.)-(?P<to>.)|(?P<plain>.)", atom["class"], re.DOTALL):
        if one["escaped"]:
            found += _ESCAPES.get(one["escaped"], one["escaped"])
        elif one["plain"]:
            found += one["plain"]
        else:
            found += "".join(map(chr, range(ord(one["from"]), min(ord(one["to"]), ord(one["from"]) + LONGEST) + 1)))
    if not found:
        raise FormatError(f"the class {atom['class']!r} has no characters")
    return found
