"""Users' own processors: what they are given, what they may do, and what they are told when they may not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.pipeline.cores.small_topologies import (
    Run,
    function,
    global_table,
    sink,
    stored,
    stream,
    table,
    table_sink,
)

from moldau.pipeline.cores.failures import ProcessingError, StateError
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.processors import ProcessorContext
from moldau.pipeline.cores.punctuation import PunctuationType
from moldau.pipeline.cores.records import Record, ValueAndTimestamp
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.nodes import StateStore, StoreKind
from moldau.pipeline.ir.topology import Topology
from moldau.serdes.plain import LongSerde, StringSerde


def counts(name: str = "counts", kind: StoreKind = StoreKind.KEY_VALUE) -> StateStore:
    table = ir.Materialization(store=name, key_serde=StringSerde(), value_serde=LongSerde(), is_caching=False)
    return StateStore(kind=kind, table=table)


class Counting:
    """Forwards how often it has seen a key."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.store = context.get_state_store("counts")

    def process(self, record: Record) -> None:
        count = (self.store.get(record.key) or 0) + 1
        self.store.put(record.key, count)
        self.context.forward(record.with_value(str(count)))


class Calling:
    """Does what a function says with each record."""

    def __init__(self, work: Callable[[ProcessorContext, Record], None]) -> None:
        self.work = work

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        self.work(self.context, record)


def calling(work: Callable[[ProcessorContext, Record], None], *, keeps_key: bool = False) -> Run:
    source = stream("in")
    node = ir.Process(name="process", input=source, supplier=function(lambda: Calling(work)), keeps_key=keeps_key)
    return Run(source, node, sink(node))


def test_a_processor_keeps_state_across_records_and_restarts() -> None:
    source = stream("in")
    node = ir.Process(name="process", input=source, supplier=function(Counting), stores=(counts(),))
    run = Run(source, node, sink(node))
    assert run.pipe("in", "k", "x", 10) == [("k", "1", 10)]
    assert run.pipe("in", "k", "x", 11) == [("k", "2", 11)]
    run.run.rebuild()
    assert run.pipe("in", "k", "x", 12) == [("k", "3", 12)]


def test_two_processors_share_a_store() -> None:
    one, other = stream("one"), stream("other")
    owner = ir.Process(name="owner", input=one, supplier=function(Counting), stores=(counts(),))
    guest = ir.Process(name="guest", input=other, supplier=function(Counting), connected=("counts",))
    run = Run(one, other, owner, guest, sink(owner), sink(guest, "guest-out"))
    run.pipe("one", "k", "x", 10)
    run.run.pipe("other", b"k", b"x", 11)
    assert run.told("guest-out") == [("k", "2", 11)]


def test_both_may_bring_the_same_store() -> None:
    one, other = stream("one"), stream("other")
    first = ir.Process(name="first", input=one, supplier=function(Counting), stores=(counts(),))
    second = ir.Process(name="second", input=other, supplier=function(Counting), stores=(counts(),))
    run = Run(one, other, first, second, sink(first), sink(second, "second-out"))
    run.pipe("one", "k", "x", 10)
    run.run.pipe("other", b"k", b"x", 11)
    assert run.told("second-out") == [("k", "2", 11)]


def test_a_store_with_timestamps() -> None:
    def work(context: ProcessorContext, record: Record) -> None:
        store = context.get_state_store("counts")
        before = store.get(record.key)
        store.put(record.key, ValueAndTimestamp(int(record.value), record.timestamp))
        context.forward(record.with_value(str(before and tuple(before))))

    source = stream("in")
    node = ir.Process(
        name="process",
        input=source,
        supplier=function(lambda: Calling(work)),
        stores=(counts(kind=StoreKind.TIMESTAMPED_KEY_VALUE),),
    )
    run = Run(source, node, sink(node))
    assert run.pipe("in", "k", "7", 10) == [("k", "None", 10)]
    assert run.pipe("in", "k", "8", 11) == [("k", "(7, 10)", 11)]


def test_a_store_that_is_not_connected_is_refused() -> None:
    source = stream("in")
    node = ir.Process(name="process", input=source, supplier=function(Counting), stores=(counts("others"),))
    with pytest.raises(StateError, match=r"process has no access to store 'counts'.*connected are: others"):
        Run(source, node, sink(node))


