"""Records in bundles: small ones, whatever the records are, and what comes out is what went in."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.pipeline.spark.rows import (
    BUNDLE_BYTES,
    BUNDLES,
    FINISHED,
    FROM_SOURCES,
    MIXED,
    RECORD,
    Table,
    bundles,
    open_bundles,
    pack_rows,
)

METADATA_BYTES = 4_096


def finished(values: list[bytes | None]) -> pa.RecordBatch:
    return pack_rows(len(values), {"output": 0, "value": values, "timestamp": list(range(len(values)))}, FINISHED)


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=50)), min_size=1))
def test_records_come_out_of_their_bundles_as_they_went_in(values: list[bytes | None]) -> None:
    records = finished(values)
    assert pa.Table.from_batches(open_bundles(bundles(records), FINISHED)) == pa.Table.from_batches([records])


def test_many_records_make_many_bundles_none_of_them_large() -> None:
    cells = bundles(finished([b"v" * 100] * 100_000))
    assert max(map(len, cells)) < BUNDLE_BYTES + METADATA_BYTES
    assert len(cells) < 1_000


def test_a_large_record_has_a_bundle_of_its_own() -> None:
    cells = bundles(finished([b"v" * 1_000_000] * 3))
    assert [batch.num_rows for batch in open_bundles(cells, FINISHED)] == [1, 1, 1]


def test_no_record_makes_no_bundle() -> None:
    assert bundles(finished([])) == []


def test_records_from_topics_and_from_bundles_meet_in_one_table() -> None:
    inside = pack_rows(1, {"input": 3, "target": 1, "lane": 0, "partition": 2, "offset": 7, "key": [b"in"]}, RECORD)
    places = {"slot": 5, "input": [0, 3], "partition": [1, None], "offset": [9, 0], "key": [b"out", None]}
    rows = pack_rows(2, {**places, "bundle": [None, *bundles(inside)]}, MIXED)
    found = Table([rows]).records()
    assert found.values("key") == [b"out", b"in"]
    assert found.numbers("target").tolist() == [1, 1]
    assert found.numbers("lane").tolist() == [0, 0]
    assert found.numbers("offset").tolist() == [9, 7]


def test_rows_without_bundles_are_records_already() -> None:
    rows = pack_rows(1, {"slot": 0, "input": 0, "partition": 0, "offset": 1, "key": [b"k"]}, FROM_SOURCES)
    assert Table([rows]).records().values("key") == [b"k"]


def test_bundles_that_nobody_here_wants_leave_no_records() -> None:
    assert Table([pack_rows(0, {}, BUNDLES)]).records().count == 0
