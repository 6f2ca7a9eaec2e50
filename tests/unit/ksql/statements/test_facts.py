"""A statement is rehearsed without changing anything, and replayed with the answers it got then."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from moldau.formats.columns import Column
from moldau.formats.format import RowFormat, row_format
from moldau.formats.types import BIGINT, STRING, ArrayType, DecimalType, Field, StructType
from moldau.ksql.statements.facts import Facts, RecordedFacts, Rehearsal
from moldau.pipeline.ksql.errors import KsqlError

AVRO = row_format("AVRO")
COLUMNS = (Column("A", BIGINT), Column("b c", StructType((Field("X", ArrayType(DecimalType(9, 2))),))))


class World:
    """Topics and schemas that note what was done to them."""

    def __init__(self) -> None:
        self.counts = {"orders": 3}
        self.done: list[str] = []

    def partitions(self, topic: str) -> int | None:
        return self.counts.get(topic)

    def create(self, topic: str, partitions: int, replicas: int, settings: Mapping[str, str]) -> None:
        self.done.append(f"create {topic}")

    def delete(self, topic: str) -> None:
        self.done.append(f"delete {topic}")

    def inferred(self, topic: str, row_format: RowFormat) -> tuple[Column, ...]:
        return COLUMNS

    def check(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        self.done.append(f"check {topic}")

    def register_if_absent(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        self.done.append(f"register if absent {topic}")

    def register(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        self.done.append(f"register {topic}")


def test_nothing_happens_until_the_effects_are_run() -> None:
    world = World()
    rehearsal = Rehearsal(world, world)
    rehearsal.create("new", 2, 1, {})
    rehearsal.register("new", AVRO, COLUMNS)
    rehearsal.delete("orders")
    assert world.done == []
    for effect in rehearsal.take_effects():
        effect()
    assert world.done == ["create new", "register new", "delete orders"]
    assert rehearsal.take_effects() == []


def test_later_statements_see_what_earlier_ones_would_do() -> None:
    world = World()
    rehearsal = Rehearsal(world, world)
    rehearsal.create("new", 2, 1, {})
    rehearsal.delete("orders")
    assert (rehearsal.partitions("new"), rehearsal.partitions("orders")) == (2, None)
    made = (Column("K", STRING),)
    rehearsal.register("new", AVRO, made)
    assert rehearsal.inferred("new", AVRO) == made


def test_facts_are_those_of_one_statement() -> None:
    world = World()
    rehearsal = Rehearsal(world, world)
    rehearsal.partitions("orders")
    assert rehearsal.take_facts().partitions == {"orders": 3}
    rehearsal.partitions("nowhere")
    assert rehearsal.take_facts().partitions == {"nowhere": None}


def test_a_replay_answers_as_the_world_did_also_after_a_trip_through_json() -> None:
    world = World()
    rehearsal = Rehearsal(world, world)
    rehearsal.partitions("orders")
    rehearsal.inferred("orders", AVRO)
    facts = Facts.of_document(rehearsal.take_facts().document())
    recorded = RecordedFacts(facts)
    assert recorded.partitions("orders") == 3
    assert recorded.inferred("orders", AVRO) == COLUMNS
    with pytest.raises(KsqlError, match="does not say which columns the values of topic other have"):
        recorded.inferred("other", AVRO)
