"""When schedules are due, by stream time and by the wall clock, and that a restart changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.pipeline.cores.small_topologies import Run, function, sink, stored, stream, table_sink

from moldau.pipeline.cores.processors import ProcessorContext
from moldau.pipeline.cores.punctuation import Cancellable, InvalidScheduleError, PunctuationType
from moldau.pipeline.cores.records import Record
from moldau.pipeline.ir import nodes as ir

STREAM_TIME, WALL_CLOCK_TIME = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME


class Ticking:
    """Forwards a record of its own whenever it is called back."""

    schedules: tuple[tuple[str, int, PunctuationType, int | None], ...] = ()

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.made: dict[str, Cancellable] = {}
        for name, interval_ms, kind, start_ms in self.schedules:
            self.schedule(name, interval_ms, kind, start_ms)

    def schedule(self, name: str, interval_ms: int, kind: PunctuationType, start_ms: int | None = None) -> None:
        self.made[name] = self.context.schedule(interval_ms, kind, lambda now: self.tick(name, now), start_ms=start_ms)

    def tick(self, name: str, now: int) -> None:
        assert self.context.record_metadata() is None
        self.context.forward(Record(name, "tick", now))

    def process(self, record: Record) -> None:
        self.context.forward(record)


class TickingOften(Ticking):
    """By the wall clock, ten times a second."""

    schedules = (("w", 100, WALL_CLOCK_TIME, None),)


def ticking(
    *schedules: tuple[str, int, PunctuationType],
    start_ms: int | None = None,
    kind: Any = Ticking,
    wall_clock_ms: int = 0,
) -> Run:
    class Scheduled(kind):  # type: ignore[misc]
        pass

    Scheduled.schedules = tuple((*schedule, start_ms) for schedule in schedules)
    source = stream("in")
    node = ir.Process(name="process", input=source, supplier=function(Scheduled))
    return Run(source, node, sink(node), wall_clock_ms=wall_clock_ms)


def ticks(told: list[Any]) -> list[tuple[str, int]]:
    return [(key, timestamp) for key, value, timestamp in told if value == "tick"]


def test_stream_time_ticks_with_the_first_record_and_then_at_multiples_of_the_interval() -> None:
    run = ticking(("t", 10, STREAM_TIME))
    assert [ticks(run.pipe("in", "k", "v", time)) for time in (3, 9, 10, 12, 25, 29, 30)] == [
        [("t", 3)],
        [],
        [("t", 10)],
        [],
        [("t", 25)],
        [],
        [("t", 30)],
    ]


def test_a_tick_comes_after_the_record_that_moved_time() -> None:
    run = ticking(("t", 10, STREAM_TIME))
    assert run.pipe("in", "k", "v", 3) == [("k", "v", 3), ("t", "tick", 3)]


def test_missed_times_are_made_up_for_by_one_tick() -> None:
    run = ticking(("t", 10, STREAM_TIME))
    run.pipe("in", "k", "v", 3)
    assert ticks(run.pipe("in", "k", "v", 95)) == [("t", 95)]
    assert ticks(run.pipe("in", "k", "v", 99)) == []
    assert ticks(run.pipe("in", "k", "v", 100)) == [("t", 100)]


def test_late_records_do_not_tick() -> None:
    run = ticking(("t", 10, STREAM_TIME))
    run.pipe("in", "k", "v", 25)
    assert ticks(run.pipe("in", "k", "v", 11)) == []


def test_several_schedules_tick_in_order_of_their_times() -> None:
    run = ticking(("slow", 20, STREAM_TIME), ("fast", 10, STREAM_TIME))
    assert ticks(run.pipe("in", "k", "v", 0)) == [("slow", 0), ("fast", 0)]
    assert ticks(run.pipe("in", "k", "v", 10)) == [("fast", 10)]
    assert ticks(run.pipe("in", "k", "v", 30)) == [("slow", 30), ("fast", 30)]


def test_the_wall_clock_ticks_an_interval_after_the_start() -> None:
    run = ticking(("w", 100, WALL_CLOCK_TIME))
    assert ticks(run.pipe("in", "k", "v", 5000)) == []
    for now, expected in (
        (99, []),
        (100, [("w", 100)]),
        (199, []),
        (430, [("w", 430)]),
        (499, []),
        (500, [("w", 500)]),
    ):
        run.run.advance_wall_clock(now)
        assert ticks(run.told()) == expected


def test_a_schedule_with_a_start_ticks_at_whole_intervals_from_it() -> None:
    run = ticking(("t", 10, STREAM_TIME), start_ms=7)
    times = [ticks(run.pipe("in", "k", "v", time)) for time in (3, 7, 16, 17, 40)]
    assert times == [[], [("t", 7)], [], [("t", 17)], [("t", 40)]]
    assert ticks(run.pipe("in", "k", "v", 46)) == []
    assert ticks(run.pipe("in", "k", "v", 47)) == [("t", 47)]


def test_a_start_that_has_passed_waits_for_the_next_whole_interval() -> None:
    class Later(Ticking):
        def process(self, record: Record) -> None:
            if record.value == "schedule":
                self.schedule("late", 10, STREAM_TIME, 5)

    run = ticking(kind=Later)
    assert ticks(run.pipe("in", "k", "schedule", 21)) == []
    assert ticks(run.pipe("in", "k", "v", 24)) == []
    assert ticks(run.pipe("in", "k", "v", 25)) == [("late", 25)]


def test_a_start_in_the_past_of_the_wall_clock_waits_too_when_it_is_made_at_the_start() -> None:
    run = ticking(("w", 100, WALL_CLOCK_TIME), start_ms=50, wall_clock_ms=1000)
    assert run.told() == []
    for now, expected in ((1049, []), (1050, [("w", 1050)]), (1149, []), (1150, [("w", 1150)])):
        run.run.advance_wall_clock(now)
        assert ticks(run.told()) == expected


def test_a_processor_knows_the_time_of_day_from_its_start_on_and_after_a_restart() -> None:
    seen: list[int] = []

    class Watching(Ticking):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            seen.append(context.current_system_time_ms())

    run = ticking(kind=Watching, wall_clock_ms=1000)
    run.run.advance_wall_clock(2000)
    run.run.rebuild()
    assert seen == [1000, 2000]


def test_what_a_tick_of_the_wall_clock_puts_into_a_cache_is_told_with_it() -> None:
    source = stream("in")
    node = ir.Process(name="process", input=source, supplier=function(TickingOften), keeps_key=True)
    table = ir.Aggregate(
        name="last",
        input=node,
        aggregator=ir.Reduce(function(lambda one, other: other)),
        table=stored("last-store", is_caching=True),
    )
    run = Run(source, node, table, *table_sink(table), is_caching=True)

    run.run.advance_wall_clock(100)

    assert run.told() == [("w", "tick", 100)]


def test_a_schedule_made_while_a_record_is_processed_ticks_right_after_it() -> None:
    class Later(Ticking):
        def process(self, record: Record) -> None:
            if record.value == "schedule":
                self.schedule("late", 10, STREAM_TIME)

    run = ticking(kind=Later)
    run.pipe("in", "k", "v", 21)
    assert ticks(run.pipe("in", "k", "schedule", 22)) == [("late", 22)]


def test_a_cancelled_schedule_is_silent_even_if_it_cancelled_itself() -> None:
    class Once(Ticking):
        def tick(self, name: str, now: int) -> None:
            super().tick(name, now)
            self.made[name].cancel()

        def process(self, record: Record) -> None:
            if record.value == "cancel":
                self.made["w"].cancel()

    run = ticking(("t", 10, STREAM_TIME), ("w", 10, WALL_CLOCK_TIME), kind=Once)
    assert ticks(run.pipe("in", "k", "v", 3)) == [("t", 3)]
    assert ticks(run.pipe("in", "k", "v", 50)) == []
    run.pipe("in", "k", "cancel", 51)
    run.run.advance_wall_clock(100)
    assert run.told() == []
    run.run.rebuild()
    assert ticks(run.pipe("in", "k", "v", 70)) == []


def test_schedules_go_on_after_a_restart() -> None:
    run, cut = (ticking(("slow", 20, STREAM_TIME), ("fast", 10, STREAM_TIME), ("w", 7, WALL_CLOCK_TIME)) for _ in "ab")
    for time in range(0, 200, 3):
        cut.run.rebuild()
        for one in (run, cut):
            one.run.advance_wall_clock(time)
        assert run.told() == cut.told()
        assert run.pipe("in", "k", "v", time) == cut.pipe("in", "k", "v", time)


@pytest.mark.parametrize("interval_ms", [0, -1])
def test_an_interval_of_less_than_a_millisecond_is_refused(interval_ms: int) -> None:
    with pytest.raises(InvalidScheduleError, match="process: a schedule needs an interval of at least 1 ms"):
        ticking(("t", interval_ms, STREAM_TIME))


def test_a_start_before_the_epoch_is_refused() -> None:
    with pytest.raises(InvalidScheduleError, match="before the epoch"):
        ticking(("t", 1, STREAM_TIME), start_ms=-1)
