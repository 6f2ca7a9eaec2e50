"""Groups run without Spark: its state is a dictionary here, and workers come and go as a test says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa
import pytest
from tests.unit.pipeline.spark.hosted.state_in_memory import StateInMemory

from moldau.pipeline.cores.failures import ProcessingError
from moldau.pipeline.cores.processors import ProcessorContext
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.spark.compiler import work_of
from moldau.pipeline.spark.hosted import group_run
from moldau.pipeline.spark.hosted.bundling import bundled_records
from moldau.pipeline.spark.hosted.group_run import RECORD_KEY, STORE_PREFIX, GroupRun
from moldau.pipeline.spark.hosted.work import StageWork
from moldau.pipeline.spark.plan import Plan
from moldau.pipeline.spark.rows import BUNDLES, FINISHED, FROM_SOURCES, TICK, Table, open_bundles, pack_rows
from moldau.streams import Consumed, LongSerde, Produced, Record, StreamsBuilder, StringSerde, Topology

TEXT = StringSerde()


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> StateInMemory:
    state = StateInMemory()
    monkeypatch.setattr(group_run, "_kept", {})
    return state


def counting() -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed.with_(TEXT, TEXT))
    stream.group_by_key().count().to_stream().to("out", Produced.with_(TEXT, LongSerde()))
    return builder.build()


PLAN = Plan.of(counting(), {"in": 1}, 1)
(STAGE,) = PLAN.stages
(SLOT,) = STAGE.units
WORK = work_of(PLAN, STAGE, TaskSettings.of({"statestore.cache.max.bytes": "0"}))


def rows(keys: Sequence[str], first: int = 0) -> pa.RecordBatch:
    return bundled(from_topic(keys, first))


def bundled(records: pa.RecordBatch) -> pa.RecordBatch:
    (batch,) = bundled_records(iter([records]))
    return batch


def from_topic(keys: Sequence[str], first: int = 0) -> pa.RecordBatch:
    return pack_rows(
        len(keys),
        {
            "slot": SLOT,
            "input": 0,
            "partition": 0,
            "offset": list(range(first, first + len(keys))),
            "timestamp": list(range(first, first + len(keys))),
            "key": [key.encode() for key in keys],
            "value": [b"x"] * len(keys),
        },
        FROM_SOURCES,
    )


def ran(state: StateInMemory, *batches: pa.RecordBatch, work: StageWork = WORK) -> list[tuple[str, int]]:
    results = [batch for batch in GroupRun(work, SLOT, state).run(Table(list(batches))) if batch.num_rows]
    cells = [cell for batch in results for cell in batch.column("bundle").to_pylist()]
    return [
        (key.decode(), int.from_bytes(value, "big"))
        for batch in open_bundles(cells, FINISHED)
        for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
    ]


def test_counts_go_on_from_batch_to_batch(spark: StateInMemory) -> None:
    assert ran(spark, rows(["a", "b", "a"])) == [("a", 1), ("b", 1), ("a", 2)]
    assert ran(spark, rows(["a"], 3)) == [("a", 3)]


def test_a_worker_that_knows_its_state_asks_spark_for_nothing_but_the_record(spark: StateInMemory) -> None:
    ran(spark, rows(["a", "b"]))
    spark.asked = []
    ran(spark, rows(["b", "a"], 2))
    assert spark.asked == [[RECORD_KEY]]


def test_a_new_worker_reads_what_the_old_one_wrote(spark: StateInMemory) -> None:
    ran(spark, rows(["a", "b", "a"]))
    group_run._kept.clear()
    assert ran(spark, rows(["a", "b"], 3)) == [("a", 3), ("b", 2)]


def test_a_new_worker_reads_no_more_than_it_needs(spark: StateInMemory) -> None:
    ran(spark, rows(["a", "b", "c", "d"]))
    group_run._kept.clear()
    spark.asked, spark.read_whole = [], []

    ran(spark, rows(["a", "b"], 4))

    assert spark.asked == [[RECORD_KEY], [STORE_PREFIX + b"a", STORE_PREFIX + b"b"]]
    assert spark.read_whole == []


def test_a_batch_that_spark_gave_up_leaves_no_trace(spark: StateInMemory) -> None:
    ran(spark, rows(["a"]))
    before = dict(spark.entries)
    ran(spark, rows(["a", "a"], 1))
    spark.entries = before

    assert ran(spark, rows(["a", "a"], 1)) == [("a", 2), ("a", 3)]


def test_rows_are_taken_in_order_however_they_lie(spark: StateInMemory) -> None:
    shuffled = bundled(from_topic(["a", "b", "a", "c", "b"]).take([4, 0, 3, 1, 2]))
    assert ran(spark, shuffled) == [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("b", 2)]


def test_batches_and_workers_cut_anywhere_give_the_same(spark: StateInMemory) -> None:
    dice = random.Random(5)
    keys = [dice.choice("abcdef") for _ in range(200)]
    whole = ran(spark, rows(keys))
    spark.entries.clear()
    found, at = [], 0
    while at < len(keys):
        size = dice.randint(1, 30)
        found += ran(spark, rows(keys[at : at + size], at))
        if dice.random() < 0.4:
            group_run._kept.clear()
        at += size
    assert found == whole


def test_rows_of_other_stages_pass_by(spark: StateInMemory) -> None:
    foreign = pack_rows(1, {"slot": SLOT, "input": 99, "offset": 0, "bundle": [b"for another"]}, BUNDLES)
    (passed, *_) = GroupRun(WORK, SLOT, spark).run(Table([foreign]))
    assert passed.column("input").to_pylist() == [99]
    assert passed.column("bundle").to_pylist() == [b"for another"]


class Watching:
    """Tells the time of day with each record, and what has become of it."""

    ended: ClassVar[list[int]] = []

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        if record.key == "bad":
            raise ValueError(record.key)
        self.context.forward(record.with_value(self.context.current_system_time_ms()))

    def close(self) -> None:
        self.ended.append(id(self))


def watching() -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed.with_(TEXT, TEXT)).process(Watching)
    stream.to("out", Produced.with_(TEXT, LongSerde()))
    return builder.build()


WATCHING_PLAN = Plan.of(watching(), {"in": 1}, 1)
WATCHING = work_of(WATCHING_PLAN, WATCHING_PLAN.stages[0], TaskSettings())


def tick(now_ms: int) -> pa.RecordBatch:
    return pack_rows(1, {"slot": SLOT, "input": TICK, "offset": [now_ms]}, BUNDLES)


def test_records_of_a_batch_see_its_own_time_of_day_also_when_it_is_repeated_by_another_worker(
    spark: StateInMemory,
) -> None:
    assert ran(spark, rows(["a"]), tick(1000), work=WATCHING) == [("a", 1000)]
    before = dict(spark.entries)
    assert ran(spark, rows(["b"], 1), tick(2000), work=WATCHING) == [("b", 2000)]
    spark.entries = before
    group_run._kept.clear()
    assert ran(spark, rows(["b"], 1), tick(2000), work=WATCHING) == [("b", 2000)]


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    ended: list[int] = []
    monkeypatch.setattr(Watching, "ended", ended)
    return ended


def test_processors_live_from_batch_to_batch_and_are_closed_when_others_take_their_place(
    spark: StateInMemory, ended: list[int]
) -> None:
    ran(spark, rows(["a"]), work=WATCHING)
    ran(spark, rows(["b"], 1), work=WATCHING)
    assert ended == []
    spark.entries.clear()
    ran(spark, rows(["a"]), work=WATCHING)
    assert len(ended) == 1


def test_processors_of_a_batch_that_fails_are_closed(spark: StateInMemory, ended: list[int]) -> None:
    with pytest.raises(ProcessingError):
        ran(spark, rows(["bad"]), work=WATCHING)
    assert len(ended) == 1


def test_processors_that_are_idle_for_long_are_closed(
    spark: StateInMemory, ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(spark, rows(["a"]), work=WATCHING)
    monkeypatch.setattr(group_run, "_IDLE_S", -1)
    ran(spark, rows(["a"]))
    assert len(ended) == 1
