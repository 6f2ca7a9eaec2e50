"""What a statement learned from the world when it was accepted, so that replaying it needs no world.

A statement is carried out three times: on a copy of the catalogue to see whether it is right (`Rehearsal`, which notes
what it asked and what it would do), for real by every server that reads the command topic, and by the engine that runs
its query (both with `RecordedFacts`). Topics and schemas may be different by then; the answers must not be. Start at
`Rehearsal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.formats.columns import Column
from moldau.formats.format import RowFormat
from moldau.pipeline.ksql.catalogue.services import Schemas, Topics
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.parser import parse_column_list
from moldau.pipeline.ksql.syntax.statements import SourceKind

__all__ = ["Facts", "RecordedFacts", "Rehearsal"]

Effect = Callable[[], None]
"""Something that an accepted statement does to topics or schemas."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Answers of topics and registry, as they stand in a command."""

    partitions: Mapping[str, int | None] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    """The inferred columns as SQL, by topic and part."""

    def document(self) -> dict[str, Any]:
        return {"partitions": dict(self.partitions), "columns": dict(self.columns)}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Facts:
        return cls(document.get("partitions", {}), document.get("columns", {}))


def _place(topic: str, row_format: RowFormat) -> str:
    return f"{topic}-{row_format.part}"


class Rehearsal:
    """Topics and schemas for one request: questions go to the real ones, changes are kept here until they count.

    Later statements of the request see the changes of earlier ones. `take_facts` and `take_effects` give what the last
    statement learned, and what it would do.
    """

    def __init__(self, topics: Topics, schemas: Schemas) -> None:
        self._topics, self._schemas = topics, schemas
        self._created: dict[str, int | None] = {}
        self._registered: dict[str, tuple[Column, ...]] = {}
        self._partitions: dict[str, int | None] = {}
        self._columns: dict[str, str] = {}
        self._effects: list[Effect] = []

    def take_facts(self) -> Facts:
        """What was asked since the last call."""
        facts = Facts(self._partitions, self._columns)
        self._partitions, self._columns = {}, {}
        return facts

    def take_effects(self) -> list[Effect]:
        """What was asked to be done since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    # Topics

    def partitions(self, topic: str) -> int | None:
        found = self._created[topic] if topic in self._created else self._topics.partitions(topic)
        self._partitions.setdefault(topic, found)
        return found

    def create(self, topic: str, partitions: int, replicas: int, settings: Mapping[str, str]) -> None:
        self._created[topic] = partitions
        self._effects.append(lambda: self._topics.create(topic, partitions, replicas, settings))

    def delete(self, topic: str) -> None:
        self._created[topic] = None
        self._effects.append(lambda: self._topics.delete(topic))

    # Schemas

    def inferred(self, topic: str, row_format: RowFormat) -> tuple[Column, ...]:
        place = _place(topic, row_format)
        found = self._registered.get(place)
        if found is None:
            found = self._schemas.inferred(topic, row_format)
        self._columns[place] = ", ".join(map(str, found))
        return found

    def check(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        self._schemas.check(topic, row_format, columns)

    def register_if_absent(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        self._registered.setdefault(_place(topic, row_format), columns)
        self._effects.append(lambda: self._schemas.register_if_absent(topic, row_format, columns))

    def register(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        self._registered[_place(topic, row_format)] = columns
        self._effects.append(lambda: self._schemas.register(topic, row_format, columns))


class RecordedFacts:
    """Topics and schemas that answer as they did when the statement was accepted, and change nothing."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def partitions(self, topic: str) -> int | None:
        return self._facts.partitions.get(topic)

    def inferred(self, topic: str, row_format: RowFormat) -> tuple[Column, ...]:
        text = self._facts.columns.get(_place(topic, row_format))
        if text is None:
            raise KsqlError(f"the command does not say which columns the {row_format.part}s of topic {topic} have")
        return tuple(Column(one.name, one.type) for one in parse_column_list(text, SourceKind.STREAM))

    def check(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        """Was done when the statement was accepted."""

    def create(self, topic: str, partitions: int, replicas: int, settings: Mapping[str, str]) -> None:
        """Was done when the statement was accepted."""

    def delete(self, topic: str) -> None:
        """Was done when the statement was accepted."""

    def register_if_absent(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        """Was done when the statement was accepted."""

    def register(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        """Was done when the statement was accepted."""
