"""What Apache Kafka wrote: our dump tool says the same of it as theirs, and our log opens it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.oracle.conftest import KafkaWritten
from tests.oracle.dumping import assert_same_dump, log_files

from moldau.core.ids import TopicPartition
from moldau.log.cleaning.cleaning_job import CleanedGroup, CleaningJob, Source
from moldau.log.cleaning.segment_cleaner import clean
from moldau.log.config import LogConfig
from moldau.log.files import Files
from moldau.log.manager import LogManager
from moldau.log.partition_log import PartitionLog
from moldau.log.recovery.loading import open_log
from moldau.protocol.records import decode_records, split_batches

pytestmark = pytest.mark.java

Found = list[tuple[int, bytes | None, bytes | None]]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--print-data-log"],
        ["--deep-iteration", "--skip-record-metadata"],
        ["--verify-index-only"],
        ["--index-sanity-check"],
        ["--max-bytes", "3000"],
    ],
    ids=" ".join,
)
def test_both_tools_say_the_same(kafka_written: KafkaWritten, options: list[str]) -> None:
    files = [path for path in log_files(kafka_written.log_dir) if "__cluster_metadata" not in str(path)]
    assert {path.suffix for path in files} == {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    assert_same_dump(files, *options)


def test_both_tools_decode_cluster_metadata_alike(kafka_written: KafkaWritten) -> None:
    files = [*log_files(kafka_written.log_dir / "__cluster_metadata-0"), kafka_written.log_dir / "bootstrap.checkpoint"]
    shown = assert_same_dump(files, "--cluster-metadata-decoder")
    assert '"type":"TOPIC_RECORD"' in shown.out
    assert "LeaderChange: {" in shown.out
    assert "skipping" not in shown.out


def opened(path: Path, topic: str, config: LogConfig | None = None) -> PartitionLog:
    log = open_log(str(path / f"{topic}-0"), TopicPartition(topic, 0), config or LogConfig())
    assert log.offline_error is None
    return log


def contents(log: PartitionLog) -> Found:
    found: Found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, 10_000_000, log.log_end_offset)
        if part.length == 0:
            break
        for header, batch in split_batches(Files().pread(part.file.fileno(), part.length, part.position)):
            if not header.is_control:
                found += [(header.base_offset + r.offset_delta, r.key, r.value) for r in decode_records(batch, header)]
            offset = header.last_offset + 1
    return found


@pytest.fixture
def copy(kafka_written: KafkaWritten, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kafka_written.log_dir, tmp_path / "data"))


def test_a_clean_directory_opens_without_reading_it_through(kafka_written: KafkaWritten, copy: Path) -> None:
    logs = LogManager([str(copy)])
    logs.open()
    plain = logs.get(TopicPartition("plain", 0))
    assert plain is not None
    assert [(key, value) for _, key, value in contents(plain)] == kafka_written.sent["plain"]
    assert plain.log_end_offset == plain.high_watermark == len(kafka_written.sent["plain"])
    assert plain.topic_id is not None
    logs.close()


def test_a_directory_that_was_not_closed_is_recovered(kafka_written: KafkaWritten, copy: Path) -> None:
    plain = opened(copy, "plain")
    assert [(key, value) for _, key, value in contents(plain)] == kafka_written.sent["plain"]
    assert plain.recovery_point == 0


def test_transactions_are_known_as_kafka_knew_them(kafka_written: KafkaWritten, copy: Path) -> None:
    before = {int(path.stem): path.read_bytes() for path in (copy / "transactions-0").glob("*.txnindex")}
    log = opened(copy, "transactions")
    log.high_watermark = log.log_end_offset
    aborted = log.aborted_transactions(0, log.log_end_offset)
    hidden = {offset for entry in aborted for offset in range(entry.first_offset, entry.last_offset)}
    assert hidden == kafka_written.aborted
    assert log.last_stable_offset == log.log_end_offset
    rebuilt = {segment.base_offset: bytes(segment.txn_index.entries) for segment in log.segments}
    assert {base: entries for base, entries in rebuilt.items() if entries} == before


def test_indexes_rebuilt_by_us_are_those_kafka_kept(copy: Path) -> None:
    directory = copy / "plain-0"
    names = [f"{0:020d}.index", f"{0:020d}.timeindex"]
    before = [(directory / name).read_bytes() for name in names]
    for name in names:
        (directory / name).unlink()
    log = opened(copy, "plain", LogConfig(index_interval_bytes=100))
    log.close()
    assert [(directory / name).read_bytes() for name in names] == before


def test_a_cleaned_log_reads_as_kafka_left_it(kafka_written: KafkaWritten, copy: Path) -> None:
    sent = kafka_written.sent["compacted"]
    newest = {key: offset for offset, (key, _) in enumerate(sent[:44])}
    expected = [(offset, *sent[offset]) for offset in sorted(newest.values())]
    found = contents(opened(copy, "compacted"))
    assert [record for record in found if record[0] < 44] == expected


def test_our_cleaner_leaves_what_kafkas_left(kafka_written: KafkaWritten, tmp_path: Path) -> None:
    """Kafka keeps the originals for a minute under another name: both start from the same bytes."""
    theirs = kafka_written.log_dir / "compacted-0"
    ours = tmp_path / "compacted-0"
    ours.mkdir()
    originals = sorted(theirs.glob("*.log.deleted"), key=lambda path: path.name)
    taken: list[Path] = []
    for path in originals:
        target = ours / path.name.removesuffix(".deleted")
        shutil.copyfile(path, target)
        taken.append(target)
    assert len(taken) > 1
    job = CleaningJob(
        directory=str(ours),
        sources=tuple(Source(int(path.name.split(".")[0]), path.stat().st_size) for path in taken),
        first_dirty_offset=0,
        upper_bound=44,
        now_ms=1_800_000_000_000,
    )
    groups: list[CleanedGroup] = []
    clean(job, groups.append)
    cleaned = b"".join(path.read_bytes() for path in sorted(ours.glob("*.log.cleaned")))
    kept = b"".join(path.read_bytes() for path in sorted(theirs.glob("*.log")) if int(path.stem) < 44)
    assert _told(cleaned) == _told(kept)


def _told(data: bytes) -> list[object]:
    """Each batch without what depends on the time of cleaning."""
    return [
        (
            header.base_offset,
            header.last_offset,
            header.attributes,
            header.max_timestamp,
            header.producer_id,
            header.partition_leader_epoch,
            [
                (r.offset_delta, header.base_timestamp + r.timestamp_delta, r.key, r.value, r.headers)
                for r in decode_records(batch, header)
            ],
        )
        for header, batch in split_batches(data)
    ]