def test_a_global_table_can_be_read_by_any_processor_and_written_by_none() -> None:
    def work(context: ProcessorContext, record: Record) -> None:
        rows = context.get_state_store("global-store")
        context.forward(record.with_value(str(tuple(rows.get(record.key)))))
        rows.put(record.key, "mine")

    source, everywhere = stream("in"), global_table("global")
    node = ir.Process(name="process", input=source, supplier=function(lambda: Calling(work)))
    run = Run(source, everywhere, node, sink(node))
    run.pipe("global", "k", "g", 5)
    with pytest.raises(ProcessingError, match="'global-store' is global and read-only here: put is not allowed"):
        run.pipe("in", "k", "v", 10)


def test_a_record_goes_to_all_children_or_to_one_by_name() -> None:
    def work(context: ProcessorContext, record: Record) -> None:
        context.forward(record, record.value if record.value.startswith("sink") else None)

    source = stream("in")
    node = ir.Process(name="process", input=source, supplier=function(lambda: Calling(work)))
    run = Run(source, node, sink(node, "a"), sink(node, "b"))
    run.run.pipe("in", b"k", b"all", 1)
    run.run.pipe("in", b"k", b"sink-b", 2)
    assert [(row.topic, row.timestamp) for row in run.run.drain()] == [("a", 1), ("b", 1), ("b", 2)]


def test_a_child_that_is_none_is_refused_by_name() -> None:
    run = calling(lambda context, record: context.forward(record, "nobody"))
    with pytest.raises(ProcessingError, match="process forwards to 'nobody'; the nodes that follow it are: sink-out"):
        run.pipe("in", "k", "v", 1)


def test_a_record_is_done_with_downstream_before_forward_returns() -> None:
    seen: list[str] = []

    def work(context: ProcessorContext, record: Record) -> None:
        for number in range(2):
            seen.append(f"before {number}")
            context.forward(record.with_value(str(number)))

    source = stream("in")
    node = ir.Process(name="process", input=source, supplier=function(lambda: Calling(work)))
    peek = ir.Peek(name="peek", input=node, action=function(lambda key, value: seen.append(f"sees {value}")))
    Run(source, node, peek, sink(peek)).pipe("in", "k", "v", 1)
    assert seen == ["before 0", "sees 0", "before 1", "sees 1"]


def test_time_headers_and_key_can_be_changed() -> None:
    run = calling(lambda context, record: context.forward(Record("other", "w", 99, (*record.headers, ("b", b"2")))))
    run.run.pipe("in", b"k", b"v", 1, headers=(("a", b"1"),))
    (row,) = run.run.drain()
    assert (row.key, row.value, row.timestamp) == (b"other", b"w", 99)
    assert row.headers == (("a", b"1"), ("b", b"2"))


def test_a_processor_knows_where_the_record_was_read_and_what_time_it_is() -> None:
    def work(context: ProcessorContext, record: Record) -> None:
        told = (*(context.record_metadata() or ()), context.current_stream_time_ms(), context.current_system_time_ms())
        context.forward(record.with_value(str((*told, context.application_id, context.partition))))

    run = calling(work)
    run.run.advance_wall_clock(1234)
    run.pipe("in", "k", "v", 50)
    assert run.pipe("in", "k", "v", 40) == [("k", str(("in", 0, 1, 50, 1234, "moldau", 0)), 40)]


@pytest.mark.parametrize("interval", [10, timedelta(milliseconds=10)])
def test_intervals_are_milliseconds_or_timedeltas(interval: int | timedelta) -> None:
    class Ticking(Calling):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            tick = context.schedule(
                interval, PunctuationType.STREAM_TIME, lambda now: context.forward(Record("tick", str(now), now))
            )
            assert not tick.is_cancelled

    source = stream("in")
    node = ir.Process(name="process", input=source, supplier=function(lambda: Ticking(lambda context, record: None)))
    run = Run(source, node, sink(node))
    assert [run.pipe("in", "k", "v", time) for time in (1, 9, 10)] == [[("tick", "1", 1)], [], [("tick", "10", 10)]]


def test_a_processor_of_values_passes_the_key_it_was_given() -> None:
    run = calling(lambda context, record: context.forward(record.with_value("w")), keeps_key=True)
    assert run.pipe("in", "k", "v", 1) == [("k", "w", 1)]


def test_a_processor_of_values_may_not_change_keys() -> None:
    run = calling(lambda context, record: context.forward(record.with_key("other")), keeps_key=True)
    with pytest.raises(ProcessingError, match="process may change values only, but forwarded key 'other' for 'k'"):
        run.pipe("in", "k", "v", 1)


