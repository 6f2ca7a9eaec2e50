"""Where batches are cut changes no output: a task made anew from its backends goes on as the old one.

Inputs are generated late, out of order, null and repeated, and jump far enough for windows to expire.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.pipeline.cores.piped_tables import Build, Pipe, Told

from moldau.pipeline.dsl.kstream import KStream
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.suppressed import BufferConfig, Suppressed
from moldau.pipeline.dsl.options.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows
from moldau.pipeline.ir.nodes import EmitStrategy

AT_CLOSE = EmitStrategy.ON_WINDOW_CLOSE
TUMBLING = TimeWindows.of_size_and_grace(20, 10)
HOPPING = TimeWindows.of_size_and_grace(20, 5).advance_by(7)
SLIDING = SlidingWindows.of_time_difference_and_grace(10, 5)
SESSIONS = SessionWindows.of_inactivity_gap_and_grace(8, 10)
HELD = Suppressed.until_window_closes(BufferConfig.unbounded())


def together(one: str, other: str) -> str:
    return (one + other)[-40:]


def cogrouped(stream: KStream):  # type: ignore[no-untyped-def]
    left, right = stream.filter(lambda key, value: value != "b"), stream.filter(lambda key, value: value == "b")
    adding = left.group_by_key().cogroup(lambda key, value, total: together(total, value))
    return adding.cogroup(right.group_by_key(), lambda key, value, total: together(value, total))


def rows(stream: KStream, name: str | None = None):  # type: ignore[no-untyped-def]
    return stream.to_table(None if name is None else Materialized.as_(name))


AGGREGATIONS: dict[str, Build] = {
    "count": lambda stream: stream.group_by_key().count(),
    "reduce": lambda stream: stream.group_by_key().reduce(together),
    "aggregate by another key": lambda stream: stream.group_by(lambda key, value: value or "none").count(),
    "cogroup": lambda stream: cogrouped(stream.filter(lambda key, value: value is not None)).aggregate(str),
    "tumbling": lambda stream: stream.group_by_key().windowed_by(TUMBLING).count(),
    "tumbling, long retention": lambda stream: (
        stream.group_by_key().windowed_by(TUMBLING).count(Materialized.as_("kept").with_retention(500_000))
    ),
    "tumbling at close": lambda stream: stream.group_by_key().windowed_by(TUMBLING).emit_strategy(AT_CLOSE).count(),
    "hopping": lambda stream: stream.group_by_key().windowed_by(HOPPING).count(),
    "hopping at close": lambda stream: stream.group_by_key().windowed_by(HOPPING).emit_strategy(AT_CLOSE).count(),
    "sliding": lambda stream: stream.group_by_key().windowed_by(SLIDING).reduce(together),
    "sliding at close": lambda stream: stream.group_by_key().windowed_by(SLIDING).emit_strategy(AT_CLOSE).count(),
    "sessions": lambda stream: stream.group_by_key().windowed_by(SESSIONS).count(),
    "sessions at close": lambda stream: stream.group_by_key().windowed_by(SESSIONS).emit_strategy(AT_CLOSE).count(),
    "unlimited": lambda stream: stream.group_by_key().windowed_by(UnlimitedWindows.of()).count(),
    "suppressed windows": lambda stream: stream.group_by_key().windowed_by(TUMBLING).count().suppress(HELD),
    "suppressed sessions": lambda stream: stream.group_by_key().windowed_by(SESSIONS).count().suppress(HELD),
    "suppressed for time": lambda stream: (
        stream.group_by_key()
        .count()
        .suppress(Suppressed.until_time_limit(15, BufferConfig.max_records(2).emit_early_when_full()))
    ),
    "table": lambda stream: rows(stream, "rows").filter(lambda key, value: value != "b").map_values(str.upper),
    "unstored table": lambda stream: rows(stream).filter(lambda key, value: value != "b"),
    "table aggregation": lambda stream: (
        rows(stream)
        .group_by(lambda key, value: (value, value))
        .aggregate(str, lambda key, value, total: total + value, lambda key, value, total: total[: -len(value)])
    ),
    "count of a windowed count": lambda stream: (
        stream.group_by_key()
        .windowed_by(TUMBLING)
        .count()
        .group_by(lambda windowed, count: (windowed.key, str(count)))
        .count()
    ),
}

Records = list[tuple[str | None, str | None, int]]

times = st.one_of(st.integers(0, 60), st.integers(0, 200), st.integers(100_000, 100_060), st.integers(0, 400_000))
records: st.SearchStrategy[Records] = st.lists(
    st.tuples(st.sampled_from(["k", "l", "m", None]), st.sampled_from(["a", "b", "c", None]), times), max_size=30
)


def fed(make: Callable[[], Pipe], given_records: Records, cuts: frozenset[int]) -> tuple[list[list[Told]], object]:
    pipe = make()
    told = []
    for number, record in enumerate(given_records):
        if number in cuts:
            pipe.run.rebuild()
        told.append(pipe(*record))
    pipe.run.rebuild()
    state = {name: sorted(map(repr, store.all())) for name in pipe.run.store_names() for store in pipe.run.stores(name)}
    return told, state


@pytest.mark.parametrize("is_caching", [False, True])
@pytest.mark.parametrize("name", AGGREGATIONS)
@settings(max_examples=12, deadline=None)
@given(given_records=records, cuts=st.frozensets(st.integers(0, 30)))
def test_batch_cuts_change_no_output(name: str, is_caching: bool, given_records: Records, cuts: frozenset[int]) -> None:
    def make() -> Pipe:
        return Pipe(AGGREGATIONS[name], is_caching=is_caching, partitions=2)

    assert fed(make, given_records, cuts) == fed(make, given_records, frozenset())


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_the_generated_records_make_every_aggregation_tell_something(name: str) -> None:
    pipe = Pipe(AGGREGATIONS[name])
    some = [("k", "a", 1), ("l", "c", 2), ("k", "b", 30), ("m", "a", 31), ("l", "a", 80), ("k", "a", 95)]

    assert any(pipe(*record) for record in some)
