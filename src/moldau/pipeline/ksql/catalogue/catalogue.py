"""The sources, named types and queries that a server knows. Nothing is decided here; `definitions` does that.

Start at `Catalogue`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from moldau.formats.types import ArrayType, Field, MapType, SqlType, StructType
from moldau.pipeline.ksql.catalogue.sources import Source
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import NamedType

__all__ = ["Catalogue", "QueryLinks"]


@dataclass(frozen=True, slots=True)
class QueryLinks:
    """What a persistent query reads and writes."""

    query_id: str
    sources: tuple[str, ...]
    sink: str


@dataclass(slots=True)
class Catalogue:
    """Sources by name, types by name, and the queries between them in the order of their creation."""

    sources: dict[str, Source] = field(default_factory=dict)
    types: dict[str, SqlType] = field(default_factory=dict)
    queries: dict[str, QueryLinks] = field(default_factory=dict)
    query_count: int = 0

    def copy(self) -> Catalogue:
        """An independent copy, to try a statement on."""
        return Catalogue(dict(self.sources), dict(self.types), dict(self.queries), self.query_count)

    def next_query_number(self) -> int:
        """The number of the next query."""
        self.query_count += 1
        return self.query_count - 1

    def readers_of(self, name: str) -> list[str]:
        """The queries that read a source."""
        return [query.query_id for query in self.queries.values() if name in query.sources]

    def writers_of(self, name: str) -> list[str]:
        """The queries that write a source."""
        return [query.query_id for query in self.queries.values() if query.sink == name]

    def resolved(self, sql_type: SqlType) -> SqlType:
        """A type with named types replaced by what they stand for."""
        match sql_type:
            case NamedType(name=name):
                if name not in self.types:
                    raise KsqlError(f"Cannot resolve unknown type: {name}")
                return self.types[name]
            case ArrayType(element=element):
                return ArrayType(self.resolved(element))
            case MapType(key=key, value=value):
                return MapType(self.resolved(key), self.resolved(value))
            case StructType(fields=fields):
                return StructType(tuple(Field(one.name, self.resolved(one.type)) for one in fields))
            case _:
                return sql_type

    def with_query_id(self, name: str, query_id: str) -> None:
        """Note which query created a source."""
        self.sources[name] = replace(self.sources[name], query_id=query_id)


def similar_names(name: str, known: Iterable[str]) -> str:
    """A hint where the name differs from a known one in case only, else an empty text."""
    for other in known:
        if other != name and other.upper() == name.upper():
            if other == other.upper():
                return f"\nDid you mean {other}? Hint: try removing double quotes from the source name."
            return f'\nDid you mean "{other}"? Hint: wrap the source name in double quotes to make it case-sensitive.'
    return ""
