"""Parsing and comparing schemas, with their references resolved from the registry's state.

Start at `Parser.parse`; `parsing.sources` caches the parsed schemas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from moldau.registry.entities import SchemaReference, SchemaVersion
from moldau.registry.errors import InvalidSchemaTextError
from moldau.registry.parsing.check_client import CheckClient
from moldau.registry.parsing.sources import ParsedSources, Source
from moldau.registry.state import State
from moldau.registry.subjects import context_of, in_context
from moldau.schemas.compatibility import CompatibilityLevel, CompatibilityPolicy, Incompatibility, check
from moldau.schemas.errors import SchemaError, UnknownSchemaTypeError
from moldau.schemas.schema import ParsedSchema

__all__ = ["ParsedVersions", "Parser"]

MAX_CLOSURE = 1000
"""Maximum number of direct and indirect references of a schema."""
MAX_COMPARED_HERE = 4
"""Up to this many versions are compared in this process, more in a separate one."""


class Parser:
    def __init__(self, capacity: int = 2000, check_client: CheckClient | None = None) -> None:
        """`check_client` compares with many versions in a separate process; `None` compares in this process."""
        self._sources = ParsedSources(capacity)
        self._check_client = check_client

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
        """Parse a schema of `subject`; raises `InvalidSchemaTextError`.

        A new schema must refer to live versions and have valid defaults; a stored one is not validated.
        """
        try:
            return self._sources.parse(_source(state, subject, schema_type, text, references, is_new=is_new))
        except UnknownSchemaTypeError as error:
            raise InvalidSchemaTextError(str(error)) from None
        except (SchemaError, InvalidSchemaTextError) as error:
            raise InvalidSchemaTextError.of(subject, schema_type, text, references, str(error)) from None

    def knows(self, schema_type: str, text: str, references: Sequence[SchemaReference]) -> bool:
        """Whether a schema is in the cache as a new one; always false with references."""
        return not references and Source(schema_type, text) in self._sources

    def parse_version(self, state: State, schema: SchemaVersion) -> ParsedSchema:
        return self.parse(state, schema.subject, schema.schema_type, schema.schema, schema.references, is_new=False)

    def check(
        self,
        state: State,
        new: ParsedSchema,
        new_version: SchemaVersion,
        previous: Sequence[SchemaVersion],
        *,
        level: CompatibilityLevel,
        policy: CompatibilityPolicy,
    ) -> list[Incompatibility]:
        """Why `new`, to be stored as `new_version`, is incompatible with `previous`; raises `SchemaError`."""
        if self._check_client is not None and level.is_transitive and len(previous) > MAX_COMPARED_HERE:
            try:
                return self._check_client.check(
                    level, policy, _source_of(state, new_version), (_source_of(state, old) for old in previous)
                )
            except OSError:
                pass  # the process cannot be started: compare here, which slows down reads
        return check(level, new, ParsedVersions(self, state, previous), policy=policy)


class ParsedVersions(Sequence[ParsedSchema]):
    """Versions that are parsed on access, since most checks end at the first one."""

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


def _source(
    state: State, subject: str, schema_type: str, text: str, references: Sequence[SchemaReference], *, is_new: bool
) -> Source:
    found = _closure(state, subject, references, is_new=is_new) if references else {}
    return Source(schema_type, text, tuple(found.items()), is_new)


def _source_of(state: State, schema: SchemaVersion) -> Source:
    return _source(state, schema.subject, schema.schema_type, schema.schema, schema.references, is_new=False)


def _closure(state: State, subject: str, references: Sequence[SchemaReference], *, is_new: bool) -> dict[str, str]:
    """Texts of all direct and indirect references by name, each after its own references."""
    found: dict[str, str] = {}
    pending: list[tuple[str, SchemaReference, bool]] = [(subject, reference, False) for reference in references[::-1]]
    seen: set[tuple[str, str]] = set()
    while pending:
        parent, reference, are_parts_found = pending.pop()
        schema = _referenced_version(state, parent, reference, is_new=is_new)
        if are_parts_found:
            found.setdefault(reference.name, schema.schema)
            continue
        key = (reference.name, f"{schema.subject}/{schema.version}")
        if key in seen:
            continue
        seen.add(key)
        if len(seen) > MAX_CLOSURE:
            raise InvalidSchemaTextError(f"the schema depends on more than {MAX_CLOSURE} others")
        pending.append((parent, reference, True))
        pending += [(schema.subject, part, False) for part in schema.references[::-1]]
    return found


def _referenced_version(state: State, parent: str, reference: SchemaReference, *, is_new: bool) -> SchemaVersion:
    subject = in_context(context_of(parent), reference.subject)
    for spelling in state.spellings(subject):
        schema = state.latest(spelling) if reference.version == -1 else state.version(spelling, reference.version)
        if schema is not None and not (is_new and schema.is_deleted):
            return schema
    raise InvalidSchemaTextError(
        f'No schema reference found for subject "{subject}" and version {reference.version}; '
        f"register it before what refers to it as '{reference.name}'"
    )
