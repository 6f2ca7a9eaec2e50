"""The cursor: a place among the tokens, with the steps and the complaints that all rules share.

Rules are functions that take the cursor (`type_parser`, `expression_parser`, `query_parser`, `statement_parser`).
Complaints have ksqlDB's words. Its parser is generated, so they follow from what its generator does: at a single
expected token it tells what is expected, elsewhere it tells where it stopped.
"""

from __future__ import annotations

from typing import Final, NoReturn

from moldau.pipeline.ksql.syntax.errors import KsqlParseError, excerpt
from moldau.pipeline.ksql.syntax.expressions import Location
from moldau.pipeline.ksql.syntax.tokens import (
    BACKQUOTED_IDENTIFIER,
    END,
    IDENTIFIER_KINDS,
    INTEGER_VALUE,
    QUOTED_IDENTIFIER,
    RESERVED_WORDS,
    TEXT,
    UNTERMINATED,
    VARIABLE,
    Tokens,
    unquote,
)

__all__ = ["MAX_DEPTH", "Cursor"]

MAX_DEPTH: Final = 200
"""How deep expressions and types may nest. All that walks them does so recursively, within Python's default limit."""

_LONGEST_EXPECTATION: Final = 3
_QUOTES: Final = (QUOTED_IDENTIFIER, BACKQUOTED_IDENTIFIER)


