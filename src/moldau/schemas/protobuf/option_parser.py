"""Parses options of a .proto text: names in parentheses, values in Protobuf's text format. Start at `OptionParser`."""

from __future__ import annotations

from typing import Final

from moldau.schemas.protobuf.elements import Aggregate, Constant, Option, OptionValue, Sequence
from moldau.schemas.protobuf.tokens import Tokens

__all__ = ["OptionParser"]

_MAX_NESTING: Final = 32
"""The maximum nesting of values."""


class OptionParser:
    """Reads options at the current token."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._depth = 0

    def bracketed_options(self) -> list[Option]:
        tokens = self._tokens
        if not tokens.accept("["):
            return []
        options = [self._option()]
        while tokens.accept(","):
            options.append(self._option())
        tokens.expect("]")
        return options

    def statement(self) -> Option:
        option = self._option()
        self._tokens.expect(";")
        return option

    def _option(self) -> Option:
        name = self._option_name()
        self._tokens.expect("=")
        return Option(name, self._option_value())

    def _option_name(self) -> str:
        parts = [self._option_name_part()]
        while self._tokens.accept("."):
            parts.append(self._option_name_part())
        return ".".join(parts)

    def _option_name_part(self) -> str:
        tokens = self._tokens
        if not tokens.accept("("):
            return tokens.name("the name of an option")
        name = self._tokens.type_name()
        tokens.expect(")")
        return f"({name})"

    def _option_value(self) -> OptionValue:
        tokens = self._tokens
        if tokens.text == "{" and tokens.kind == "symbol":
            return self._aggregate("}")
        if tokens.text == "[" and tokens.kind == "symbol":
            return self._sequence()
        return self._constant()

    def _constant(self) -> Constant:
        tokens = self._tokens
        if tokens.kind == "string":
            return Constant("string", tokens.string())
        sign = "-" if tokens.accept("-") else ""
        if not sign:
            tokens.accept("+")
        if tokens.kind in ("int", "float"):
            return Constant("number", sign + tokens.advance())
        return Constant("name", sign + self._tokens.dotted_name())

    def _aggregate(self, end: str) -> Aggregate:
        """Parse Protobuf's text format: `name: value`, `name { … }`, with or without commas between."""
        tokens = self._tokens
        self._descend()
        tokens.advance()
        entries: list[tuple[str, OptionValue]] = []
        while not tokens.accept(end):
            name = self._aggregate_name()
            has_colon = tokens.accept(":")
            if tokens.text == "<" and tokens.kind == "symbol":
                entries.append((name, self._aggregate(">")))
            elif has_colon or tokens.text in ("{", "["):
                entries.append((name, self._option_value()))
            else:
                tokens.fail("expected ':'")
            if not tokens.accept(","):
                tokens.accept(";")
        self._depth -= 1
        return Aggregate(tuple(entries))

    def _aggregate_name(self) -> str:
        tokens = self._tokens
        if not tokens.accept("["):
            return tokens.name("the name of a field")
        name = self._tokens.dotted_name()
        if tokens.accept("/"):
            name = f"{name}/{self._tokens.dotted_name()}"
        tokens.expect("]")
        return f"[{name}]"

    def _sequence(self) -> Sequence:
        tokens = self._tokens
        self._descend()
        tokens.expect("[")
        items: list[OptionValue] = []
        while not tokens.accept("]"):
            items.append(self._option_value())
            if tokens.text != "]":
                tokens.expect(",")
        self._depth -= 1
        return Sequence(tuple(items))

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            self._tokens.fail(f"an option's value is nested more than {_MAX_NESTING} levels deep")
