"""Log files with damage anywhere: the dump and the cleaner name it, and never fall over it."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.core.errors import MoldauError
from moldau.log.cleaning.cleaning_job import CleaningJob, Source
from moldau.log.cleaning.segment_cleaner import clean
from moldau.log.dump.dump import DumpOptions, Problems, dump_file
from moldau.log.dump.dump_batches import RecordText, plain_text
from moldau.log.dump.dump_metadata import metadata_text
from moldau.protocol.metadata_records import ConfigRecord, TopicRecord, encode_metadata_record
from moldau.protocol.record_batch import TRANSACTIONAL_BIT
from moldau.protocol.records import ControlType, Record, control_batch, crc_of, encode_batch, end_transaction_marker

NOW_MS = 1_700_000_000_000


def whole_log() -> bytes:
    """Every kind of batch there is, one after the other."""
    values = [
        encode_metadata_record(TopicRecord(name="orders", topic_id=None)),
        encode_metadata_record(ConfigRecord(resource_type=2, resource_name="a", name="b", value=None)),
    ]
    batches = [
        encode_batch(
            [Record(i, i, b"key-%d" % i, value) for i, value in enumerate(values)], base_timestamp=NOW_MS, codec=c
        )
        for c in range(5)
    ]
    batches += [
        encode_batch(
            [Record(0, 0, None, b"x" * 200, (("h", b"v"), ("n", None)))],
            base_timestamp=NOW_MS,
            attributes=TRANSACTIONAL_BIT,
            producer_id=4,
            producer_epoch=0,
            base_sequence=7,
        ),
        end_transaction_marker(
            ControlType.ABORT, timestamp=NOW_MS, producer_id=4, producer_epoch=0, coordinator_epoch=1
        ),
        control_batch(ControlType.SNAPSHOT_HEADER, b"\0\0" + bytes(8) + b"\0", timestamp=NOW_MS),
        control_batch(ControlType.LEADER_CHANGE, b"\0\0\0\0\0\1\1\1\0", timestamp=NOW_MS),
        control_batch(ControlType.KRAFT_VOTERS, b"\0\0\1\0", timestamp=NOW_MS),
    ]
    return b"".join(batches)


WHOLE = whole_log()
CHANGES = st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=4)


@settings(max_examples=300, deadline=None)
@given(changes=CHANGES, end=st.integers(0, len(WHOLE)), mends_crc=st.booleans())
def test_any_damage_to_a_segment_is_an_error_with_words(
    changes: list[tuple[int, int]], end: int, mends_crc: bool
) -> None:
    data = damaged(changes, end, mends_crc)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{0:020d}.log"
        path.write_bytes(data)
        for text_of in (plain_text, metadata_text):
            dump(path, text_of)
        clean_quietly(path)


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from([".index", ".timeindex", ".txnindex", ".snapshot"]), data=st.binary(max_size=80))
def test_any_bytes_in_an_index_are_an_error_with_words(name: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{0:020d}.log").write_bytes(WHOLE)
        path = Path(folder) / f"{0:020d}{name}"
        path.write_bytes(data)
        dump(path, plain_text)


@settings(max_examples=100, deadline=None)
@given(
    name=st.sampled_from(["leader-epoch-checkpoint", "cleaner-offset-checkpoint", "bootstrap.checkpoint"]),
    data=st.one_of(st.binary(max_size=60), st.text("0123456789 \nab-", max_size=40).map(str.encode)),
)
def test_any_bytes_in_a_checkpoint_are_an_error_with_words(name: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        dump(path, plain_text)


def damaged(changes: list[tuple[int, int]], end: int, mends_crc: bool) -> bytes:
    data = bytearray(WHOLE)
    for position, value in changes:
        data[position] = value
    if mends_crc:
        mend(data)
    return bytes(data[:end])


def mend(data: bytearray) -> None:
    """Make the checksums right again, so that damage gets past them."""
    position = 0
    while position + 61 <= len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big", signed=True) + 12
        if size < 61 or position + size > len(data):
            return
        data[position + 17 : position + 21] = crc_of(data[position : position + size]).to_bytes(4, "big")
        position += size


def dump(path: Path, text_of: RecordText) -> None:
    problems = Problems()
    for options in (
        DumpOptions(is_deep=True, prints_data=True, text_of=text_of),
        DumpOptions(checks_sanity_only=True),
    ):
        with contextlib.suppress(MoldauError):
            list(dump_file(str(path), options, problems))
    assert all(isinstance(line, str) for line in problems.lines())


def clean_quietly(path: Path) -> None:
    job = CleaningJob(
        directory=str(path.parent),
        sources=(Source(0, path.stat().st_size),),
        first_dirty_offset=0,
        upper_bound=100,
        now_ms=NOW_MS,
    )
    with contextlib.suppress(MoldauError):
        clean(job, lambda group: None)
