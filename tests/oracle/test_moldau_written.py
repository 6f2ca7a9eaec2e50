"""What moldau wrote: Apache Kafka's dump tool reads every file of it without complaint, and says what ours says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.oracle.apache_kafka import needs_apache_kafka
from tests.oracle.dumping import EXTENSIONS, Dumped, assert_same_dump, log_files

from moldau.core.ids import TopicPartition
from moldau.log.cleaning.cleaner import Cleaner
from moldau.log.config import LogConfig
from moldau.log.manager import LogManager
from moldau.log.partition_log import PartitionLog
from moldau.protocol.record_batch import LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, BatchHeader
from moldau.protocol.records import ControlType, Record, encode_batch, end_transaction_marker
from moldau.testing.clock import ManualClock

pytestmark = pytest.mark.java

CONFIGS = {
    "plain": LogConfig(index_interval_bytes=200, segment_bytes=4_000),
    "transactions": LogConfig(index_interval_bytes=100, segment_bytes=1_000),
    "compacted": LogConfig(
        index_interval_bytes=200,
        segment_bytes=2_000,
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.01,
        file_delete_delay_ms=0,
    ),
    "empty": LogConfig(),
}


class Written:
    """A log directory full of partitions, closed in order."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = ManualClock()
        self.logs = LogManager([str(directory)], clock=self.clock, config_of=CONFIGS.__getitem__)
        self.logs.open()
        for topic in CONFIGS:
            self.logs.create(TopicPartition(topic, 0))
        self.write_plain(self.log("plain"))
        self.write_transactions(self.log("transactions"))
        self.write_compacted(self.log("compacted"))
        self.logs.delete_retired(self.clock.now_ms() + 1)
        self.logs.close()

    def log(self, topic: str) -> PartitionLog:
        log = self.logs.get(TopicPartition(topic, 0))
        assert log is not None
        return log

    def append(self, log: PartitionLog, batch: bytes, leader_epoch: int = 0) -> None:
        log.append(bytearray(batch), BatchHeader.at(batch), leader_epoch, self.clock.now_ms())
        log.high_watermark = log.log_end_offset

    def write_plain(self, log: PartitionLog) -> None:
        for number in range(60):
            self.clock.advance(1_000 if number % 7 else -500)
            records = [
                Record(0, 0, None, f"Wert {number} äß".encode(), (("h1", b"x"), ("h2", None))),
                Record(1, 7, b"key", b"x" * (number * 5)),
                Record(2, -3, b"", None),
            ]
            batch = encode_batch(
                records,
                base_timestamp=self.clock.now_ms(),
                codec=number % 5,
                attributes=LOG_APPEND_TIME_BIT if number % 4 == 0 else 0,
                producer_id=number % 3 if number % 2 else -1,
                producer_epoch=number // 30 if number % 2 else -1,
                base_sequence=number * 3 if number % 2 else -1,
            )
            self.append(log, batch, leader_epoch=number // 20)

    def write_transactions(self, log: PartitionLog) -> None:
        for number in range(20):
            self.clock.advance(10)
            producer_id = number % 3
            batch = encode_batch(
                [Record(0, 0, b"k%d" % (number % 4), b"v%d" % number), Record(1, 0, b"other", b"w")],
                base_timestamp=self.clock.now_ms(),
                attributes=TRANSACTIONAL_BIT,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=number // 3 * 2,
            )
            self.append(log, batch)
            if number % 3 == 2:
                kind = ControlType.COMMIT if number % 2 else ControlType.ABORT
                for ending in range(2):
                    marker = end_transaction_marker(
                        kind,
                        timestamp=self.clock.now_ms(),
                        producer_id=ending,
                        producer_epoch=0,
                        coordinator_epoch=number,
                    )
                    self.append(log, marker)

    def write_compacted(self, log: PartitionLog) -> None:
        for number in range(50):
            self.clock.advance(1_000)
            records = [
                Record(0, 0, b"k%d" % (number % 5), b"%d" % number),
                Record(1, 1, b"only-%d" % number, b"x" * 20),
                Record(2, 2, b"gone", None if number % 2 else b"%d" % number),
            ]
            self.append(log, encode_batch(records, base_timestamp=self.clock.now_ms(), codec=number % 5))
        log.roll(self.clock.now_ms())
        cleaner = Cleaner(lambda: [log], clock=self.clock)
        assert cleaner.run_once(self.clock.now_ms())
        cleaner.release_worker()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_apache_kafka()
    return Written(tmp_path_factory.mktemp("moldau")).directory


def complaints(shown: Dumped) -> list[str]:
    """All but the gaps that compaction leaves, and those Kafka's tool sees before any segment but the first."""
    return [line for line in shown.err.splitlines() if "onsecutive" not in line and " is followed by " not in line]


@pytest.mark.parametrize("topic", list(CONFIGS))
def test_every_file_is_read_without_complaint(written: Path, topic: str) -> None:
    files = log_files(written / f"{topic}-0")
    expected = {".log", ".index", ".timeindex"} | ({".snapshot"} if topic in ("plain", "transactions") else set())
    assert {path.suffix for path in files} >= expected
    shown = assert_same_dump(files, "--print-data-log")
    assert complaints(shown) == []
    assert "isvalid: false" not in shown.out
    assert "invalid bytes" not in shown.out


def test_segments_have_no_gaps_before_compaction(written: Path) -> None:
    """Kafka's tool reports a gap before each segment's first record; within a segment there must be none."""
    shown = assert_same_dump(log_files(written / "plain-0", [".log"]), "--deep-iteration")
    gaps = [line for line in shown.err.splitlines() if " is followed by " in line]
    assert all(line.startswith("  -1 is followed by ") for line in gaps)


def test_indexes_pass_the_check_of_a_starting_broker(written: Path) -> None:
    files = log_files(written, [".index", ".timeindex"])
    shown = assert_same_dump(files, "--index-sanity-check")
    assert all(
        "passed sanity check" in line or "is empty" in line or "Dumping" in line for line in shown.out.splitlines()
    )


def test_aborted_transactions_are_indexed(written: Path) -> None:
    shown = assert_same_dump(log_files(written / "transactions-0", [".txnindex"]))
    assert "version: 0 producerId: 0 firstOffset: " in shown.out


def test_producer_snapshots_are_read(written: Path) -> None:
    shown = assert_same_dump(log_files(written, [".snapshot"]))
    assert "producerId: 2 " in shown.out
    assert "currentTxnFirstOffset: OptionalLong[" in shown.out


def test_cleaned_batches_carry_their_delete_horizon(written: Path) -> None:
    shown = assert_same_dump(log_files(written / "compacted-0", [".log"]))
    assert "deleteHorizonMs: OptionalLong[" in shown.out


def test_checkpoints_are_in_kafkas_format(written: Path) -> None:
    """Kafka's tool has no words for them; its broker's reader wants exactly this."""
    for path in [written / "plain-0" / "leader-epoch-checkpoint", written / "recovery-point-offset-checkpoint"]:
        version, count, *entries = path.read_text().splitlines()
        assert version == "0"
        assert int(count) == len(entries) > 0
    assert (written / "plain-0" / "leader-epoch-checkpoint").read_text() == "0\n3\n0 0\n1 60\n2 120\n"
    assert set(EXTENSIONS) >= {path.suffix for path in log_files(written)}