class Cursor:
    """A place among the tokens of a text."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.index = 0
        self.kind = tokens.kinds[0]
        self.statement_start = 0
        """The index of the statement's first token."""
        self._located, self._location = 0, tokens.location(0)
        self.depth = 0
        self.lambda_parameters: set[str] = set()
        self.qualifiers: list[tuple[str, Location]] = []
        """The sources and aliases that the statement's columns name, to be checked at its end."""

    # --- steps ---------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The current token as it was written."""
        return self.tokens.text(self.index)

    def location(self) -> Location:
        """The place of the current token."""
        if self._located != self.index:  # rules ask for the same place on every level that they descend
            self._located, self._location = self.index, self.tokens.location(self.index)
        return self._location

    def kind_after(self, distance: int) -> str:
        """The kind of a token further on."""
        return self.tokens.kinds[min(self.index + distance, len(self.tokens.kinds) - 1)]

    def advance(self) -> None:
        """Step to the next token; at the end, stay."""
        if self.kind != END:
            self.index += 1
            self.kind = self.tokens.kinds[self.index]

    def accept(self, *kinds: str) -> bool:
        """Step over tokens of these kinds, one after the other; if they are not there, stay and return False."""
        if self.kind != kinds[0]:
            return False
        last = self.index + len(kinds)
        if len(kinds) > 1 and tuple(self.tokens.kinds[self.index : last]) != kinds:
            return False
        self.index = last
        self.kind = self.tokens.kinds[last]
        return True

    def expect(self, *kinds: str) -> None:
        """Step over tokens of these kinds, each of which must be there."""
        for kind in kinds:
            if self.kind != kind:
                self.fail_expecting(kind)
            self.advance()

    def deepen(self) -> None:
        """Count one more level, which the caller takes back when it is read; too many are an error."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse_depth()

    def refuse_depth(self) -> NoReturn:
        """Refuse a statement that nests too deeply."""
        message = (
            "Error processing statement: Statement is too large to parse. This may be caused by having too many "
            f"nested expressions in the statement: at most {MAX_DEPTH} levels are possible. Split the expression "
            "over several statements, or use IN (...) for a long list of alternatives."
        )
        self.refuse(message, at_fault=self.location())

    def expect_end_of_list(self, closing: str) -> None:
        """Step over the bracket that closes a list, after an item that no comma follows."""
        if self.kind != closing:
            self.fail_expecting(",", closing)
        self.advance()

    def statement_text(self) -> str:
        """The current statement as it was written, from its first word to its `;` or the end."""
        last = self.index
        while self.tokens.kinds[last] not in (";", END):
            last += 1
        if self.tokens.kinds[last] == END:  # without the space and comments before it
            last = max(last - 1, self.statement_start)
        start, end = self.tokens.starts[self.statement_start], self.tokens.ends[last]
        return self.tokens.source[start:end]

    # --- names and texts -----------------------------------------------------------------------------------------

    def identifier(self) -> str:
        """Step over a name and return it folded: upper case unless it is quoted."""
        return self._name(fold=True)

    def exact_name(self) -> str:
        """Step over the name of something outside of SQL, in quotes of any kind or none: its case is kept."""
        return self.string() if self.kind == TEXT else self._name(fold=False)

    def source_name(self) -> str:
        """Step over the name of a stream or table; only some characters are possible, even in quotes."""
        location = self.location()
        name = self.identifier()
        if not (name.isascii() and name.replace("_", "").replace("-", "").isalnum()):
            message = (
                f"Illegal argument at Line: {location.line}, Col: {location.column}. "
                f"Source names may only contain alphanumeric values, '_' or '-'. Got: '{excerpt(name)}'"
            )
            self.refuse(message, at_fault=location)
        return name

    def _name(self, *, fold: bool) -> str:
        if self.kind in RESERVED_WORDS:
            self._fail_reserved_name()
        if self.kind not in IDENTIFIER_KINDS or self.kind == VARIABLE:
            self.fail_near()
        text, is_quoted = self.text(), self.kind in _QUOTES
        self.advance()
        if is_quoted:
            return unquote(text)
        return text.upper() if fold else text

    def string(self) -> str:
        """Step over a text in single quotes and return what is between them."""
        if self.kind != TEXT:
            self.fail_expecting(TEXT)
        text = self.text()
        self.advance()
        return unquote(text)

    # --- complaints ----------------------------------------------------------------------------------------------

    def fail_near(self) -> NoReturn:
        """Refuse the current token where many others could stand."""
        location, token = self.location(), excerpt(self.text())
        if self.kind == UNTERMINATED:
            token = token[:2] if token.startswith("/*") else token[0]
            self.fail_syntax(f"Syntax error at or near '{token}' at line {location.line}:{location.column}: not closed")
        self.fail_syntax(f"Syntax error at or near '{token}' at line {location.line}:{location.column}")

    def fail_expecting(self, *kinds: str) -> NoReturn:
        """Refuse the current token where only these can stand."""
        if self.kind == UNTERMINATED:
            self.fail_near()
        expected = [_display(kind) for kind in kinds]
        shown = expected[0] if len(expected) == 1 else "{" + ", ".join(expected) + "}"
        if kinds == (";",) and self.kind == END:
            self.fail_syntax(f"missing {shown} at '{END}'")
        if self.kind in RESERVED_WORDS and self.kind_after(1) in kinds:
            self._fail_reserved()
        if self.kind == END:
            self.fail_syntax("Syntax error at or near \";\"\n'}', ']', or ')' is missing")
        self.fail_syntax(f"Expecting {shown}" if len(expected) <= _LONGEST_EXPECTATION else "")

    def _fail_reserved(self) -> NoReturn:
        token = self.text()
        self.fail_syntax(
            f'"{token}" is a reserved keyword and it can\'t be used as an identifier.'
            f" You can use it as an identifier by escaping it as '{token}' "
        )

    def _fail_reserved_name(self) -> NoReturn:
        location, token = self.location(), excerpt(self.text())
        self.fail_syntax(
            f"Syntax error at or near '{token}' at line {location.line}:{location.column}\n"
            f'"{token}" is a reserved keyword: as a name, write it in back quotes, `{token.upper()}`'
        )

    def fail_syntax(self, reason: str) -> NoReturn:
        """Refuse the current token, with the reason in ksqlDB's words."""
        location = self.location()
        raise KsqlParseError(
            f"line {location.line}:{location.column}: Syntax Error\n{reason}",
            statement=self.tokens.source,
            location=location,
            token=self.text(),
        )

    def refuse(self, message: str, *, at_fault: Location | None = None) -> NoReturn:
        """Refuse a statement that has the right form; `message` is complete."""
        raise KsqlParseError(message, statement=self.statement_text(), location=at_fault)

    def refuse_prepared(self, reason: str, *, at_fault: Location | None = None) -> NoReturn:
        """Refuse a statement for something that ksqlDB finds when it prepares what it has read."""
        self.refuse(f"Failed to prepare statement: {reason}", at_fault=at_fault)


def _display(kind: str) -> str:
    """A kind as messages show it: names of classes of tokens bare, all others in quotes."""
    return "STRING" if kind == TEXT else kind if kind == INTEGER_VALUE else f"'{kind}'"
