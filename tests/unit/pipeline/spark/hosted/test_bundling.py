"""Records of topics on their way into a stage with state: one row for many, each with its task, all in order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row

from moldau.pipeline.spark.hosted.bundling import bundled_records, row_objects, table_of
from moldau.pipeline.spark.rows import BUNDLES, FROM_SOURCES, Table, pack_rows


def records(slots: list[int]) -> Table:
    count = len(slots)
    columns = {
        "slot": slots,
        "input": [slot % 3 for slot in slots],
        "partition": slots,
        "offset": list(range(count)),
        "timestamp": list(range(count)),
        "key": [b"%d" % number for number in range(count)],
    }
    (batch,) = bundled_records(iter([pack_rows(0, {}, FROM_SOURCES), pack_rows(count, columns, FROM_SOURCES)]))
    return Table([batch])


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=200))
def test_every_record_is_in_a_bundle_for_its_own_task_and_keeps_its_place(slots: list[int]) -> None:
    table = records(slots)
    for slot in set(slots):
        offsets = table.where(table.numbers("slot") == slot).records().numbers("offset").tolist()
        assert offsets == [offset for offset, of in enumerate(slots) if of == slot]


def test_many_records_are_few_rows() -> None:
    assert records([1] * 1000).count < 10


def test_a_record_knows_where_it_comes_from() -> None:
    (record,) = records([4]).records().as_records()
    found = record.to_pylist()[0]
    assert (found["input"], found["target"], found["lane"], found["partition"]) == (1, 4, 1, 4)
    assert found["clock"] is None


def test_spark_gets_rows_and_gives_them_back() -> None:
    batch = pack_rows(2, {"slot": 3, "input": -1, "offset": [5, 6], "bundle": [None, b"b"]}, BUNDLES)
    objects = list(row_objects(batch))
    assert objects == [Row(slot=3, input=-1, offset=5, bundle=None), Row(slot=3, input=-1, offset=6, bundle=b"b")]
    assert table_of(objects).bundles() == [batch]


def test_a_group_without_rows_is_an_empty_table() -> None:
    assert table_of([]).count == 0
