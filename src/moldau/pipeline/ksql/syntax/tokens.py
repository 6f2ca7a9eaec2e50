"""Tokens: a text cut into words, literals and symbols, with their places. Start at `tokenize`.

A token's kind is its keyword or symbol in upper case, or one of the constants below. Tokens are kept as columns of
numbers instead of objects: a statement of several megabytes has millions of them.

Beyond ksqlDB, two things that text copied from slides holds are accepted: the typographic arrow for `->`, and a
backslash at the end of a line.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from typing import Final

from moldau.pipeline.ksql.syntax.expressions import Location

__all__ = ["IDENTIFIER_KINDS", "KEYWORDS", "NON_RESERVED_WORDS", "RESERVED_WORDS", "Tokens", "tokenize", "unquote"]

IDENTIFIER: Final = "IDENTIFIER"
DIGIT_IDENTIFIER: Final = "DIGIT_IDENTIFIER"
QUOTED_IDENTIFIER: Final = "QUOTED_IDENTIFIER"
BACKQUOTED_IDENTIFIER: Final = "BACKQUOTED_IDENTIFIER"
VARIABLE: Final = "VARIABLE"
TEXT: Final = "TEXT"
INTEGER_VALUE: Final = "INTEGER_VALUE"
DECIMAL_VALUE: Final = "DECIMAL_VALUE"
FLOATING_POINT_VALUE: Final = "FLOATING_POINT_VALUE"
UNTERMINATED: Final = "UNTERMINATED"
"""A quote or comment that is never closed: the token is the rest of the text."""
UNRECOGNIZED: Final = "UNRECOGNIZED"
END: Final = "<EOF>"

_NON_RESERVED_LIST: Final = """
    ADD ALTER ANALYZE ARRAY ASSERT CHANGES COLUMN COLUMNS DATE DAY DEFINE EMIT ESCAPE EXPLAIN FINAL FUNCTION FUNCTIONS
    GRACE HEADER HEADERS HOUR ID IF INTEGER INTERVAL KEY MAP MINUTE MONTH PARTITION PARTITIONS PERIOD PLUGINS PRIMARY
    REPLACE RESET SCHEMA SECOND SESSION SET SHOW SINK SOURCE STRING STRUCT SUBJECT SYSTEM TABLES TIME TIMEOUT TIMESTAMP
    TYPE TYPES UNDEFINE VARIABLES YEAR ZONE
"""
_RESERVED_LIST: Final = """
    ADVANCE ALL AND AS AT BEGINNING BETWEEN BY CASE CAST CATALOG CONNECTOR CONNECTORS CREATE DAYS DECIMAL DELETE
    DESCRIBE DISTINCT DROP ELSE END EXISTS EXPORT EXTENDED FALSE FROM FULL GROUP HAVING HOPPING HOURS IN INNER INSERT
    INTO IS JOIN LEFT LIKE LIMIT LIST LOAD MATERIALIZED MILLISECOND MILLISECONDS MINUTES MONTHS NAMESPACE NOT NULL ON OR
    OUTER PAUSE PRINT PROPERTIES QUERIES QUERY RENAME RESUME RETENTION RIGHT RUN SAMPLE SCRIPT SECONDS SELECT SIZE
    STREAM STREAMS TABLE TERMINATE THEN TO TOPIC TOPICS TRUE TUMBLING UNSET VALUES VIEW WHEN WHERE WINDOW WITH WITHIN
    YEARS
