"""Splits a .proto text into tokens, which `parser` reads. Start at `Tokens`."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from moldau.schemas.errors import InvalidSchemaError

__all__ = ["Tokens", "unescape"]

_TOKEN: Final = re.compile(
    r"""
      (?P<skip>    \s+ | //[^\n]* | /\*(?s:.*?)\*/ )
    | (?P<open>    /\* )
    | (?P<float>   (?:\d+\.\d*(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ | \.\d+(?:[eE][+-]?\d+)?)[fF]? )
    | (?P<int>     0[xX][0-9a-fA-F]+ | \d+ )
    | (?P<name>    [A-Za-z_]\w* )
    | (?P<string>  "[^"\\\n]*+(?:\\.[^"\\\n]*+)*+" | '[^'\\\n]*+(?:\\.[^'\\\n]*+)*+' )
    | (?P<symbol>  [{}\[\]()<>;=,.:+/-] )
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.S)
_PLAIN: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_END: Final = ("end", "the end of the text", -1)


class Tokens:
    """Reads the tokens of a text one by one, with a lookahead of one token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self.kind, self.text, self._offset = self._scan()
        self._following = self._scan()

    def advance(self) -> str:
        """Return the current token's text and go to the next."""
        text = self.text
        self.kind, self.text, self._offset = self._following
        self._following = self._scan()
        return text

    def accept(self, text: str) -> bool:
        """Skip the current token if it is `text`; returns whether it was."""
        if self.text == text and self.kind in {"symbol", "name"}:
            self.advance()
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r}")

    def next_is(self, text: str) -> bool:
        """Whether the token after the current one is `text`."""
        return self._following[1] == text and self._following[0] in {"symbol", "name"}

    def name(self, what: str = "a name") -> str:
        if self.kind != "name":
            self.fail(f"expected {what}")
        return self.advance()

    def type_name(self) -> str:
        """Read a dotted name, with a leading dot if it is fully qualified."""
        return ("." if self.accept(".") else "") + self.dotted_name()

    def dotted_name(self) -> str:
        parts = [self.name()]
        while self.text == "." and self.kind == "symbol":
            self.advance()
            parts.append(self.name())
        return ".".join(parts)

    def integer(self) -> int:
        is_negative = self.accept("-")
        if self.kind != "int" or len(self.text) > 25:
            self.fail("expected a whole number")
        text = self.advance()
        is_octal = len(text) > 1 and text[0] == "0" and text[1] not in "xX"
        try:
            value = int(text, 8 if is_octal else 0)
        except ValueError:
            self.fail(f"{text} is not an octal number")
        return -value if is_negative else value

    def string(self) -> str:
        """Read a string; adjacent strings are joined, as in C."""
        if self.kind != "string":
            self.fail("expected a text in quotes")
        parts = []
        while self.kind == "string":
            parts.append(self._unescape(self.text[1:-1]))
            self.advance()
        return "".join(parts)

    def fail(self, problem: str) -> NoReturn:
        """Raise `InvalidSchemaError` for the current token."""
        line = self._text.count("\n", 0, self._offset) + 1 if self._offset >= 0 else self._text.count("\n") + 1
        shown = self.text if self.kind == "end" else repr(self.text[:40])
        raise InvalidSchemaError(f"Invalid Protobuf schema: {problem} in line {line}, found {shown}")

    def _scan(self) -> tuple[str, str, int]:
        text, offset = self._text, self._end
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None or match.lastgroup == "open":
                line = text.count("\n", 0, offset) + 1
                problem = f"{text[offset]!r} makes no sense" if match is None else "a comment never ends"
                raise InvalidSchemaError(f"Invalid Protobuf schema: {problem} in line {line}")
            self._end = match.end()
            if match.lastgroup != "skip":
                assert match.lastgroup is not None
                return match.lastgroup, match.group(), offset
            offset = self._end
        return _END

    def _unescape(self, text: str) -> str:
        try:
            return unescape(text)
        except (ValueError, OverflowError):
            self.fail("a text holds an escape that stands for no character")


def unescape(text: str) -> str:
    """Replace the escapes in a quoted text. An escaped byte becomes the character with the same number."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    octal, hexadecimal, short, long, plain = match.groups()
    if octal:
        return chr(int(octal, 8) & 0xFF)
    code = hexadecimal or short or long
    if code:
        character = chr(int(code, 16))
        if "\ud800" <= character <= "\udfff":
            raise ValueError(code)
        return character
    return _PLAIN.get(plain, plain)
