"""The types visible in a .proto file, and the resolution of names in it.

A name is looked up as in C++: from the innermost scope outward, by its first part. Start at `Symbols.resolve`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moldau.schemas.protobuf.elements import Enum, File, Message

__all__ = ["Symbol", "Symbols", "extensions_of", "symbols_of"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A message or enum under its full name, and the package it belongs to."""

    full_name: str
    package: str
    element: Message | Enum

    @property
    def local_name(self) -> str:
        """The name without the package, so it stays the same when only the package changes."""
        return self.full_name.removeprefix(f"{self.package}.") if self.package else self.full_name


class Symbols:
    """All types visible in one file."""

    def __init__(self, symbols: Iterable[Symbol], extensions: Iterable[str] = ()) -> None:
        self._by_name = {symbol.full_name: symbol for symbol in symbols}
        self._extensions = frozenset(extensions)
        self._scopes: set[str] = set()
        for name in self._by_name:
            while name and name not in self._scopes:
                self._scopes.add(name)
                name = name.rpartition(".")[0]

    def resolve(self, name: str, scope: str) -> Symbol | None:
        """The type that `name` refers to inside `scope` (a package or message), or `None`."""
        if name.startswith("."):
            return self._by_name.get(name[1:])
        first, _, rest = name.partition(".")
        while True:
            candidate = f"{scope}.{first}" if scope else first
            if candidate in self._scopes:
                found = self._by_name.get(f"{candidate}.{rest}" if rest else candidate)
                if found is not None:
                    return found
            if not scope:
                return None
            scope = scope.rpartition(".")[0]

    def resolve_extension(self, name: str, scope: str) -> str | None:
        """The full name of the extension that `name` refers to inside `scope`, or `None`."""
        if name.startswith("."):
            return name[1:] if name[1:] in self._extensions else None
        while True:
            candidate = _full_name(scope, name)
            if candidate in self._extensions:
                return candidate
            if not scope:
                return None
            scope = scope.rpartition(".")[0]


def symbols_of(file: File) -> list[Symbol]:
    """The types that a file itself defines, including nested ones."""
    found: list[Symbol] = []
    waiting = _symbols_of(file.package, file.messages, file.enums)
    while waiting:
        scope, element = waiting.pop()
        full_name = _full_name(scope, element.name)
        found.append(Symbol(full_name, file.package, element))
        if isinstance(element, Message):
            waiting += _symbols_of(full_name, element.messages, element.enums)
    return found


def extensions_of(file: File) -> list[str]:
    """The full names of the extensions a file defines, at the top level and inside messages."""
    found = [_full_name(file.package, field.name) for extend in file.extends for field in extend.fields]
    for symbol in symbols_of(file):
        if isinstance(symbol.element, Message):
            inner = (field.name for extend in symbol.element.extends for field in extend.fields)
            found += [_full_name(symbol.full_name, name) for name in inner]
    return found


def _symbols_of(scope: str, messages: list[Message], enums: list[Enum]) -> list[tuple[str, Message | Enum]]:
    types: list[Message | Enum] = [*messages, *enums]
    return [(scope, item) for item in types]


def _full_name(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name
