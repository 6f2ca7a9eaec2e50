"""The manifest as text, and what it finds missing: pure, by the hundred."""

from __future__ import annotations

import random
import string
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.core.ids import TopicPartition
from moldau.log.directories.manifest import (
    Manifest,
    PartitionEntry,
    SegmentEntry,
    TxnMark,
    loss,
    parse_manifest,
    render_manifest,
)

TP = TopicPartition("orders", 0)
MARKS = st.one_of(st.none(), st.just(TxnMark()), st.builds(TxnMark, st.integers(1, 1000), st.integers(0, 2**32 - 1)))
SEGMENTS = st.lists(
    st.tuples(st.integers(1, 500), st.one_of(st.none(), st.integers(0, 10_000)), MARKS), min_size=1, max_size=6
)
NAMES = st.text(string.ascii_letters + "._-", min_size=1, max_size=20)


def entry(*segments: SegmentEntry, end_offset: int = 100, topic_id: uuid.UUID | None = None) -> PartitionEntry:
    return PartitionEntry(topic_id, end_offset, segments)


@st.composite
def entries(draw: st.DrawFn) -> PartitionEntry:
    base, found = 0, []
    for length, size, mark in draw(SEGMENTS):
        found.append(SegmentEntry(base, size, None if size is None else mark))
        base += length
    return PartitionEntry(draw(st.one_of(st.none(), st.uuids())), base, tuple(found))


def text_of(partitions: dict[TopicPartition, PartitionEntry], *, is_stopped: bool = True) -> str:
    lines = [one.render(partition) for partition, one in partitions.items()]
    return render_manifest(lines, is_stopped=is_stopped, metadata_epoch=7, metadata_end_offset=1234)


def sizes(one: PartitionEntry) -> dict[int, int]:
    return {segment.base_offset: segment.size or 0 for segment in one.segments}


# --- text -------------------------------------------------------------------------------------------


@given(st.dictionaries(st.builds(TopicPartition, NAMES, st.integers(0, 99)), entries(), max_size=5), st.booleans())
def test_what_is_rendered_is_read_again(partitions: dict[TopicPartition, PartitionEntry], is_stopped: bool) -> None:
    found = parse_manifest(text_of(partitions, is_stopped=is_stopped))
    assert found == Manifest(is_stopped, 7, 1234, partitions)


@settings(max_examples=300)
@given(entries(), st.randoms(use_true_random=False))
def test_no_flipped_bit_changes_what_is_asked_for(one: PartitionEntry, chance: random.Random) -> None:
    """A damaged line is left out, a damaged frame is an error; nothing else comes out."""
    partitions = {TP: one, TopicPartition("other", 3): one}
    content = bytearray(text_of(partitions).encode())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    try:
        found = parse_manifest(content.decode())
    except ValueError:
        return
    assert (found.metadata_epoch, found.metadata_end_offset) == (7, 1234)
    assert all(partitions[partition] == read for partition, read in found.partitions.items())


@pytest.mark.parametrize("text", ["", "moldau-manifest 1", "moldau-manifest 2\nbroker\nend\n", "nonsense\n" * 5])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"manifest|checksum"):
        parse_manifest(text)


def test_a_manifest_cut_short_is_refused() -> None:
    text = text_of({TP: entry(SegmentEntry(0, 5))})
    for size in range(len(text) - 1):
        with pytest.raises(ValueError, match=r"."):
            parse_manifest(text[:size])


def test_a_line_that_was_taken_out_asks_for_nothing() -> None:
    text = text_of({TP: entry(SegmentEntry(0, 5)), TopicPartition("other", 1): entry(SegmentEntry(0, 6))})
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("orders 0 ")) + "\n"
    assert list(parse_manifest(kept).partitions) == [TopicPartition("other", 1)]


def test_an_epoch_of_another_broker_puts_the_manifest_out_of_date() -> None:
    manifest = Manifest(metadata_epoch=7)
    assert [manifest.is_outdated(epoch) for epoch in (0, 6, 7, 8)] == [False, False, False, True]


# --- findings ---------------------------------------------------------------------------------------


@given(entries(), st.booleans())
def test_all_there_is_no_loss(one: PartitionEntry, is_exact: bool) -> None:
    found = sizes(one)
    assert loss(one, found, is_exact=is_exact) is None
    assert loss(one, found | {one.end_offset: 77}, is_exact=is_exact) is None, "newer segments are nobody's business"


@settings(max_examples=300)
@given(entries(), st.data())
def test_each_missing_or_shorter_segment_is_found(one: PartitionEntry, data: st.DataObject) -> None:
    victim = data.draw(st.sampled_from(one.segments))
    found = sizes(one)
    del found[victim.base_offset]
    if victim.size != 0:
        assert f"{victim.base_offset:020d}.log" in str(loss(one, found))
    if victim.size:
        found[victim.base_offset] = data.draw(st.integers(0, victim.size - 1))
        assert f"{found[victim.base_offset]} bytes, but had {victim.size}" in str(loss(one, found))


@given(entries(), st.data())
def test_segments_below_the_log_start_are_not_asked_for(one: PartitionEntry, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(one.segments)))
    start = one.segments[count].base_offset if count < len(one.segments) else one.end_offset
    found = {base: size for base, size in sizes(one).items() if base >= start}
    assert loss(one, found, log_start_offset=start) is None


@pytest.mark.parametrize(
    ("found", "is_exact", "words"),
    [
        ({0: 10, 50: 20}, True, None),
        ({0: 10, 50: 25}, False, None),
        ({0: 10, 50: 25}, True, "00000000000000000050.log has 25 bytes, but had 20"),
        ({0: 10, 50: 19}, False, "00000000000000000050.log has 19 bytes, but had 20"),
        ({0: 10}, False, "00000000000000000050.log with offsets 50 to 99 is missing"),
        ({50: 20}, False, "00000000000000000000.log with offsets 0 to 49 is missing"),
        ({}, True, "00000000000000000000.log with offsets 0 to 49 is missing"),
    ],
)
def test_what_is_found_is_told(found: dict[int, int], is_exact: bool, words: str | None) -> None:
    assert loss(entry(SegmentEntry(0, 10), SegmentEntry(50, 20)), found, is_exact=is_exact) == words


def test_an_empty_segment_may_be_missing() -> None:
    assert loss(entry(SegmentEntry(0, 10), SegmentEntry(100, 0)), {0: 10}, is_exact=True) is None
