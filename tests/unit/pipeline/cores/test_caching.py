"""Caching: between two commits only the last change of each key is told, with the value told before as the old one."""

from __future__ import annotations

from tests.unit.pipeline.cores.piped_tables import JSON, Build, Pipe

from moldau.pipeline.cores.processors import ProcessorContext, RecordMetadata
from moldau.pipeline.cores.records import InputRecord, Record
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stores.backends import MemoryBackend
from moldau.pipeline.cores.task import Task
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.windows import SessionWindows, TimeWindows


class Batches:
    """The first task of a pipeline, committed only when asked to."""

    def __init__(self, build: Build, *, cache_max_bytes: int = 1000) -> None:
        (sub_topology,) = Pipe(build).topology.subtopologies
        self.source = sub_topology.inputs[0].name
        self.backends: dict[str, MemoryBackend] = {}
        self.task = Task(
            sub_topology,
            partition=0,
            partition_counts={},
            backends=lambda name: self.backends.setdefault(name, MemoryBackend()),
            settings=TaskSettings(cache_max_bytes=cache_max_bytes),
        )

    def feed(self, *records: tuple[str, object, int]) -> list[tuple[str, object, int]]:
        rows = [
            InputRecord("in", 0, 0, timestamp, (), key.encode(), None if value is None else JSON.serialize("", value))
            for key, value, timestamp in records
        ]
        self.task.process_batch(self.source, rows)
        self.task.commit()
        return [
            (str(key, "utf-8"), None if value is None else JSON.deserialize("", value), timestamp)
            for _, _, key, value, timestamp, _, _ in self.task.drain()
            if key is not None
        ]


def test_only_the_last_change_of_a_key_is_told() -> None:
    batches = Batches(lambda stream: stream.group_by_key().count())

    assert batches.feed(("a", 1, 1), ("b", 1, 2), ("a", 1, 3), ("a", 1, 2)) == [("b", 1, 2), ("a", 3, 3)]
    assert batches.feed(("a", 1, 4)) == [("a", 4, 4)]
    assert batches.feed() == []


def test_a_change_out_of_the_cache_is_told_as_if_its_record_were_at_hand() -> None:
    seen: list[RecordMetadata | None] = []

    class Watcher:
        def init(self, context: ProcessorContext) -> None:
            self.context = context

        def process(self, record: Record) -> None:
            seen.append(self.context.record_metadata())

    batches = Batches(lambda stream: stream.group_by_key().count().to_stream().process(Watcher))
    rows = [InputRecord("in", 0, offset, 1, (), key, b"1") for offset, key in enumerate((b"a", b"b", b"a"))]
    batches.task.process_batch(batches.source, rows)
    assert seen == []
    batches.task.commit()

    assert seen == [RecordMetadata("in", 0, 1), RecordMetadata("in", 0, 2)]
    assert batches.task.context.current is None


def test_without_a_cache_every_change_is_told() -> None:
    batches = Batches(lambda stream: stream.group_by_key().count(), cache_max_bytes=0)

    assert len(batches.feed(("a", 1, 1), ("a", 1, 2))) == 2


def test_a_store_may_refuse_to_cache() -> None:
    uncached = Materialized.as_("counts").with_caching_disabled()
    batches = Batches(lambda stream: stream.group_by_key().count(uncached))

    assert len(batches.feed(("a", 1, 1), ("a", 1, 2))) == 2


def test_a_row_that_came_and_went_between_two_commits_is_not_told() -> None:
    batches = Batches(lambda stream: stream.to_table(Materialized.as_("rows")))

    assert batches.feed(("a", 1, 1), ("a", None, 2)) == []
    assert batches.feed(("a", 1, 3)) == [("a", 1, 3)]
    assert batches.feed(("a", 2, 4), ("a", None, 5)) == [("a", None, 5)]


def test_the_old_value_is_the_one_of_the_last_commit() -> None:
    batches = Batches(lambda stream: stream.group_by_key().count().filter(lambda key, count: count == 2))

    assert batches.feed(("a", 1, 1), ("a", 1, 2)) == [("a", 2, 2)]
    assert batches.feed(("a", 1, 3), ("a", 1, 4)) == [("a", None, 4)]
    assert batches.feed(("a", 1, 5), ("a", 1, 6)) == []


def test_windows_are_cached_one_by_one() -> None:
    windows = TimeWindows.of_size_with_no_grace(10).advance_by(5)
    batches = Batches(lambda stream: stream.group_by_key().windowed_by(windows).count())

    assert batches.feed(("a", 1, 6), ("a", 1, 7)) == [("a@0-10", 2, 7), ("a@5-15", 2, 7)]


def test_sessions_that_merged_between_two_commits_leave_no_tombstones() -> None:
    windows = SessionWindows.of_inactivity_gap_and_grace(10, 100)
    batches = Batches(lambda stream: stream.group_by_key().windowed_by(windows).count())

    assert batches.feed(("a", 1, 1), ("a", 1, 9)) == [("a@1-9", 2, 9)]
    assert batches.feed(("a", 1, 15)) == [("a@1-9", None, 9), ("a@1-15", 3, 15)]
