"""Compaction against a plain model, for random logs, codecs, transactions and rounds."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.compaction_model import START_MS, Model, World, batches_on_disk, on_disk, segment_bases, swap

from moldau.log.cleaning.cleaning_job import CleanedGroup, CleaningJob
from moldau.log.cleaning.segment_cleaner import clean
from moldau.protocol.record_batch import DELETE_HORIZON_BIT
from moldau.protocol.records import ControlType, control_type, crc_of

DELETE_RETENTION_MS = 1_000

KEYS = st.sampled_from([b"", b"a", b"b", b"c", b"a key of more than sixteen bytes", None])
VALUES = st.one_of(st.none(), st.binary(max_size=20))
RECORDS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5)
APPEND = st.tuples(st.just("append"), RECORDS, st.integers(0, 4), st.integers(0, 2))
IN_TRANSACTION = st.tuples(st.just("transaction"), RECORDS, st.integers(0, 4), st.integers(1, 3))
END = st.tuples(st.just("end"), st.integers(1, 3), st.booleans())
ROLL = st.tuples(st.just("roll"))
STEPS = st.lists(st.one_of(APPEND, IN_TRANSACTION, END, ROLL), min_size=1, max_size=25)


def write(world: World, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    for step in steps:
        match step:
            case ("append", records, codec, gaps):
                world.append(records, codec=codec, gaps=gaps)
            case ("transaction", records, codec, producer_id):
                world.append(records, codec=codec, producer_id=producer_id)
            case ("end", producer_id, commit):
                world.end_transaction(producer_id, commit=commit)
            case ("roll",):
                world.roll()
    world.roll()


def run(world: World, job: CleaningJob) -> int:
    """One round with its swaps; returns where it ended."""
    groups: list[CleanedGroup] = []
    result = clean(CleaningJob.from_json(job.to_json()), groups.append)
    for group in groups:
        assert CleanedGroup(**group_fields(group)) == group
        if not group.is_unchanged:
            swap(world.directory, group.base_offsets)
    assert not list(world.directory.glob("*.cleaned"))
    return result.end_offset


def group_fields(group: CleanedGroup) -> dict[str, object]:
    return {name: getattr(group, name) for name in CleanedGroup.__slots__}


def check_shape(world: World) -> None:
    """What holds for every batch, whatever was removed from it."""
    previous_end = -1
    for header, batch in batches_on_disk(world.directory):
        original = world.headers_by_base[header.base_offset]
        assert crc_of(batch) == header.crc
        assert header.base_offset > previous_end
        assert header.last_offset == original.last_offset
        assert header[10:12] == original[10:12]  # producer epoch and sequence
        assert (header.producer_id, header.partition_leader_epoch) == (original.producer_id, 3)
        if header.records_count:
            assert header.attributes | DELETE_HORIZON_BIT == original.attributes | DELETE_HORIZON_BIT
        previous_end = header.last_offset


def check_markers(world: World, end_offset: int) -> None:
    """While a batch of a transaction is left, so is the marker that decides it."""
    left = batches_on_disk(world.directory)
    markers = {(h.producer_id, h.base_offset) for h, _ in left if h.is_control and h.records_count}
    for header, _ in left:
        if header.is_transactional and not header.is_control and header.last_offset < end_offset:
            following = [
                base
                for base, original in world.headers_by_base.items()
                if original.is_control and original.producer_id == header.producer_id and base > header.base_offset
            ]
            if following:
                assert (header.producer_id, min(following)) in markers


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, packed=st.booleans(), buffer=st.integers(1, 12), data=st.data())
def test_rounds_of_cleaning_leave_what_the_model_leaves(
    steps: list[tuple],  # type: ignore[type-arg]
    packed: bool,
    buffer: int,
    data: st.DataObject,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        write(world, steps)
        if not segment_bases(world.directory):
            return
        model, first_dirty, now_ms = Model(world), 0, START_MS + 100_000
        for _ in range(3):
            upper = data.draw(st.integers(first_dirty, world.stable_offset))
            job = world.job(
                first_dirty_offset=first_dirty,
                upper_bound=upper,
                now_ms=now_ms,
                delete_retention_ms=DELETE_RETENTION_MS,
                dedupe_buffer_bytes=buffer * 24 if packed else 10_000_000,
                segment_bytes=data.draw(st.sampled_from([1, 300, 100_000])),
            )
            end_offset = run(world, job)
            assert first_dirty <= end_offset <= upper
            model.clean(end_offset=end_offset, now_ms=now_ms, delete_retention_ms=DELETE_RETENTION_MS)
            assert [record for record in on_disk(world.directory) if not record.is_control] == model.data
            check_shape(world)
            check_markers(world, end_offset)
            first_dirty, now_ms = end_offset, now_ms + data.draw(st.sampled_from([1, 999, 1_000, 5_000]))


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_markers_of_vanished_transactions_go_in_the_end(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        write(world, steps)
        for producer_id in list(world.open_since):
            world.end_transaction(producer_id, commit=False)
        for key in (b"", b"a", b"b", b"c", b"a key of more than sixteen bytes"):
            world.append([(key, b"last")])
        world.append([(b"after", b"all")])
        world.roll()
        upper = world.next_offset
        for round_number in range(4):
            job = world.job(
                first_dirty_offset=0 if round_number == 0 else upper,
                upper_bound=upper,
                now_ms=START_MS + round_number * 10_000,
                delete_retention_ms=DELETE_RETENTION_MS,
            )
            assert run(world, job) == upper
        left = on_disk(world.directory)
        assert not any(record.is_control for record in left), [
            ControlType(control_type(record.key)) for record in left if record.is_control
        ]
        assert [record.value for record in left] == [b"last"] * 5 + [b"all"]