"""

NON_RESERVED_WORDS: Final = frozenset(_NON_RESERVED_LIST.split())
"""The words of the language that are also names without quotes."""
RESERVED_WORDS: Final = frozenset(_RESERVED_LIST.split())
"""The words that are names only in quotes."""

KEYWORDS: Final = NON_RESERVED_WORDS | RESERVED_WORDS

IDENTIFIER_KINDS: Final = NON_RESERVED_WORDS | {
    IDENTIFIER,
    DIGIT_IDENTIFIER,
    QUOTED_IDENTIFIER,
    BACKQUOTED_IDENTIFIER,
    VARIABLE,
}
"""The kinds of tokens that can stand for a name."""

# Quantifiers are possessive where a failed match would otherwise try every shorter one.
_PATTERN: Final = re.compile(
    r"""
    (?P<SPACE>[\s\ufeff]++|--[^\r\n]*+|\\(?=[^\S\n]*+(?:\n|\Z)))
    |(?P<COMMENT>/\*(?s:.*?)\*/)
    |(?P<WORD>[A-Za-z_][A-Za-z0-9_@]*+)
    |(?P<FLOATING_POINT_VALUE>[0-9]++(?:\.[0-9]*+[eE][+-]?|[eE][+-])[0-9]++|\.[0-9]++[eE][+-]?[0-9]++
        |[0-9]++[eE][0-9]++(?![A-Za-z0-9_@]))
    |(?P<DECIMAL_VALUE>[0-9]++\.[0-9]*+|\.[0-9]++)
    |(?P<INTEGER_VALUE>[0-9]++(?![A-Za-z_@]))
    |(?P<DIGIT_IDENTIFIER>[0-9][A-Za-z0-9_@]++)
    |(?P<TEXT>'(?:[^']++|'')*+')
    |(?P<BACKQUOTED_IDENTIFIER>`(?:[^`]++|``)*+`)
    |(?P<QUOTED_IDENTIFIER>"(?:[^"]++|"")*+")
    |(?P<VARIABLE>\$\{[A-Za-z_][A-Za-z0-9_@]*+\})
    |(?P<UNTERMINATED>(?:/\*|['"`])(?s:.*+))
    |(?P<SYMBOL><>|!=|<=|>=|\|\||:=|->|=>|[→⇒=<>+\-*/%();,.\[\]])
    |(?P<UNRECOGNIZED>(?s:.))
    """,
    re.VERBOSE,
)

_SPELLINGS: Final = {"!=": "<>", "→": "->", "⇒": "=>"}
_SKIPPED: Final = frozenset({"SPACE", "COMMENT"})


class Tokens:
    """The tokens of a text, in order; the last one is `END`."""

    def __init__(self, text: str, kinds: list[str], starts: array[int], ends: array[int]) -> None:
        self.source = text
        self.kinds = kinds
        self.starts = starts
        self.ends = ends
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def text(self, index: int) -> str:
        """The token as it was written; `<EOF>` at the end."""
        return self.source[self.starts[index] : self.ends[index]] or END

    def location(self, index: int) -> Location:
        """Where the token starts."""
        return self.location_of(self.starts[index])

    def location_of(self, offset: int) -> Location:
        """The line and column of a place in the text."""
        line = bisect_right(self._line_starts, offset)
        return Location(line, offset - self._line_starts[line - 1] + 1)


def tokenize(text: str) -> Tokens:
    """Cut a text into tokens; never fails: what is not of the language becomes a token that no rule accepts."""
    kinds: list[str] = []
    starts, ends = array("q"), array("q")
    for match in _PATTERN.finditer(text):
        kind = match.lastgroup or UNRECOGNIZED
        if kind in _SKIPPED:
            continue
        if kind == "WORD":
            word = match.group().upper()
            kind = word if word in KEYWORDS else IDENTIFIER
        elif kind == "SYMBOL":
            symbol = match.group()
            kind = _SPELLINGS.get(symbol, symbol)
        kinds.append(kind)
        starts.append(match.start())
        ends.append(match.end())
    kinds.append(END)
    starts.append(len(text))
    ends.append(len(text))
    return Tokens(text, kinds, starts, ends)


def unquote(quoted: str) -> str:
    """The text between quotes of any kind, doubled ones inside made single."""
    quote = quoted[0]
    return quoted[1:-1].replace(quote * 2, quote)
