"""The dump's words, and what it says of files that do not fit together."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from moldau.log.dump.dump import DumpError, DumpOptions, Problems, dump_file
from moldau.protocol.metadata_records import TopicRecord, encode_metadata_record
from moldau.protocol.record_batch import TRANSACTIONAL_BIT
from moldau.protocol.records import ControlType, Record, control_batch, encode_batch, end_transaction_marker

NOW_MS = 1_700_000_000_000
DEEP = DumpOptions(is_deep=True, prints_data=True)


def batch(base_offset: int, *values: bytes | None, codec: int = 0) -> bytes:
    records = [Record(delta, delta, b"k", value) for delta, value in enumerate(values)]
    return encode_batch(records, base_offset=base_offset, base_timestamp=NOW_MS, codec=codec, partition_leader_epoch=4)


def lines(path: Path, options: DumpOptions = DumpOptions()) -> tuple[list[str], list[str]]:  # noqa: B008
    """What goes to stdout, and what to stderr."""
    notes: list[str] = []
    problems = Problems(on_note=notes.append)
    shown = list(dump_file(str(path), options, problems))
    return shown, [*notes, *problems.lines()]


def segment(directory: Path, *batches: bytes, base_offset: int = 0) -> Path:
    path = directory / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


def test_a_batch_is_one_line_in_kafkas_words(tmp_path: Path) -> None:
    data = batch(0, b"hello", codec=4)
    shown, problems = lines(segment(tmp_path, data))
    crc = struct.unpack_from(">I", data, 17)[0]
    assert shown == [
        "Log starting offset: 0",
        "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
        "partitionLeaderEpoch: 4 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
        f"position: 0 CreateTime: {NOW_MS} size: {len(data)} magic: 2 compresscodec: zstd crc: {crc} isvalid: true",
    ]
    assert problems == []


def test_records_show_keys_and_payloads(tmp_path: Path) -> None:
    shown, _ = lines(segment(tmp_path, batch(0, b"hello", None)), DEEP)
    assert shown[2:] == [
        f"| offset: 0 CreateTime: {NOW_MS} keySize: 1 valueSize: 5 sequence: -1 headerKeys: [] key: k payload: hello",
        f"| offset: 1 CreateTime: {NOW_MS + 1} keySize: 1 valueSize: -1 sequence: -1 headerKeys: [] key: k",
    ]


def test_metadata_of_records_can_be_left_out(tmp_path: Path) -> None:
    options = DumpOptions(is_deep=True, prints_data=True, skips_record_metadata=True)
    marker = end_transaction_marker(
        ControlType.COMMIT, timestamp=NOW_MS, producer_id=1, producer_epoch=0, coordinator_epoch=0
    )
    shown, _ = lines(segment(tmp_path, batch(0, b"hello"), marker), options)
    assert [line for line in shown if not line.startswith(("baseOffset", "Log"))] == ["| key: k payload: hello", ""]


def test_a_transaction_marker_tells_how_it_ended(tmp_path: Path) -> None:
    marker = end_transaction_marker(
        ControlType.ABORT, timestamp=NOW_MS, producer_id=7, producer_epoch=1, coordinator_epoch=3
    )
    shown, _ = lines(segment(tmp_path, marker), DumpOptions(is_deep=True))
    assert shown[2].endswith(
        "keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: 3"
    )


def test_sequences_count_with_the_records(tmp_path: Path) -> None:
    records = [Record(0, 0, None, b"a"), Record(1, 0, None, b"b")]
    data = encode_batch(
        records,
        base_timestamp=NOW_MS,
        producer_id=5,
        producer_epoch=0,
        base_sequence=2**31 - 1,
        attributes=TRANSACTIONAL_BIT,
    )
    shown, _ = lines(segment(tmp_path, data), DEEP)
    assert "baseSequence: 2147483647 lastSequence: 0 producerId: 5" in shown[1]
    assert [line.split("sequence: ")[1].split()[0] for line in shown[2:]] == ["2147483647", "0"]


def test_a_flipped_byte_makes_the_batch_invalid(tmp_path: Path) -> None:
    data = bytearray(batch(0, b"hello"))
    data[-2] ^= 1
    shown, _ = lines(segment(tmp_path, bytes(data)))
    assert shown[1].endswith("isvalid: false")


def test_bytes_after_the_last_whole_batch_are_counted(tmp_path: Path) -> None:
    path = segment(tmp_path, batch(0, b"hello"), batch(1, b"world")[:-3])
    shown, _ = lines(path)
    assert shown[-1] == f"Found {len(batch(1, b'world')) - 3} invalid bytes at the end of {path.name}"
    assert lines(path, DumpOptions(max_bytes=90))[0][-1].startswith("baseOffset: 0")


def test_zeroes_where_a_batch_should_be_end_the_dump(tmp_path: Path) -> None:
    path = segment(tmp_path, batch(0, b"hello"), bytes(100))
    with pytest.raises(DumpError, match=r"Found record size 0 smaller than minimum record overhead \(14\)"):
        lines(path)


def test_gaps_between_offsets_are_told(tmp_path: Path) -> None:
    _, problems = lines(segment(tmp_path, batch(0, b"a"), batch(5, b"b")), DEEP)
    assert problems == [f"Non-consecutive offsets in {tmp_path}/{0:020d}.log", "  0 is followed by 5"]


def test_index_entries_are_held_against_the_log(tmp_path: Path) -> None:
    segment(tmp_path, batch(0, b"a"), batch(1, b"b"))
    path = tmp_path / f"{0:020d}.index"
    path.write_bytes(struct.pack(">iiii", 1, len(batch(0, b"a")), 0, 0))
    assert lines(path) == ([f"offset: 1 position: {len(batch(0, b'a'))}"], [])
    path.write_bytes(struct.pack(">ii", 7, 0))
    assert lines(path, DumpOptions(verifies_only=True)) == (
        [],
        [f"Mismatches in :{path}", "  Index offset: 7, log offset: 0"],
    )


def test_an_index_beyond_the_log_cannot_be_followed(tmp_path: Path) -> None:
    segment(tmp_path, batch(0, b"a"))
    path = tmp_path / f"{0:020d}.index"
    path.write_bytes(struct.pack(">ii", 7, 5_000))
    with pytest.raises(DumpError, match="no whole batch"):
        lines(path)


def test_an_empty_index_is_called_so(tmp_path: Path) -> None:
    segment(tmp_path)
    path = tmp_path / f"{0:020d}.index"
    path.write_bytes(b"")
    assert lines(path)[0] == [f"{path} is empty."]


def test_an_index_without_its_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.index"
    path.write_bytes(bytes(8))
    with pytest.raises(DumpError, match=r"\.log is missing"):
        lines(path)


def test_sanity_checks_look_at_sizes_and_order(tmp_path: Path) -> None:
    segment(tmp_path, batch(10, b"a"), base_offset=10)
    options = DumpOptions(checks_sanity_only=True)
    index, times = tmp_path / f"{10:020d}.index", tmp_path / f"{10:020d}.timeindex"
    index.write_bytes(struct.pack(">ii", 0, 0))
    assert lines(index, options)[0] == [f"{index} passed sanity check."]
    index.write_bytes(struct.pack(">ii", -3, 0))
    with pytest.raises(DumpError, match="the last offset is 7 which is less than the base offset 10"):
        lines(index, options)
    index.write_bytes(bytes(9))
    with pytest.raises(DumpError, match="found 9 bytes which is neither positive nor a multiple of 8"):
        lines(index, options)
    times.write_bytes(struct.pack(">qiqi", 5, 0, 3, 1))
    with pytest.raises(DumpError, match="the last timestamp is 3 which is less than the first timestamp 5"):
        lines(times, options)


def test_time_index_entries_are_held_against_the_log(tmp_path: Path) -> None:
    segment(tmp_path, batch(0, b"a"), batch(1, b"b", b"c"))
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(struct.pack(">qiqiqi", NOW_MS, 0, NOW_MS + 9, 2, NOW_MS + 10, 1))
    shown, problems = lines(path)
    assert shown == [
        f"timestamp: {NOW_MS} offset: 0",
        f"timestamp: {NOW_MS + 9} offset: 2",
        f"timestamp: {NOW_MS + 10} offset: 1",
    ]
    assert problems == [
        f"Found timestamp mismatch in :{path}",
        f"  Index timestamp: {NOW_MS + 9}, log timestamp: {NOW_MS + 1}",
        "The following indexed offsets are not found in the log.",
        "Indexed offset: 1, found log offset: 2",
    ]


def test_a_damaged_snapshot_is_noted_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / f"{5:020d}.snapshot"
    path.write_bytes(struct.pack(">hIi", 1, 12345, 0))
    shown, problems = lines(path)
    assert shown == []
    assert problems[0].startswith("Snapshot is corrupt (CRC is no longer valid). Stored crc: 12345.")
    path.write_bytes(struct.pack(">hIi", 9, 0, 0))
    assert lines(path)[1] == ["Snapshot contained an unknown file version 9"]


def test_checkpoints_are_shown_line_by_line(tmp_path: Path) -> None:
    offsets, epochs = tmp_path / "recovery-point-offset-checkpoint", tmp_path / "leader-epoch-checkpoint"
    offsets.write_text("0\n1\na-b 3 77\n")
    epochs.write_text("0\n2\n0 0\n4 100\n")
    assert lines(offsets)[0] == ["topic: a-b partition: 3 offset: 77"]
    assert lines(epochs)[0] == ["epoch: 0 startOffset: 0", "epoch: 4 startOffset: 100"]
    epochs.write_text("0\n9\n0 0\n")
    with pytest.raises(DumpError, match="9 entries announced, 1 found"):
        lines(epochs)


def test_unknown_files_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    path.write_text("version: 0\n")
    assert lines(path) == ([], [f"Ignoring unknown file {path}"])


def test_metadata_records_come_as_json(tmp_path: Path) -> None:
    from moldau.log.dump.dump_metadata import metadata_text

    value = encode_metadata_record(TopicRecord(name="orders", topic_id=None))
    header = control_batch(ControlType.SNAPSHOT_HEADER, b"\0\0" + bytes(8) + b"\0", timestamp=NOW_MS)
    data = encode_batch([Record(0, 0, None, value), Record(1, 0, None, b"?")], base_offset=1, base_timestamp=NOW_MS)
    path = tmp_path / "00000000000000000005-0000000003.checkpoint"
    path.write_bytes(header + data)
    shown, _ = lines(path, DumpOptions(is_deep=True, prints_data=True, text_of=metadata_text))
    assert shown[0] == "Snapshot end offset: 5, epoch: 3"
    assert shown[2].endswith('SnapshotHeader {"version":0,"lastContainedLogTimestamp":0}')
    topic = '{"type":"TOPIC_RECORD","version":0,"data":{"name":"orders","topicId":"AAAAAAAAAAAAAAAAAAAAAA"}}'
    assert shown[4].endswith(f"headerKeys: [] payload: {topic}")
    assert "payload: Error at 2, skipping. " in shown[5]
