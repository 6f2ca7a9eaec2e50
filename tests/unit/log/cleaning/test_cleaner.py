"""The cleaner over real partitions: what it picks, swaps, remembers and refuses."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.core.ids import TopicPartition
from moldau.log.cleaning.cleaner import Cleaner, CleanerSettings
from moldau.log.cleaning.cleaner_worker import CleanerWorker
from moldau.log.cleaning.cleaning_job import CleanedGroup, CleaningJob, CleaningResult
from moldau.log.cleaning.segment_cleaner import clean
from moldau.log.config import LogConfig
from moldau.log.directories.checkpoints import CLEANER_OFFSETS, load_checkpoint
from moldau.log.errors import CleaningFailedError
from moldau.log.files import Files
from moldau.log.partition_log import PartitionLog
from moldau.log.recovery.loading import create_log, open_log
from moldau.protocol.record_batch import TRANSACTIONAL_BIT, BatchHeader
from moldau.protocol.records import (
    ControlType,
    InvalidRecordError,
    Record,
    decode_records,
    encode_batch,
    end_transaction_marker,
    split_batches,
)
from moldau.testing.clock import ManualClock

PARTITION = TopicPartition("users", 0)
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01, file_delete_delay_ms=1_000)


class InlineWorker(CleanerWorker):
    """Does the work here and now, through the same messages."""

    def run(self, job: CleaningJob, on_group: Callable[[CleanedGroup], None]) -> CleaningResult:
        try:
            return clean(CleaningJob.from_json(job.to_json()), on_group)
        except InvalidRecordError as error:
            raise CleaningFailedError("damaged", str(error)) from error


class Partition:
    """A log with a clock and words for what a producer does."""

    def __init__(self, directory: Path, config: LogConfig = COMPACTED, partition: TopicPartition = PARTITION) -> None:
        self.clock = ManualClock()
        path = directory / str(partition)
        self.log: PartitionLog = create_log(str(path), partition, config, clock=self.clock)

    def put(self, *records: tuple[bytes, bytes | None], producer: tuple[int, int] = (-1, -1), codec: int = 0) -> None:
        batch = encode_batch(
            [Record(index, 0, key, value) for index, (key, value) in enumerate(records)],
            base_timestamp=self.clock.now_ms(),
            codec=codec,
            attributes=TRANSACTIONAL_BIT if producer[0] >= 0 else 0,
            producer_id=producer[0],
            producer_epoch=0 if producer[0] >= 0 else -1,
            base_sequence=producer[1],
        )
        self._append(batch)

    def end_transaction(self, producer_id: int, kind: ControlType) -> None:
        self._append(
            end_transaction_marker(
                kind, timestamp=self.clock.now_ms(), producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
            )
        )

    def roll(self) -> None:
        self.log.roll(self.clock.now_ms())

    def _append(self, batch: bytes) -> None:
        self.log.append(bytearray(batch), BatchHeader.at(batch), 0, self.clock.now_ms())
        self.log.high_watermark = self.log.log_end_offset


def contents(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Every data record a consumer could read, with its offset."""
    found, offset = [], log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, 1_000_000, log.log_end_offset)
        if part.length == 0:
            break
        for header, batch in split_batches(Files().pread(part.file.fileno(), part.length, part.position)):
            if not header.is_control:
                for record in decode_records(batch, header):
                    found.append((header.base_offset + record.offset_delta, record.key, record.value))
            offset = header.last_offset + 1
    return found


def cleaner_of(*partitions: Partition, **options: object) -> Cleaner:
    chosen = {"make_worker": InlineWorker, **options}
    return Cleaner(lambda: [each.log for each in partitions], clock=partitions[0].clock, **chosen)  # type: ignore[arg-type]


def clean_once(cleaner: Cleaner, partition: Partition) -> bool:
    return cleaner.run_once(partition.clock.now_ms())