def test_a_processor_without_init_and_close_will_do() -> None:
    class Silent:
        def process(self, record: Record) -> None:
            """Nothing."""

    source = stream("in")
    node = ir.Process(name="process", input=source, supplier=function(Silent))
    run = Run(source, node, sink(node))
    assert run.pipe("in", "k", "v", 1) == []
    run.run.close()


def test_processors_are_closed_with_the_task() -> None:
    closed: list[str] = []

    class Closing(Counting):
        def close(self) -> None:
            closed.append("closed")

    source = stream("in")
    node = ir.Process(name="process", input=source, supplier=function(Closing), stores=(counts(),))
    Run(source, node, sink(node)).run.close()
    assert closed == ["closed"]


def failing_tick(handler: Any) -> InMemoryRun:
    class Failing(Calling):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            context.schedule(10, PunctuationType.STREAM_TIME, self.tick)

        def tick(self, now: int) -> None:
            raise ValueError(f"no tick at {now}")

    source = stream("in")
    node = ir.Process(
        name="process",
        input=source,
        supplier=function(lambda: Failing(lambda context, record: context.forward(record))),
    )
    settings = TaskSettings(cache_max_bytes=0, processing_handler=handler)
    return InMemoryRun(Topology((source, node, sink(node))), settings)


def test_a_callback_that_raises_names_its_processor_and_line() -> None:
    run = failing_tick(TaskSettings().processing_handler)
    with pytest.raises(ProcessingError, match=r"outside of any record: process .*test_processors.py:.*no tick at 5"):
        run.pipe("in", b"k", b"v", 5)


def test_a_callback_that_raises_can_be_left_behind() -> None:
    run = failing_tick(TaskSettings.of({"processing.exception.handler": "continue"}).processing_handler)
    for time in (5, 15):
        run.pipe("in", b"k", b"v", time)
    assert [row.timestamp for row in run.drain()] == [5, 15]
    assert run.dropped_records == {("process", "processing failed"): 2}


# --- transformers of a table's values ----------------------------------------------------------------------------


class Numbering:
    """Adds how many rows it has transformed."""

    def __init__(self) -> None:
        self.number = 0

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def transform(self, key: str, value: str | None) -> str | None:
        self.number += 1
        return None if value is None else f"{value}{self.number}"


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_transformer_gives_rows_another_value(is_stored: bool) -> None:
    source = table("in")
    node = ir.TableTransformValues(
        name="transform",
        input=source,
        supplier=function(Numbering),
        table=stored("transformed", is_queryable=True) if is_stored else None,
    )
    run = Run(source, node, *table_sink(node))
    assert run.pipe("in", "k", "a", 1) == [("k", "a1", 1)]
    assert run.pipe("in", "k", "b", 2) == [("k", "b2", 2)]
    assert run.pipe("in", "k", None, 3) == [("k", None, 3)]


def test_a_stored_transformation_is_not_asked_again_for_old_rows() -> None:
    source = table("in")
    node = ir.TableTransformValues(
        name="transform",
        input=source,
        supplier=function(Numbering),
        table=stored("transformed", is_queryable=True),
    )
    other = table("other")
    join = ir.TableTableJoin(
        name="join", left=node, right=other, joiner=function(lambda one, two: one), kind=ir.JoinKind.LEFT
    )
    run = Run(source, node, other, join, *table_sink(join))
    run.pipe("in", "k", "a", 1)
    assert run.pipe("other", "k", "x", 2) == [("k", "a1", 2)]
    assert run.pipe("in", "k", "b", 3) == [("k", "b2", 3)]


def test_an_unstored_transformation_is_read_by_an_object_of_its_own() -> None:
    source, left = table("in"), stream("stream")
    node = ir.TableTransformValues(name="transform", input=source, supplier=function(Numbering))
    join = ir.StreamTableJoin(
        name="join", left=left, right=node, joiner=function(lambda one, two: two), kind=ir.JoinKind.INNER
    )
    run = Run(source, left, node, join, sink(join))
    for time in range(5):
        run.pipe("in", "k", "a", time)
    assert run.pipe("stream", "k", "x", 9) == [("k", "a1", 9)]


def test_a_transformer_cannot_forward() -> None:
    class Forwarding(Numbering):
        def transform(self, key: str, value: str | None) -> str | None:
            self.context.forward(Record(key, value, 0))
            return value

    source = table("in")
    node = ir.TableTransformValues(name="transform", input=source, supplier=function(Forwarding))
    run = Run(source, node, *table_sink(node))
    with pytest.raises(ProcessingError, match="returns its result and cannot forward"):
        run.pipe("in", "k", "a", 1)
