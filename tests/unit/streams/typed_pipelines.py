"""Pipelines as a type checker sees them: `test_types` lets mypy read this file; running it shows nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_type

from moldau.streams import (
    Consumed,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Produced,
    Record,
    Serdes,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    Windowed,
    key,
    value,
    with_key,
)

builder = StreamsBuilder()
text, longs, doubles = Serdes.string(), Serdes.long(), Serdes.double()
minute = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
session = SessionWindows.of_inactivity_gap_with_no_grace(timedelta(minutes=1))
near = JoinWindows.of_time_difference_with_no_grace(timedelta(minutes=1))


def sources() -> tuple[KStream[str, int], KTable[str, float]]:
    assert_type(builder.stream("anything"), KStream[Any, Any])
    rows = builder.table("rates", Consumed.with_(text, doubles), Materialized.as_("rates"))
    assert_type(builder.table("more", materialized=Materialized.with_(text, longs)), KTable[str, int])
    return builder.stream("amounts", Consumed.with_(text, longs)), rows


amounts, rates = sources()


def records() -> None:
    assert_type(amounts.filter(lambda name, amount: amount > 5), KStream[str, int])
    assert_type(amounts.map_values(str), KStream[str, str])
    assert_type(amounts.map(lambda name, amount: (amount, name)), KStream[int, str])
    assert_type(amounts.flat_map_values(lambda amount: [str(amount)]), KStream[str, str])
    assert_type(amounts.select_key(lambda name, amount: len(name)), KStream[int, int])
    assert_type(amounts.split().default_branch(), dict[str, KStream[str, int]])


def expressions() -> None:
    assert_type(amounts.filter(value > 5), KStream[str, int])
    assert_type(amounts.map_values({"name": key, "amount": value}), KStream[str, Any])
    assert_type(amounts.map((value, key)), KStream[Any, Any])


def folds() -> None:
    by_name = amounts.group_by_key()
    assert_type(by_name.count(), KTable[str, int])
    assert_type(by_name.reduce(max), KTable[str, int])
    assert_type(by_name.windowed_by(minute).count(), KTable[Windowed[str], int])
    assert_type(by_name.windowed_by(minute).aggregate(float, lambda k, v, sum_: sum_ + v), KTable[Windowed[str], float])
    assert_type(by_name.windowed_by(session).reduce(max).to_stream(), KStream[Windowed[str], int])
    assert_type(by_name.windowed_by(minute).count().to_stream(lambda k, count: k.key), KStream[str, int])
    assert_type(rates.group_by(lambda name, rate: (rate, name)).count(), KTable[float, int])


def joins() -> None:
    def or_nothing(amount: int, rate: float | None) -> str:
        return f"{amount} {rate}"

    assert_type(amounts.join(rates, lambda amount, rate: amount * rate), KStream[str, float])
    assert_type(amounts.left_join(rates, or_nothing), KStream[str, str])
    assert_type(amounts.join(amounts, lambda one, other: [one, other], near), KStream[str, list[int]])
    assert_type(amounts.join(rates, with_key(lambda name, amount, rate: name)), KStream[str, Any])
    assert_type(rates.join(amounts.to_table(), lambda rate, amount: (rate, amount)), KTable[str, tuple[float, int]])


class Doubling:
    """A processor whose records have types."""

    def init(self, context: Any) -> None:
        self.context = context

    def process(self, record: Record[str, int]) -> None:
        assert_type(record.with_value("text"), Record[str, str])
        self.context.forward(record.with_value(record.value * 2))


def processors() -> None:
    amounts.process_values(Doubling).to("doubled", Produced.with_(text, longs))
