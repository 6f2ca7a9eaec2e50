"""A partition's log against a list in memory, through any sequence of appends, cuts and restarts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.batches import NOW_MS, append, base_offsets, data_batch, new_log, reopened

from moldau.log.partition_log import LogEvents
from moldau.log.recovery.loading import LastRun

STAMPS = st.lists(st.integers(0, 300), min_size=1, max_size=4)
FRACTION = st.floats(0, 1)
STEP = st.one_of(
    st.tuples(st.just("append"), STAMPS, st.sampled_from([-1, -1, 7, 8])),
    st.tuples(st.just("append"), STAMPS, st.sampled_from([-1, -1, 7, 8])),
    st.tuples(st.just("append"), STAMPS, st.sampled_from([-1, -1, 7, 8])),
    st.tuples(st.just("roll")),
    st.tuples(st.just("epoch")),
    st.tuples(st.just("flush")),
    st.tuples(st.just("save")),
    st.tuples(st.just("truncate"), FRACTION),
    st.tuples(st.just("start"), FRACTION),
    st.tuples(st.just("delete"), FRACTION),
    st.tuples(st.just("reopen"), st.booleans()),
    st.tuples(st.just("lose indexes")),
    st.tuples(st.just("close files")),
)
SETTINGS = st.fixed_dictionaries(
    {
        "segment_bytes": st.sampled_from([100, 400, 10_000]),
        "index_interval_bytes": st.sampled_from([0, 100, 1000]),
        "segment_index_bytes": st.sampled_from([48, 10_000]),
        "segment_ms": st.sampled_from([100, 10_000]),
    }
)


class Appended(NamedTuple):
    base_offset: int
    timestamps: list[int]
    epoch: int
    producer_id: int
    sequence: int

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.timestamps)


class World:
    """The log and the list, which go through the same steps."""

    def __init__(self, directory: str, config: dict[str, int], late: bool) -> None:
        self.log = new_log(Path(directory), **config)
        self.late = late
        self.batches: list[Appended] = []
        self.start = self.epoch = 0
        self._settle()

    def _settle(self) -> None:
        if self.late:
            self.log.events = LogEvents(on_roll=lambda log, segment: None)

    @property
    def end(self) -> int:
        return self.log.log_end_offset

    def sequence(self, producer_id: int) -> int:
        own = [batch for batch in self.batches if batch.producer_id == producer_id]
        return own[-1].sequence + len(own[-1].timestamps) if own else 0

    def append(self, timestamps: list[int], producer_id: int) -> None:
        stamps = [NOW_MS + stamp for stamp in timestamps]
        sequence = self.sequence(producer_id)
        batch = data_batch(timestamps=stamps, producer_id=producer_id, sequence=sequence)
        expected = self.end
        assert append(self.log, batch, epoch=self.epoch) == expected
        self.batches.append(Appended(expected, stamps, self.epoch, producer_id, sequence))

    def truncate(self, fraction: float) -> None:
        bases = [batch.base_offset for batch in self.batches if batch.base_offset >= self.start] + [self.end]
        offset = bases[int(fraction * (len(bases) - 1))]
        self.log.truncate_to(offset)
        self.batches = [batch for batch in self.batches if batch.end_offset <= offset]

    def advance(self, fraction: float) -> None:
        offset = self.start + int(fraction * (self.end - self.start))
        self.log.advance_log_start(offset)
        self.start = offset

    def delete(self, fraction: float) -> None:
        self.log.delete_segments(int(fraction * (len(self.log.segments) - 1)), NOW_MS)
        first = self.log.segments[0].base_offset
        self.batches = [batch for batch in self.batches if batch.base_offset >= first]
        self.start = max(self.start, first)

    def reopen(self, is_clean: bool) -> None:
        if is_clean:
            self.log.close()
        last_run = LastRun(is_clean, self.log.recovery_point, self.log.log_start_offset, self.log.high_watermark)
        self.log = reopened(self.log, last_run)
        self._settle()

    def lose_indexes(self) -> None:
        self.log.close()
        for file in Path(self.log.directory).glob("*index"):
            file.unlink()
        last_run = LastRun(True, self.log.recovery_point, self.log.log_start_offset, self.log.high_watermark)
        self.log = reopened(self.log, last_run)
        self._settle()

    def step(self, name: str, *arguments: Any) -> None:
        steps: dict[str, Callable[..., Any]] = {
            "append": self.append,
            "roll": self.log.roll,
            "epoch": self.next_epoch,
            "flush": self.log.flush,
            "save": self.log.save,
            "truncate": self.truncate,
            "start": self.advance,
            "delete": self.delete,
            "reopen": self.reopen,
            "lose indexes": self.lose_indexes,
            "close files": self.log.close_files,
        }
        steps[name](*arguments)

    def next_epoch(self) -> None:
        self.epoch += 1
        self.log.begin_leader_epoch(self.epoch)

    # --- what must hold ---------------------------------------------------------------------------------

    def check(self) -> None:
        assert (self.log.log_start_offset, self.log.high_watermark) == (self.start, self.end)
        visible = [batch.base_offset for batch in self.batches if batch.end_offset > self.start]
        for max_bytes in (1, 250, 100_000):
            assert base_offsets(self.log, max_bytes=max_bytes) == visible
        for producer_id in (7, 8):
            state = self.log.producers.get(producer_id)
            if any(batch.producer_id == producer_id for batch in self.batches):
                assert state is not None
                assert state.next_sequence == self.sequence(producer_id)

    def check_times(self) -> None:
        records = [
            (stamp, batch.base_offset + index, batch.epoch)
            for batch in self.batches
            for index, stamp in enumerate(batch.timestamps)
            if batch.base_offset + index >= self.start
        ]
        for target in range(NOW_MS - 1, NOW_MS + 302, 13):
            expected = next((record for record in records if record[0] >= target), None)
            assert self.log.offset_for_timestamp(target) == expected

    def check_epochs(self) -> None:
        for batch in self.batches:
            if batch.end_offset > self.start:
                assert self.log.leader_epochs.epoch_of(max(batch.base_offset, self.start)) == batch.epoch


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(STEP, min_size=1, max_size=30), config=SETTINGS, late=st.booleans())
def test_the_log_is_the_list_it_was_given(steps: list[tuple[Any, ...]], config: dict[str, int], late: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        world = World(directory, config, late)
        for step in steps:
            world.step(*step)
            world.check()
        world.check_times()
        world.check_epochs()
        world.log.abandon()


@settings(max_examples=60, deadline=None)
@given(
    cut=st.integers(0, 10_000),
    rubbish=st.binary(max_size=200),
    batches=st.lists(STAMPS, min_size=1, max_size=12),
)
def test_a_file_cut_anywhere_keeps_its_whole_batches(cut: int, rubbish: bytes, batches: list[list[int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        world = World(directory, {"segment_bytes": 10_000}, late=True)
        ends = []
        for stamps in batches:
            world.append(stamps, -1)
            ends.append(world.log.segments[0].size)
        world.log.abandon()
        path = Path(world.log.directory) / f"{0:020d}.log"
        data = path.read_bytes()[:cut]
        path.write_bytes(data + rubbish)
        world.reopen(False)
        kept = sum(1 for end in ends if end <= len(data))
        # Rubbish that happens to continue the file as it was may complete a batch; nothing else can.
        assert kept <= len(base_offsets(world.log)) <= len(batches)
        assert world.log.segments[0].size == path.stat().st_size
        assert append(world.log) == world.end - 1
        world.log.abandon()


def test_a_log_that_lost_a_batch_would_be_noticed() -> None:
    with tempfile.TemporaryDirectory() as directory:
        world = World(directory, {"segment_bytes": 400}, late=False)
        for _ in range(5):
            world.append([1, 2], 7)
        world.check()
        world.log.truncate_to(8)
        with pytest.raises(AssertionError):
            world.check()
        world.log.abandon()
