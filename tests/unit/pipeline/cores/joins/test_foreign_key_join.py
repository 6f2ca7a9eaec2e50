"""Foreign-key joins: left rows find right rows by a key inside their value; values are `foreign key:name`."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.pipeline.cores.small_topologies import Run, both, function, stored, stream, table, table_sink

from moldau.pipeline.cores.stores.backends import MemoryBackend
from moldau.pipeline.cores.stores.subscriptions import CROWDED, Subscriptions
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.foreign_key import (
    Instruction,
    LeftRow,
    LeftRowSerde,
    Response,
    ResponseSerde,
    Subscription,
    SubscriptionSerde,
)
from moldau.pipeline.ir.nodes import JoinKind

INNER, LEFT = JoinKind.INNER, JoinKind.LEFT


def fk_join(kind: JoinKind, left: ir.Node, right: ir.Node, *, is_queryable: bool = False) -> tuple[ir.Node, ...]:
    join = ir.ForeignKeyJoin(
        name="join",
        left=left,
        right=right,
        joiner=function(both),
        kind=kind,
        extractor=function(lambda value: value.split(":")[0] or None),
        left_table=stored("left-values"),
        right_table=stored("right-values"),
        subscriptions="subscriptions",
        subscription_topic="subscription-topic",
        response_topic="response-topic",
        table=stored("result", is_queryable=is_queryable),
    )
    return join, *table_sink(join)


def joined(kind: JoinKind, *, partitions: int = 1, is_queryable: bool = False) -> Run:
    left, right = table("left"), table("right")
    return Run(left, right, *fk_join(kind, left, right, is_queryable=is_queryable), partitions=partitions)


def alone(kind: JoinKind, value: str, timestamp: int) -> list[Any]:
    return [("k", f"{value}-", timestamp)] if kind is LEFT else []


@pytest.mark.parametrize("kind", [INNER, LEFT])
def test_a_left_row_gets_the_right_row_it_points_to_with_the_later_time(kind: JoinKind) -> None:
    run = joined(kind)
    assert run.pipe("left", "k", "f:A", 10) == alone(kind, "f:A", 10)
    assert run.pipe("right", "f", "a", 20) == [("k", "f:Aa", 20)]
    assert run.pipe("left", "k", "f:B", 15) == [("k", "f:Ba", 20)]
    assert run.pipe("left", "k", "f:C", 30) == [("k", "f:Ca", 30)]


@pytest.mark.parametrize("kind", [INNER, LEFT])
def test_a_right_change_has_its_own_time_even_if_the_left_row_is_younger(kind: JoinKind) -> None:
    run = joined(kind)
    run.pipe("left", "k", "f:A", 100)
    assert run.pipe("right", "f", "a", 20) == [("k", "f:Aa", 20)]


@pytest.mark.parametrize("kind", [INNER, LEFT])
def test_a_right_change_reaches_all_who_point_to_it_in_byte_order_of_their_keys(kind: JoinKind) -> None:
    run = joined(kind)
    for key in ("b", "ab", "a", "c", "B"):
        run.pipe("left", key, "f:A", 10)
    run.pipe("left", "d", "ff:A", 10)
    assert run.pipe("right", "f", "a", 20) == [(key, "f:Aa", 20) for key in ("B", "a", "ab", "b", "c")]


@pytest.mark.parametrize(("kind", "told"), [(INNER, [("k", None, 30)]), (LEFT, [("k", "f:A-", 30)])])
def test_losing_the_right_row(kind: JoinKind, told: list[Any]) -> None:
    run = joined(kind)
    run.pipe("left", "k", "f:A", 10)
    run.pipe("right", "f", "a", 20)
    assert run.pipe("right", "f", None, 30) == told
    assert run.pipe("right", "f", None, 40) == [(key, value, 40) for key, value, _ in told]


@pytest.mark.parametrize("kind", [INNER, LEFT])
def test_moving_to_another_right_row(kind: JoinKind) -> None:
    run = joined(kind)
    run.pipe("right", "f", "a", 1)
    run.pipe("right", "g", "b", 2)
    run.pipe("left", "k", "f:A", 10)
    assert run.pipe("left", "k", "g:A", 11) == [("k", "g:Ab", 11)]
    assert run.pipe("right", "f", "x", 12) == []
    assert run.pipe("right", "g", "y", 13) == [("k", "g:Ay", 13)]


@pytest.mark.parametrize(("kind", "told"), [(INNER, [("k", None, 11)]), (LEFT, [("k", "g:A-", 11)])])
def test_moving_to_where_there_is_nothing(kind: JoinKind, told: list[Any]) -> None:
    run = joined(kind)
    run.pipe("left", "k", "f:A", 10)
    assert run.pipe("left", "k", "g:A", 11) == told


def test_an_update_that_still_finds_nothing_tells_nothing_in_an_inner_join() -> None:
    run = joined(INNER)
    run.pipe("left", "k", "f:A", 10)
    assert run.pipe("left", "k", "f:B", 11) == []


@pytest.mark.parametrize("kind", [INNER, LEFT])
def test_deleting_a_left_row_ends_the_result_even_if_there_was_none(kind: JoinKind) -> None:
    run = joined(kind)
    run.pipe("left", "k", "f:A", 10)
    assert run.pipe("left", "k", None, 11) == [("k", None, 11)]
    assert run.pipe("left", "k", None, 12) == []
    assert run.pipe("right", "f", "a", 13) == []


@pytest.mark.parametrize(("kind", "timestamp"), [(INNER, 50), (LEFT, 20)])
def test_a_tombstone_of_an_inner_join_is_not_before_the_right_row(kind: JoinKind, timestamp: int) -> None:
    run = joined(kind)
    run.pipe("right", "f", "a", 50)
    run.pipe("left", "k", "f:A", 10)
    assert run.pipe("left", "k", None, 20) == [("k", None, timestamp)]


@pytest.mark.parametrize("kind", [INNER, LEFT])
def test_a_left_row_that_points_nowhere(kind: JoinKind) -> None:
    run = joined(kind)
    assert run.pipe("left", "k", ":A", 10) == alone(kind, ":A", 10)


@pytest.mark.parametrize(("kind", "told"), [(INNER, [("k", None, 20)]), (LEFT, [("k", ":A-", 11)])])
def test_a_left_row_that_stops_pointing(kind: JoinKind, told: list[Any]) -> None:
    run = joined(kind)
    run.pipe("right", "f", "a", 20)
    run.pipe("left", "k", "f:A", 10)
    assert run.pipe("left", "k", ":A", 11) == told
    assert run.pipe("right", "f", "b", 21) == []


@pytest.mark.parametrize("kind", [INNER, LEFT])
def test_many_partitions_tell_the_same(kind: JoinKind) -> None:
    runs = [joined(kind, partitions=partitions) for partitions in (1, 3)]
    records = [("right", f"f{n}", "a", n) for n in range(4)]
    records += [("left", f"k{n}", f"f{n % 6}:A", 10 + n) for n in range(12)]
    records += [("right", f"f{n}", None if n % 2 else "b", 30 + n) for n in range(6)]
    records += [("left", f"k{n}", f":{n}" if n % 3 else f"f{n % 5}:B", 40 + n) for n in range(12)]
    one, three = ([sorted(run.pipe(*record)) for record in records] for run in runs)
    assert one == three


def test_an_answer_to_a_row_that_has_changed_meanwhile_is_dropped() -> None:
    source, right = stream("in"), table("right")
    several = ir.FlatMapValues(name="several", input=source, mapper=function(lambda value: value.split("|")))
    left = ir.ToTable(name="left", input=several, table=stored("left-store"))
    run = Run(source, right, several, left, *fk_join(LEFT, left, right))
    run.pipe("right", "f", "a", 1)
    assert run.pipe("in", "k", "f:A|f:B|g:C|f:D", 10) == [("k", "f:Da", 10)]
    assert run.dropped() == {("join", "the left row has changed since it asked"): 3}


def test_a_table_can_point_to_itself() -> None:
    people = table("people")
    run = Run(people, *fk_join(LEFT, people, people))
    assert run.pipe("people", "f", "f:X", 10) == [("f", "f:Xf:X", 10)]
    assert run.pipe("people", "k", "f:A", 11) == [("k", "f:Af:X", 11)]
    assert sorted(run.pipe("people", "f", "f:Y", 12)) == [("f", "f:Yf:Y", 12), ("k", "f:Af:Y", 12)]


def test_a_record_that_changes_both_tables_makes_older_answers_outdated() -> None:
    source = table("in")
    right = ir.TableMapValues(name="right", input=source, mapper=function(lambda value: value.split(":")[1]))
    left = ir.TableMapValues(name="left", input=source, mapper=function(lambda value: value + "!"))
    run = Run(source, right, left, *fk_join(LEFT, left, right))
    assert run.pipe("in", "f", "f:X", 10) == [("f", "f:X!X", 10)]
    assert run.pipe("in", "f", "f:Y", 11) == [("f", "f:Y!Y", 11)]


def test_the_result_can_be_read_where_it_was_named() -> None:
    run = joined(LEFT, is_queryable=True)
    run.pipe("left", "k", "f:A", 10)
    (store,) = run.run.stores("result")
    assert store.get("k") == ("f:A-", 10)  # type: ignore[attr-defined]


def test_the_result_is_not_stored_where_nobody_needs_it() -> None:
    assert "result" not in joined(INNER).run.store_names()


DIGEST = bytes(range(16))


@pytest.mark.parametrize("digest", [None, DIGEST])
def test_subscriptions_survive_their_serde(digest: bytes | None) -> None:
    serde = SubscriptionSerde()
    sent = Subscription(Instruction.ANSWER, b"key", 3, digest)
    assert serde.deserialize("", serde.serialize("", sent)) == sent


@pytest.mark.parametrize("digest", [None, DIGEST])
@pytest.mark.parametrize("right", [None, b"right"])
def test_responses_survive_their_serde(digest: bytes | None, right: bytes | None) -> None:
    serde = ResponseSerde()
    sent = Response(3, digest, right)
    assert serde.deserialize("", serde.serialize("", sent)) == sent


@pytest.mark.parametrize("value", [None, b"", b"value"])
def test_left_rows_survive_their_serde(value: bytes | None) -> None:
    serde = LeftRowSerde()
    assert serde.deserialize("", serde.serialize("", LeftRow(3, value))) == LeftRow(3, value)


def test_a_right_value_of_no_bytes_counts_as_none_as_in_kafka() -> None:
    run = joined(LEFT)
    run.pipe("left", "k", "f:A", 10)
    assert run.pipe("right", "f", "", 20) == [("k", "f:A-", 20)]


def test_a_popular_right_key_has_its_subscriptions_in_many_entries() -> None:
    backend = MemoryBackend()
    store = Subscriptions("subscriptions", backend)
    keys = [f"{number:05}".encode() for number in range(5 * CROWDED)]
    for key in keys:
        store.put(b"f", Subscription(Instruction.ANSWER, key, 0, DIGEST))
    store.put(b"other", Subscription(Instruction.ANSWER, b"k", 0, None))
    store.flush()
    assert len(backend.entries) > 4
    again = Subscriptions("subscriptions", backend)
    assert [subscription.primary_key for subscription in again.of(b"f")] == keys
    for key in keys:
        again.delete(b"f", key)
    again.delete(b"other", b"k")
    again.flush()
    third = Subscriptions("subscriptions", backend)
    assert third.of(b"f") == third.of(b"other") == []
    assert len(backend.entries) == 1
