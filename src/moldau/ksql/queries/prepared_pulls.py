"""Pull queries by key, prepared: one that differs from an earlier one only in the keys it asks for needs no planning.

The shape of a query is its words, with the literals of WHERE left out. Where WHERE only compares the key's columns with
literals, the rows of those keys are the answer, so the plan is made without WHERE, once, and serves every query of the
shape as long as the sources stay what they are. Start at `PreparedPulls.find`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.formats.types import BIGINT, INTEGER, STRING, SqlType, Value
from moldau.ksql.api.requests import QueryRequest
from moldau.ksql.api.results import ResultRow
from moldau.ksql.queries.table_copies import StoredRow
from moldau.ksql.queries.transient_plan import TransientPlan
from moldau.ksql.statements.state import ServerState
from moldau.pipeline.ksql.catalogue.sources import Source
from moldau.pipeline.ksql.syntax.expressions import (
    ColumnReference,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IntegerLiteral,
    Logical,
    LogicalOperator,
    LongLiteral,
    StringLiteral,
)
from moldau.pipeline.ksql.syntax.statements import Query
from moldau.pipeline.ksql.syntax.tokens import INTEGER_VALUE, TEXT, tokenize, unquote

__all__ = ["KeyPlaces", "PreparedPull", "PreparedPulls", "Shape", "key_places", "shape_of"]

MAX_SHAPES = 500
MAX_CHARACTERS = 5_000
"""Longer queries are rare and read many keys: planning them is not what they cost."""
_BITS: dict[SqlType, int] = {INTEGER: 31, BIGINT: 63}
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A query without the literals of its WHERE, and those literals as they are written."""

    words: Words
    literals: Words


@dataclass(frozen=True, slots=True)
class KeyPlaces:
    """Where the keys are among the literals: one key of all columns, or several keys of one column (IN)."""

    types: tuple[SqlType, ...]
    """Of the literals."""
    order: tuple[int, ...]
    """For each column of the key, its literal; with IN, nothing."""

    def keys(self, literals: Sequence[str]) -> list[tuple[Value, ...]] | None:
        """The keys that these literals say; None for a number that is too large for its column."""
        values: list[Value] = []
        for text, sql_type in zip(literals, self.types, strict=True):
            if sql_type == STRING:
                values.append(unquote(text))
                continue
            number = int(text)
            if number.bit_length() > _BITS[sql_type]:
                return None
            values.append(number)
        return [tuple(values[place] for place in self.order)] if self.order else [(value,) for value in values]


