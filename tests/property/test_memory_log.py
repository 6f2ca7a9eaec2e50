"""The simulation's log in memory does what the log on disk does, through appends, cuts, syncs and power losses."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.batches import TP, append, batches_of

from moldau.log.config import LogConfig
from moldau.log.recovery.loading import create_log, open_log
from moldau.testing.power_loss import ForgetfulFiles
from moldau.testing.simulation.memory_log import MemoryLog

FRACTION = st.floats(0, 1)
APPEND = st.tuples(st.just("append"), st.integers(1, 3), st.booleans())
STEP = st.one_of(
    APPEND,
    APPEND,
    st.tuples(st.just("flush")),
    st.tuples(st.just("truncate"), FRACTION),
    st.tuples(st.just("start"), st.integers(0, 5)),
    st.tuples(st.just("crash")),
)


class Entry(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    value: bytes


class Twins:
    """Both logs, which go through the same steps."""

    def __init__(self, root: str, segment_bytes: int) -> None:
        self.directory = str(Path(root) / str(TP))
        self.config = LogConfig(segment_bytes=segment_bytes)
        self.files = ForgetfulFiles(root)
        self.real = create_log(self.directory, TP, self.config, files=self.files)
        self.real.flush()
        self.memory: MemoryLog[Entry] = MemoryLog()
        self.epoch = self.written = 0

    def append(self, count: int, is_new_epoch: bool) -> None:
        self.epoch += is_new_epoch
        self.written += 1
        value = b"%d" % self.written
        base_offset = append(self.real, count=count, epoch=self.epoch, value=value)
        self.memory.append(Entry(base_offset, base_offset + count - 1, self.epoch, value))

    def flush(self) -> None:
        self.real.flush()
        self.memory.flush()

    def truncate(self, fraction: float) -> None:
        bounds = [entry.base_offset for entry in self.memory.entries]
        if bounds:
            offset = bounds[int(fraction * (len(bounds) - 1))]
            self.real.truncate_to(offset)
            self.memory.truncate_to(offset)

    def start(self, gap: int) -> None:
        """As a snapshot does, which is synced with the new begin of the log."""
        offset = self.memory.end_offset + gap
        self.real.truncate_fully_and_start_at(offset)
        self.real.flush()
        self.files.sync_directory(self.directory)
        self.memory.start_at(offset)

    def crash(self) -> None:
        self.real.abandon()
        self.files.lose_power()
        self.real = open_log(self.directory, TP, self.config, files=self.files)
        self.memory.lose_power()

    def check(self) -> None:
        real, memory = self.real, self.memory
        assert real.offline_error is None
        assert (real.log_start_offset, real.log_end_offset) == (memory.start_offset, memory.end_offset)
        found = [
            (header.base_offset, header.last_offset, header.partition_leader_epoch) for header, _ in batches_of(real)
        ]
        assert found == [entry[:3] for entry in memory.entries]
        assert real.leader_epochs.entries == memory.epochs
        for entry, (_, batch) in zip(memory.entries, batches_of(real), strict=True):
            assert entry.value in batch

    def close(self) -> None:
        self.real.abandon()
        self.files.close()


@settings(max_examples=120, deadline=None)
@given(st.lists(STEP, max_size=25), st.sampled_from([200, 1 << 20]))
def test_memory_and_disk_agree(steps: list[tuple[object, ...]], segment_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        twins = Twins(root, segment_bytes)
        try:
            for name, *arguments in steps:
                getattr(twins, str(name))(*arguments)
                twins.check()
        finally:
            twins.close()


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(1, 8), st.integers(0, 8), st.booleans())
def test_what_a_disk_may_have_done_lies_between_synced_and_written(
    seed: int, synced: int, unsynced: int, is_cut: bool
) -> None:
    log: MemoryLog[Entry] = MemoryLog()
    before = [Entry(offset, offset, 1, b"") for offset in range(synced)]
    for entry in before:
        log.append(entry)
    log.flush()
    if is_cut:
        log.truncate_to(synced // 2)
    for offset in range(log.end_offset, log.end_offset + unsynced):
        log.append(Entry(offset, offset, 2, b""))
    written = list(log.entries)
    log.lose_power(Random(seed))
    kept = synced // 2 if is_cut else synced
    is_old = log.entries == before
    assert is_old or (log.entries == written[: len(log.entries)] and len(log.entries) >= kept)
    assert log.end_offset == (log.entries[-1].last_offset + 1 if log.entries else 0)
