"""Schema texts become parsed schemas, with what they refer to found in the registry's state.

Parsing is the expensive part of every request that carries a schema, so results are kept: the same text with the same
references is parsed once. Several threads may ask at once. Start at `Parser.parse`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import overload

from moldau.registry.entities import SchemaReference, SchemaVersion
from moldau.registry.errors import InvalidSchemaTextError
from moldau.registry.state import State
from moldau.registry.subjects import context_of, in_context
from moldau.schemas.errors import SchemaError, UnknownSchemaTypeError
from moldau.schemas.schema import ParsedSchema, parse

__all__ = ["ParsedVersions", "Parser"]

_Key = tuple[str, str, tuple[tuple[str, str], ...], bool]
MAX_CHARACTERS = 16 * 1024 * 1024
"""Of the texts whose parsed forms are kept; these take some ten times as much."""
MAX_CLOSURE = 1000
"""Schemas that one may be built on, directly or not."""


class Parser:
    def __init__(self, capacity: int = 2000) -> None:
        self._capacity = capacity
        self._characters = 0
        self._kept: OrderedDict[_Key, ParsedSchema] = OrderedDict()
        self._lock = threading.Lock()

    def parse(
        self,
        state: State,
        subject: str,
        schema_type: str,
        text: str,
        references: Sequence[SchemaReference] = (),
        *,
        is_new: bool = True,
    ) -> ParsedSchema:
        """Understand a schema as one of `subject`; raises `InvalidSchemaTextError`.

        A new schema must build on live versions and have sound defaults; one read back is taken as it is.
        """
        try:
            found = _closure(state, subject, references, is_new=is_new) if references else {}
        except InvalidSchemaTextError as error:
            raise InvalidSchemaTextError.of(subject, schema_type, text, references, str(error)) from None
        key = (schema_type, text, tuple(found.items()), is_new)
        with self._lock:
            parsed = self._kept.get(key)
            if parsed is not None:
                self._kept.move_to_end(key)
                return parsed
        try:
            parsed = parse(schema_type, text, found, validate=is_new)
        except UnknownSchemaTypeError as error:
            raise InvalidSchemaTextError(str(error)) from None
        except SchemaError as error:
            raise InvalidSchemaTextError.of(subject, schema_type, text, references, str(error)) from error
        with self._lock:
            self._keep(key, parsed)
        return parsed

    def _keep(self, key: _Key, parsed: ParsedSchema) -> None:
        if key not in self._kept:
            self._characters += len(key[1])
        self._kept[key] = parsed
        while len(self._kept) > self._capacity or (self._characters > MAX_CHARACTERS and len(self._kept) > 1):
            (_, text, _, _), _ = self._kept.popitem(last=False)
            self._characters -= len(text)

    def knows(self, schema_type: str, text: str, references: Sequence[SchemaReference]) -> bool:
        """Whether a schema without references was parsed before, as a new one."""
        return not references and (schema_type, text, (), True) in self._kept

    def parse_version(self, state: State, schema: SchemaVersion) -> ParsedSchema:
        return self.parse(state, schema.subject, schema.schema_type, schema.schema, schema.references, is_new=False)


class ParsedVersions(Sequence[ParsedSchema]):
    """Versions that are parsed when somebody looks at them: most checks end at the first."""

    def __init__(self, parser: Parser, state: State, versions: Sequence[SchemaVersion]) -> None:
        self._parser, self._state, self._versions = parser, state, versions

    def __len__(self) -> int:
        return len(self._versions)

    @overload
    def __getitem__(self, index: int) -> ParsedSchema: ...
    @overload
    def __getitem__(self, index: slice) -> ParsedVersions: ...
    def __getitem__(self, index: int | slice) -> ParsedSchema | ParsedVersions:
        if isinstance(index, slice):
            return ParsedVersions(self._parser, self._state, self._versions[index])
        return self._parser.parse_version(self._state, self._versions[index])


def _closure(state: State, subject: str, references: Sequence[SchemaReference], *, is_new: bool) -> dict[str, str]:
    """Texts of all that is referred to, by name, each after those it builds on."""
    found: dict[str, str] = {}
    pending: list[tuple[str, SchemaReference, bool]] = [(subject, reference, False) for reference in references[::-1]]
    seen: set[tuple[str, str]] = set()
    while pending:
        parent, reference, are_parts_found = pending.pop()
        schema = _referred(state, parent, reference, is_new=is_new)
        if are_parts_found:
            found.setdefault(reference.name, schema.schema)
            continue
        key = (reference.name, f"{schema.subject}/{schema.version}")
        if key in seen:
            continue
        seen.add(key)
        if len(seen) > MAX_CLOSURE:
            raise InvalidSchemaTextError(f"the schema is built on more than {MAX_CLOSURE} others")
        pending.append((parent, reference, True))
        pending += [(schema.subject, part, False) for part in schema.references[::-1]]
    return found


def _referred(state: State, parent: str, reference: SchemaReference, *, is_new: bool) -> SchemaVersion:
    subject = in_context(context_of(parent), reference.subject)
    for spelling in state.spellings(subject):
        schema = state.latest(spelling) if reference.version == -1 else state.version(spelling, reference.version)
        if schema is not None and not (is_new and schema.is_deleted):
            return schema
    raise InvalidSchemaTextError(
        f'No schema reference found for subject "{subject}" and version {reference.version}; '
        f"register it before what refers to it as '{reference.name}'"
    )