@dataclass(slots=True)
class PreparedPull:
    """A shape of queries, ready to be answered."""

    plan: TransientPlan
    places: KeyPlaces
    limit: int | None
    serialize_key: Callable[[tuple[Value, ...]], bytes | None]
    compute: Callable[[Iterable[StoredRow]], list[ResultRow]]
    """The rows for the client; not for two threads at the same time."""
    may_wait: bool
    """Whether it may ask a schema registry or call functions of users, which the event loop must not wait for."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def source(self) -> Source:
        return self.plan.sources[0]

    def rows(self, keys: Iterable[bytes], rows_of_key: Callable[[str, bytes], list[StoredRow]]) -> list[ResultRow]:
        """The rows of these keys."""
        stored = [row for key in keys for row in rows_of_key(self.source.topic, key)]
        with self._lock:
            rows = self.compute(stored)
        return rows if self.limit is None else rows[: self.limit]

    def key_bytes(self, literals: Sequence[str]) -> list[bytes] | None:
        """The serialized keys, each once; None if the literals are none that the shape has."""
        keys = self.places.keys(literals)
        if keys is None:
            return None
        found = [self.serialize_key(key) for key in keys]
        return list(dict.fromkeys(key for key in found if key is not None))


class PreparedPulls:
    """The latest shapes. Whatever the sources' definitions or settings were when they were prepared still holds."""

    def __init__(self) -> None:
        self._known: dict[tuple[Words, tuple[tuple[str, Any], ...]], PreparedPull] = {}
        self._valid_for: tuple[object, object] = (None, None)

    def find(self, request: QueryRequest, state: ServerState) -> tuple[PreparedPull, list[bytes]] | None:
        """The prepared query, and the keys that the request asks for; None if it has to be planned."""
        if not self._known:
            return None
        self._forget_outdated(state)
        shape = shape_of(request.text)
        if shape is None:
            return None
        name = (shape.words, _hashable(request.properties))
        prepared = self._known.get(name)
        if prepared is None:
            return None
        keys = prepared.key_bytes(shape.literals)
        if keys is None:
            return None
        self._known[name] = self._known.pop(name)  # the one that is left out is the one not used for longest
        return prepared, keys

    def keep(self, request: QueryRequest, state: ServerState, prepared: PreparedPull) -> None:
        """Answer later requests of this shape with it."""
        shape = shape_of(request.text)
        assert shape is not None
        self._forget_outdated(state)
        self._known[shape.words, _hashable(request.properties)] = prepared
        if len(self._known) > MAX_SHAPES:
            del self._known[next(iter(self._known))]

    def _forget_outdated(self, state: ServerState) -> None:
        # A command replaces the catalogue, and ALTER SYSTEM the settings: neither is changed in place.
        current = (state.catalogue, state.settings)
        if self._valid_for[0] is not current[0] or self._valid_for[1] is not current[1]:
            self._known.clear()
            self._valid_for = current


def _hashable(properties: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, str(value)) for name, value in properties.items())) if properties else ()


def shape_of(text: str) -> Shape | None:
    """The shape of a text; None for one that no prepared query can have."""
    if len(text) > MAX_CHARACTERS or "$" in text:
        return None
    tokens = tokenize(text)
    words, literals = [], []
    is_in_where = False
    for index, kind in enumerate(tokens.kinds):
        if kind == "WHERE":
            is_in_where = True
        elif kind == "LIMIT":
            is_in_where = False
        if is_in_where and kind in (TEXT, INTEGER_VALUE):
            if tokens.kinds[index - 1] == "-":
                return None
            literals.append(tokens.text(index))
            words.append(f"<{kind}>")
        else:
            words.append(tokens.text(index))
    return Shape(tuple(words), tuple(literals)) if literals else None


def key_places(query: Query, source: Source) -> KeyPlaces | None:
    """Where the keys of a query are among the literals of its WHERE; None if that has anything else in it."""
    types = {column.name: column.type for column in source.schema.key}
    match query.where:
        case In(value=ColumnReference(name=name), options=options) if types.keys() == {name}:
            literals = [(name, option) for option in options]
            order: tuple[int, ...] = ()
        case None:
            return None
        case where:
            found = list(_equalities(where))
            if None in found or sorted(one[0] for one in found if one) != sorted(types):
                return None
            literals = [one for one in found if one is not None]
            order = tuple([name for name, _ in literals].index(name) for name in types)
    if not all(_fits(types[name], literal) for name, literal in literals):
        return None
    return KeyPlaces(tuple(types[name] for name, _ in literals), order)


def _equalities(where: Expression) -> Iterable[tuple[str, Expression] | None]:
    """The columns and what they are compared with, from left to right; None for any other condition."""
    match where:
        case Logical(operator=LogicalOperator.AND, left=left, right=right):
            yield from _equalities(left)
            yield from _equalities(right)
        case Comparison(operator=ComparisonOperator.EQUAL, left=ColumnReference(name=name), right=value):
            yield name, value
        case Comparison(operator=ComparisonOperator.EQUAL, left=value, right=ColumnReference(name=name)):
            yield name, value
        case _:
            yield None


def _fits(sql_type: SqlType, literal: Expression) -> bool:
    match literal:
        case StringLiteral():
            return sql_type == STRING
        case IntegerLiteral(value=value) | LongLiteral(value=value):
            return sql_type in _BITS and value >= 0
        case _:
            return False
