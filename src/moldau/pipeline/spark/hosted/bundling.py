"""Packs the records that enter a stage with state into bundles, before Spark shuffles them.

Spark passes rows to a `transformWithState` processor one by one, as Python objects: 10 µs each. A row that is a bundle
of hundreds of records costs the same, and Spark shuffles and sorts hundreds of times fewer rows. Start at
`bundled_records`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row

from moldau.pipeline.spark.hosted.task_rows import addressed
from moldau.pipeline.spark.rows import BUNDLES, Table, pack_rows

__all__ = ["bundled_records", "row_objects", "table_of"]

_ROW = Row(*BUNDLES.names)


def bundled_records(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Records with schema `FROM_SOURCES` as rows with schema `BUNDLES`; a function for `mapInArrow`."""
    for batch in batches:
        if batch.num_rows:
            table = Table([batch])
            (records,) = table.as_records()
            yield addressed(records, table.numbers("slot"), table.numbers("input"))


def table_of(rows: Iterable[Any]) -> Table:
    """The rows of one group, as Spark passes them: tuples with the columns of `BUNDLES`."""
    columns = list(zip(*rows, strict=True))
    count = len(columns[0]) if columns else 0
    return Table([pack_rows(count, dict(zip(BUNDLES.names, columns, strict=False)), BUNDLES)])


def row_objects(batch: pa.RecordBatch) -> Iterator[Any]:
    """Bundles as the objects that Spark expects from a processor."""
    return map(_ROW, *(column.to_pylist() for column in batch.columns))
