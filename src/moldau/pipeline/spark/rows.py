"""The rows that are passed between the stages of a query, and those that leave it.

Rows from topics are records, one column per field. The output of Python stages is *bundled*: one row holds hundreds of
records, for one task or for outside the topology, serialized by Arrow. Otherwise Spark would convert every record from
Arrow, shuffle and sort it and convert it back, which costs more than processing it in Python.

A record in a bundle carries its destination (`input`, and as `target` the task's partition) and its position in the
processing order (`lane`, `partition`, `offset`, `clock`, `path`; see `ordering`). A bundle of records that have left
the topology is *finished*: its `slot` is negative, its `input` is the stage it comes from, and its `offset` counts
within its task, so that the order can always be restored. Start at `RECORD`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from moldau.pipeline.spark.hosted.ordering import Lineage

__all__ = [
    "BUNDLES",
    "FINISHED",
    "FROM_SOURCES",
    "HEADERS_DDL",
    "LEAVING",
    "MIXED",
    "RECORD",
    "TICK",
    "TO_COUNT",
    "TO_FOLD",
    "Table",
    "binary_values",
    "bundles",
    "ddl",
    "header_tuples",
    "open_bundles",
    "pack_rows",
]

HEADERS_DDL = "array<struct<key:string,value:binary>>"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

RECORD = pa.schema(
    [
        ("input", pa.int32()),
        ("target", pa.int32()),
        ("lane", pa.int32()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("clock", pa.int64()),
        ("path", pa.binary()),
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS),
    ]
)
"""A record to be processed by a task, as stored in a bundle."""

FINISHED = pa.schema(
    [
        ("output", pa.int32()),
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", _HEADERS),
        ("partition", pa.int32()),
    ]
)
"""A record that has left the topology by an output, as stored in a bundle."""

FROM_SOURCES = pa.schema([("slot", pa.int32()), *(RECORD.field(name) for name in (
    "input", "partition", "offset", "timestamp", "topic", "key", "value", "headers"
))])  # fmt: skip
"""A record directly from a topic: other fields are derived from these columns, because every column costs time."""

BUNDLES = pa.schema([("slot", pa.int32()), ("input", pa.int32()), ("offset", pa.int64()), ("bundle", pa.binary())])
"""The rows that Python stages return."""

MIXED = pa.schema([*FROM_SOURCES, BUNDLES.field("bundle")])
"""The input of a stage that reads topics as well as other stages."""

LEAVING = pa.schema([*FINISHED, BUNDLES.field("bundle")])
"""The output of a query with both native and Python outputs: each row is a record or a bundle."""

TO_FOLD = pa.schema([RECORD.field(name) for name in ("key", "value", "timestamp")])
"""The rows that Python passes to a native aggregation."""

TO_COUNT = pa.schema([*TO_FOLD, ("copies", pa.int32())])
"""The same for an aggregation that only counts: a row stands for some number of records of its key."""

_SPARK_TYPES = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.binary(): "binary",
    pa.string(): "string",
    _HEADERS: HEADERS_DDL,
}


def ddl(schema: pa.Schema) -> str:
    """A schema as Spark DDL text."""
    return ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in schema)


TICK = -1
"""The `input` of a row that carries no record but the wall-clock time."""

Numbers = npt.NDArray[np.int64]

_SAME_FOR_SOURCES = {"target": "partition", "lane": "input"}
_BEHIND_STAGES = ("clock", "path")
"""Columns that only records from another stage have."""


BUNDLE_BYTES = 32_768
"""Approximate maximum size of a bundle. Spark passes thousands of rows to Python at once, and may run out of memory."""


def bundles(records: pa.RecordBatch) -> list[bytes]:
    """Records serialized as bundles."""
    step = max(1, records.num_rows * BUNDLE_BYTES // max(1, records.nbytes))
    parts = (records.slice(start, step) for start in range(0, records.num_rows, step))
    return [_without_baggage(part).serialize().to_pybytes() for part in parts]


def _without_baggage(records: pa.RecordBatch) -> pa.RecordBatch:
    """Replace a `headers` column that is all null: a slice of it would be serialized with the whole column."""
    at = records.schema.get_field_index("headers")
    headers = records.column(at)
    if headers.null_count < len(headers):
        return records
    return records.set_column(at, records.schema.field(at), pa.nulls(len(headers), headers.type))


def open_bundles(cells: Iterable[bytes], schema: pa.Schema) -> list[pa.RecordBatch]:
    """The records of bundles; each bundle must have been made with this schema."""
    return [pa.ipc.read_record_batch(pa.py_buffer(cell), schema) for cell in cells]


class Table:
    """Rows in columns, converted to Python only when needed."""

    def __init__(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema | None = None) -> None:
        self._table = pa.Table.from_batches(batches, schema)
        self._names = frozenset(self._table.column_names)
        self.count = self._table.num_rows

    def numbers(self, name: str) -> Numbers:
        """A column of whole numbers; null is 0."""
        column = self._table.column(name if name in self._names else _SAME_FOR_SOURCES[name])
        if column.null_count:
            column = column.fill_null(0)
        found: Numbers = column.to_numpy().astype(np.int64, copy=False)
        return found

    def has(self, name: str) -> bool:
        """Whether any row has a value in this column."""
        return name in self._names and bool(self._table.column(name).null_count < self.count)

    def nulls(self, name: str) -> npt.NDArray[np.bool_]:
        """A mask of the rows without a value in this column."""
        found: npt.NDArray[np.bool_] = self._table.column(name).is_null().to_numpy()
        return found

    def some_null(self, name: str) -> bool:
        """Whether any row lacks a value in this column."""
        return bool(self._table.column(name).null_count)

    def where(self, mask: npt.NDArray[np.bool_]) -> Table:
        """The rows for which the mask is true."""
        return self if mask.all() else Table(self._table.filter(pa.array(mask)).to_batches(), self._table.schema)

    def take(self, order: Sequence[int] | Numbers) -> Table:
        """The rows at these indexes, in this order."""
        return Table(self._table.take(pa.array(order, pa.int64())).combine_chunks().to_batches(), self._table.schema)

    def records(self) -> Table:
        """The records of all rows, including those in bundles."""
        if "bundle" not in self._names:
            return self
        inside = open_bundles((cell for cell in self.values("bundle") if cell is not None), RECORD)
        if "key" not in self._names or not self.some_null("bundle"):
            return Table(inside, RECORD)
        return Table([*_as_records(self.where(self.nulls("bundle"))._table), *inside], RECORD)

    def as_records(self) -> list[pa.RecordBatch]:
        """Rows from topics, with all columns of records in bundles."""
        return _as_records(self._table)

    def bundles(self) -> list[pa.RecordBatch]:
        """The rows unchanged, for a later stage."""
        return self._table.select(BUNDLES.names).to_batches()  # type: ignore[no-any-return]

    def slice(self, start: int, length: int) -> Table:
        return Table(self._table.slice(start, length).to_batches(), self._table.schema)

    def values(self, name: str) -> list[Any]:
        """A column of bytes or text as Python objects."""
        return binary_values(self._table.column(name))

    def text(self, name: str) -> list[Any]:
        """A column of bytes as text; raises `ValueError` if some are not UTF-8."""
        return binary_values(self._table.column(name).cast(pa.string()))

    def check_text(self, name: str) -> None:
        """Raise `ValueError` if some bytes of a column are not UTF-8."""
        self._table.column(name).cast(pa.string())

    def lineage(self) -> Lineage | None:
        """The forwarding steps of each row, or None if all rows come directly from topics."""
        return Lineage.of(self._table.column("path")) if self.has("path") else None

    def headers(self) -> list[tuple[tuple[str, bytes | None], ...]] | None:
        """The headers of each row, or None if no row has any."""
        return header_tuples(self._table.column("headers")) if self.has("headers") else None


def _as_records(rows: pa.Table) -> list[pa.RecordBatch]:
    """Rows from topics, with all columns of records in bundles."""
    columns = [
        pa.nulls(rows.num_rows, field.type)
        if field.name in _BEHIND_STAGES
        else rows.column(_SAME_FOR_SOURCES.get(field.name, field.name)).cast(field.type)
        for field in RECORD
    ]
    return pa.table(columns, schema=RECORD).to_batches()  # type: ignore[no-any-return]


def binary_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """A column of bytes or text as a list. By way of pandas it takes twice as long: that looks for equal values."""
    if column.null_count == len(column):
        return [None] * len(column)
    values: list[Any] = column.to_pylist()
    return values


def header_tuples(column: pa.ChunkedArray | pa.Array) -> list[tuple[tuple[str, bytes | None], ...]]:
    """Headers as tuples, as in records."""
    return [tuple((one["key"], one["value"]) for one in headers) if headers else () for headers in column.to_pylist()]


def pack_rows(count: int, columns: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Rows from columns: lists, arrays, or one value for all rows; a missing column is null."""
    arrays = []
    for field in schema:
        given = columns.get(field.name)
        if given is None:
            arrays.append(pa.nulls(count, field.type))
        elif isinstance(given, pa.Array):
            arrays.append(given)
        elif isinstance(given, int):
            arrays.append(pa.repeat(pa.scalar(given, field.type), count))
        else:
            arrays.append(pa.array(given, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