def test_the_newest_value_of_each_key_stays_with_its_offset(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    for value in (b"1", b"2", b"3"):
        users.put((b"a", value), (b"b", value))
        users.roll()
    users.put((b"a", b"4"))
    cleaner = cleaner_of(users)
    assert clean_once(cleaner, users)
    assert contents(users.log) == [(4, b"a", b"3"), (5, b"b", b"3"), (6, b"a", b"4")]
    assert not clean_once(cleaner, users)


def test_the_active_segment_is_left_alone(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    users.put((b"a", b"1"))
    users.put((b"a", b"2"))
    assert not clean_once(cleaner_of(users), users)
    assert len(contents(users.log)) == 2


def test_records_above_the_high_watermark_are_left_alone(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    users.put((b"a", b"1"))
    users.put((b"a", b"2"))
    users.put((b"a", b"3"))
    users.roll()
    users.log.high_watermark = 2
    assert clean_once(cleaner_of(users), users)
    assert contents(users.log) == [(1, b"a", b"2"), (2, b"a", b"3")]


def test_the_checkpoint_tells_the_next_broker_where_to_go_on(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    users.put((b"a", b"1"))
    users.roll()
    clean_once(cleaner_of(users), users)
    assert load_checkpoint(Files(), str(tmp_path / CLEANER_OFFSETS)) == {PARTITION: 1}
    assert not clean_once(cleaner_of(users), users)


def test_partitions_that_are_gone_leave_the_checkpoint(tmp_path: Path) -> None:
    (tmp_path / CLEANER_OFFSETS).write_text("0\n1\ngone 3 77\n")
    users = Partition(tmp_path)
    users.put((b"a", b"1"))
    users.roll()
    clean_once(cleaner_of(users), users)
    assert load_checkpoint(Files(), str(tmp_path / CLEANER_OFFSETS)) == {PARTITION: 1}


def test_a_topic_made_anew_inherits_nothing_from_its_namesake(tmp_path: Path) -> None:
    current: list[Partition] = []
    cleaner = Cleaner(lambda: [each.log for each in current], make_worker=InlineWorker)
    for _ in range(2):
        shutil.rmtree(tmp_path / "users-0", ignore_errors=True)
        users = Partition(tmp_path)
        current[:] = [users]
        for value in (b"1", b"2", b"3"):
            users.put((b"a", value))
        users.roll()
        assert clean_once(cleaner, users)
        assert contents(users.log) == [(2, b"a", b"3")]


def test_a_partition_made_anew_is_no_longer_uncleanable(tmp_path: Path) -> None:
    first, second = Partition(tmp_path / "a"), Partition(tmp_path / "b")
    current = [first]
    cleaner = Cleaner(lambda: [each.log for each in current], make_worker=InlineWorker, clock=first.clock)
    assert not clean_once(cleaner, first)
    cleaner.uncleanable[PARTITION] = "a reason"
    current[0] = second
    assert not clean_once(cleaner, second)
    assert cleaner.uncleanable == {}


def test_tombstones_stay_visible_until_their_horizon(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    users.put((b"a", b"1"))
    users.put((b"a", None))
    users.roll()
    cleaner = cleaner_of(users)
    clean_once(cleaner, users)
    assert contents(users.log) == [(1, b"a", None)]
    users.clock.advance(COMPACTED.delete_retention_ms)
    users.put((b"b", b"1"))
    users.roll()
    clean_once(cleaner, users)
    assert contents(users.log) == [(2, b"b", b"1")]


def test_aborted_records_go_and_committed_ones_stay(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    users.put((b"a", b"committed"), producer=(1, 0))
    users.end_transaction(1, ControlType.COMMIT)
    users.put((b"a", b"aborted"), producer=(1, 1))
    users.end_transaction(1, ControlType.ABORT)
    users.put((b"b", b"open"), producer=(2, 0))
    users.roll()
    clean_once(cleaner_of(users), users)
    assert contents(users.log) == [(0, b"a", b"committed"), (4, b"b", b"open")]


def test_a_producer_is_still_recognised_after_its_records_are_gone(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    users.put((b"a", b"1"), producer=(7, 0))
    users.end_transaction(7, ControlType.COMMIT)
    users.put((b"a", b"2"))
    users.roll()
    clean_once(cleaner_of(users), users)
    assert contents(users.log) == [(2, b"a", b"2")]
    users.log.abandon()
    for snapshot in Path(users.log.directory).glob("*.snapshot"):
        snapshot.unlink()
    again = open_log(users.log.directory, PARTITION, COMPACTED)
    state = again.producers.get(7)
    assert state is not None
    assert (state.last_sequence, state.last_offset) == (0, 0)


def test_the_filthiest_of_several_logs_comes_first(tmp_path: Path) -> None:
    tidy = Partition(tmp_path, partition=TopicPartition("tidy", 0))
    filthy = Partition(tmp_path, partition=TopicPartition("filthy", 0))
    for partition in (tidy, filthy):
        partition.put((b"a", b"x" * 500))
        partition.roll()
    cleaner = cleaner_of(tidy, filthy)
    clean_once(cleaner, tidy)
    clean_once(cleaner, tidy)
    tidy.put((b"a", b"1"))
    tidy.roll()
    filthy.put((b"a", b"y" * 5_000))
    filthy.roll()
    before = dict(cleaner.last_rounds)
    clean_once(cleaner, tidy)
    assert [each for each in cleaner.last_rounds if cleaner.last_rounds[each] is not before[each]] == [
        TopicPartition("filthy", 0)
    ]


@pytest.mark.parametrize(("position", "words"), [(65, "fails its CRC"), (70, "or later")])
def test_a_damaged_segment_makes_the_partition_uncleanable(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, position: int, words: str
) -> None:
    users = Partition(tmp_path)
    users.put((b"a", b"1"))
    users.put((b"a", b"2"))
    users.roll()
    with (tmp_path / "users-0" / f"{0:020d}.log").open("r+b") as file:
        file.seek(position)
        file.write(b"\xff")
    cleaner = cleaner_of(users)
    assert not clean_once(cleaner, users)
    assert words in cleaner.uncleanable[PARTITION]
    assert "users-0: marked uncleanable" in caplog.text
    assert cleaner.uncleanable_partitions_count(str(tmp_path)) == 1
    assert cleaner.uncleanable_bytes(str(tmp_path)) == users.log.segments[0].size
    assert not list((tmp_path / "users-0").glob("*.cleaned"))
    assert not clean_once(cleaner, users)


def test_segments_that_retention_took_meanwhile_are_no_failure(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    for value in (b"1", b"2"):
        users.put((b"a", value))
        users.roll()

    def delete_first(job: Callable[[], None]) -> None:
        users.log.delete_segments(1, users.clock.now_ms())
        job()

    cleaner = cleaner_of(users, hand_over=delete_first)
    assert not clean_once(cleaner, users)
    assert cleaner.uncleanable == {}
    assert contents(users.log) == [(1, b"a", b"2")]


def test_a_reader_in_the_middle_of_a_swapped_segment_reads_on(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    users.put((b"a", b"1"))
    users.put((b"a", b"2"))
    users.roll()
    part = users.log.read(0, 1_000_000, users.log.log_end_offset)
    clean_once(cleaner_of(users), users)
    users.clock.advance(10_000)
    users.log.delete_retired(users.clock.now_ms())
    data = Files().pread(part.file.fileno(), part.length, part.position)
    assert [header.base_offset for header, _ in split_batches(data)] == [0, 1]


def test_a_small_buffer_takes_several_rounds(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    for number in range(40):
        users.put((b"%d" % (number % 20), b"%d" % number))
    users.roll()
    cleaner = cleaner_of(users, settings=lambda: CleanerSettings(dedupe_buffer_size=24 * 8))
    rounds = 0
    while clean_once(cleaner, users):
        rounds += 1
    assert rounds > 2
    assert [offset for offset, _, _ in contents(users.log)] == list(range(20, 40))
    assert cleaner.max_buffer_utilization_percent > 0


def test_a_log_with_other_policies_is_not_cleaned(tmp_path: Path) -> None:
    users = Partition(tmp_path, LogConfig(min_cleanable_dirty_ratio=0.0))
    users.put((b"a", b"1"))
    users.put((b"a", b"2"))
    users.roll()
    assert not clean_once(cleaner_of(users), users)


def test_metrics_tell_of_the_last_round(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    users.put((b"a", b"1"))
    users.put((b"a", b"2"))
    users.roll()
    cleaner = cleaner_of(users)
    clean_once(cleaner, users)
    assert cleaner.max_dirty_percent == 100
    done = cleaner.last_rounds[PARTITION]
    assert done.bytes_read == 2 * 2 * done.bytes_written
    assert cleaner.cleaner_recopy_percent == 25
    assert cleaner.time_since_last_run_ms(users.clock.now_ms() + 5) == 5
    assert cleaner.dead_thread_count == 0


def test_the_cleaner_works_in_a_process_of_its_own_until_stopped(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    for value in (b"1", b"2"):
        users.put((b"a", value), codec=4)
        users.roll()
    swapped = threading.Event()

    def hand_over(job: Callable[[], None]) -> None:
        job()
        swapped.set()

    cleaner = cleaner_of(users, hand_over=hand_over, make_worker=CleanerWorker)
    cleaner.start()
    try:
        assert swapped.wait(30)
    finally:
        cleaner.stop()
    assert contents(users.log) == [(1, b"a", b"2")]


def test_stopping_gives_up_a_round_at_once(tmp_path: Path) -> None:
    users = Partition(tmp_path)
    users.put(*((b"%d" % number, b"x" * 100) for number in range(500)))
    users.roll()
    worker, is_asked = CleanerWorker(), threading.Event()

    def make_worker() -> CleanerWorker:
        is_asked.set()
        return worker

    cleaner = cleaner_of(users, settings=lambda: CleanerSettings(io_max_bytes_per_second=1.0), make_worker=make_worker)
    cleaner.start()
    assert is_asked.wait(30)
    cleaner.stop()
    assert not worker.is_running
    assert len(contents(users.log)) == 500
    assert cleaner.uncleanable == {}
    assert not list((tmp_path / "users-0").glob("*.cleaned"))
