"""Converts between Arrow and tasks: a batch's rows to records in processing order, outputs to bundles.

Start at `rows_in_order` for input and `BundleWriter` for output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from moldau.pipeline.cores.records import OutputRow
from moldau.pipeline.cores.stores.store import StoreChange
from moldau.pipeline.spark.hosted.ordering import (
    AFTER_ALL,
    BEFORE_ALL,
    Lineage,
    Numbers,
    clocks,
    is_sorted,
    processing_order,
)
from moldau.pipeline.spark.hosted.work import StageWork
from moldau.pipeline.spark.plan import STATE_OUTPUT, Unit, store_output
from moldau.pipeline.spark.rows import BUNDLES, FINISHED, RECORD, TO_FOLD, Table, bundles, pack_rows

__all__ = ["BundleWriter", "FoldWriter", "Origin", "addressed", "named_rows", "rows_in_order", "window_header"]


class Origin:
    """The input records of some outputs, by their position in the processing order."""

    def __init__(
        self, clock: Numbers, lane: Numbers, partition: Numbers, offset: Numbers, lineage: Lineage | None
    ) -> None:
        self.clock = clock
        self.lane = lane
        self.partition = partition
        self.offset = offset
        self.lineage = lineage

    def slice(self, start: int, end: int) -> Origin:
        """The records from `start` to before `end`."""
        return Origin(
            self.clock[start:end],
            self.lane[start:end],
            self.partition[start:end],
            self.offset[start:end],
            None if self.lineage is None else self.lineage.slice(start, end),
        )

    @property
    def count_from_records(self) -> int:
        """The number of rows that records caused; they come first, the rest is from commits and punctuations."""
        return int(np.searchsorted(self.clock, AFTER_ALL))

    @classmethod
    def after_all(cls, unit: Unit) -> Origin:
        """The origin of outputs that no record caused: they come after all others, task by task."""
        lane, partition = np.full(1, unit.sub_topology), np.full(1, unit.partition)
        return cls(np.full(1, AFTER_ALL), lane, partition, np.zeros(1, np.int64), None)


def rows_in_order(table: Table, global_inputs: frozenset[int]) -> tuple[Table, Origin]:
    """The rows in processing order, those of global tables first."""
    lane, partition, offset = (table.numbers(name) for name in ("lane", "partition", "offset"))
    lineage = table.lineage()
    is_whole = not table.has("clock")
    clock = clocks(table.numbers("timestamp"), lane, partition, offset) if is_whole else table.numbers("clock")
    if not is_whole and table.some_null("clock"):
        fresh = table.nulls("clock")
        clock = clock.copy()
        clock[fresh] = clocks(table.numbers("timestamp")[fresh], lane[fresh], partition[fresh], offset[fresh])
    if global_inputs:
        is_global = np.isin(table.numbers("input"), list(global_inputs))
        clock = np.where(is_global, BEFORE_ALL, clock)
    if lineage is None and is_sorted(clock, lane, partition, offset):
        return table, Origin(clock, lane, partition, offset, None)
    order = processing_order(clock, lane, partition, offset, lineage)
    in_order = None if lineage is None else lineage.take(order)
    return table.take(order), Origin(clock[order], lane[order], partition[order], offset[order], in_order)


def named_rows(table: Table, work: StageWork) -> Iterator[tuple[str, Iterator[tuple[Any, ...]]]]:
    """Consecutive rows of one input: the node's name, and records in the field order of `InputRecord`."""
    inputs = table.numbers("input")
    if table.count == 0:
        return
    cuts = [0, *(np.flatnonzero(np.diff(inputs)) + 1).tolist(), table.count]
    columns: tuple[Any, ...] = (
        table.numbers("target").tolist(),
        table.numbers("partition").tolist(),
        table.numbers("offset").tolist(),
        table.numbers("timestamp").tolist(),
        table.headers(),
        table.values("key"),
        table.values("value"),
    )
    topics = table.values("topic") if table.has("topic") else None
    for start, end in pairwise(cuts):
        name = work.inputs[int(inputs[start])]
        target, partition, offset, timestamp, headers, key, value = (c and c[start:end] for c in columns)
        topic = repeat(name.topic) if name.topic is not None or topics is None else topics[start:end]
        yield (
            name.node,
            zip(
                topic,
                target if name.is_repartition else partition,
                offset,
                timestamp,
                repeat(()) if headers is None else headers,
                key,
                value,
                strict=False,
            ),
        )


class BundleWriter:
    """Converts the outputs of one task to bundles: for tasks of later stages, or finished."""

    def __init__(self, work: StageWork, slot: int) -> None:
        self._outputs = work.outputs
        self._dynamic = work.dynamic_topics
        self._targets = work.targets
        self._number = work.number
        self._finished_slot = -1 - slot
        self._sequence = 0
        self.forwards = bool(work.targets)
        """Whether records may go to later stages, which need the input record that caused each of them."""

    def write(
        self, outputs: Sequence[OutputRow], origin: Origin | None, marks: Sequence[int] | None
    ) -> Iterator[pa.RecordBatch]:
        """The bundles of some outputs; `marks[i]` is the number of outputs after the i-th record of `origin`."""
        if not outputs:
            return
        if not self.forwards:
            yield self._finished_bundles(outputs)
            return
        targets = self._targets
        forwarded = [position for position, output in enumerate(outputs) if output[0] in targets]
        if len(forwarded) < len(outputs):
            yield self._finished_bundles([output for output in outputs if output[0] not in targets])
        if forwarded:
            assert origin is not None
            yield self._forwarded_bundles(outputs, forwarded, origin, marks)

    def changes(self, changes: dict[str, list[StoreChange]], partition: int) -> Iterator[pa.RecordBatch]:
        """The bundles with changes of queryable stores."""
        for store, entries in changes.items():
            name = store_output(store)
            if name not in self._outputs or not entries:
                continue
            keys, values, timestamps, windows = zip(*entries, strict=True)
            has_windows = any(window is not None for window in windows)
            yield self._finished_columns(
                len(entries),
                output=self._outputs[name],
                partition=partition,
                timestamp=list(timestamps),
                key=keys,
                value=values,
                headers=[window_header(window) for window in windows] if has_windows else None,
            )

    def store_rows(self, table: Table, output: int) -> pa.RecordBatch:
        """The bundle with changes of a queryable store that Spark keeps natively, from rows with these changes."""
        return self._finished_columns(
            table.count,
            output=output,
            timestamp=table.numbers("timestamp"),
            key=table.values("key"),
            value=table.values("value"),
        )

    def state(self, unit: Unit, store: str, changes: Mapping[bytes, bytes | None]) -> pa.RecordBatch:
        """The bundle with everything that was written to a store's backend."""
        return self._finished_columns(
            len(changes),
            output=self._outputs[STATE_OUTPUT],
            partition=unit.partition,
            topic=[f"{unit.sub_topology}/{store}"] * len(changes),
            key=list(changes),
            value=list(changes.values()),
        )

    def _finished_bundles(self, outputs: Sequence[OutputRow]) -> pa.RecordBatch:
        names, topics, keys, values, timestamps, headers, partitions = zip(*outputs, strict=True)
        codes = self._outputs
        first = names[0]
        is_one = len(codes) == 1 or names.count(first) == len(names)
        return self._finished_columns(
            len(outputs),
            output=codes[first] if is_one else [codes[name] for name in names],
            partition=partitions if any(partition is not None for partition in partitions) else None,
            timestamp=timestamps,
            topic=None if is_one and first not in self._dynamic else topics,
            key=keys,
            value=values,
            headers=_header_column(headers),
        )

    def _finished_columns(self, count: int, **columns: Any) -> pa.RecordBatch:
        cells = bundles(pack_rows(count, columns, FINISHED))
        numbers = np.arange(self._sequence, self._sequence + len(cells))
        self._sequence += len(cells)
        known = {"slot": self._finished_slot, "input": self._number, "offset": numbers, "bundle": cells}
        return pack_rows(len(cells), known, BUNDLES)

    def _forwarded_bundles(
        self, outputs: Sequence[OutputRow], positions: list[int], origin: Origin, marks: Sequence[int] | None
    ) -> pa.RecordBatch:
        record, nth = _causes(positions, marks)
        chosen = outputs if len(positions) == len(outputs) else [outputs[at] for at in positions]
        names, _, keys, values, timestamps, headers, partitions = zip(*chosen, strict=True)
        slots, inputs = self._addresses(names, partitions)
        lineage = Lineage.first(nth) if origin.lineage is None else origin.lineage.next(record, nth)
        records = pack_rows(
            len(positions),
            {
                "input": inputs,
                "target": partitions,
                "lane": origin.lane[record],
                "partition": origin.partition[record],
                "offset": origin.offset[record],
                "timestamp": timestamps,
                "clock": origin.clock[record],
                "path": lineage.column(),
                "key": keys,
                "value": values,
                "headers": _header_column(headers),
            },
            RECORD,
        )
        return addressed(records, slots, inputs)

    def _addresses(self, names: tuple[str, ...], partitions: tuple[Any, ...]) -> tuple[Numbers, Numbers]:
        """The slot and the input of each record that goes to a later stage."""
        targets = self._targets
        if names.count(names[0]) == len(names):
            number, slots = targets[names[0]]
            return np.asarray(slots)[np.asarray(partitions)], np.full(len(names), number)
        places = zip(names, partitions, strict=True)
        return (
            np.array([targets[name][1][partition] for name, partition in places]),
            np.array([targets[name][0] for name in names]),
        )


class FoldWriter:
    """Converts the outputs of a stateless task to rows for a native aggregation."""

    forwards = False

    def write(
        self, outputs: Sequence[OutputRow], origin: Origin | None, marks: Sequence[int] | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of some outputs, all of which go to the aggregation."""
        if outputs:
            _, _, keys, values, timestamps, _, _ = zip(*outputs, strict=True)
            yield pack_rows(len(outputs), {"key": keys, "value": values, "timestamp": timestamps}, TO_FOLD)


def addressed(records: pa.RecordBatch, slots: Numbers, inputs: Numbers) -> pa.RecordBatch:
    """Bundles per input and slot, in which records keep their order."""
    order = np.lexsort((slots, inputs))
    slots, inputs = slots[order], inputs[order]
    starts = np.flatnonzero(np.diff(slots, prepend=slots[0] - 1) | np.diff(inputs, prepend=inputs[0]))
    if len(starts) > 1:
        records = records.take(pa.array(order))
    parts = [bundles(records.slice(start, end - start)) for start, end in pairwise([*starts.tolist(), len(order)])]
    cells = [cell for part in parts for cell in part]
    which = np.repeat(starts, [len(part) for part in parts])
    known = {"slot": slots[which], "input": inputs[which], "offset": np.arange(len(cells)), "bundle": cells}
    return pack_rows(len(cells), known, BUNDLES)


def _causes(positions: list[int], marks: Sequence[int] | None) -> tuple[Numbers, Numbers]:
    """For each output the index of the record that caused it, and its index among that record's outputs."""
    at = np.asarray(positions, np.int64)
    if marks is None:
        return np.zeros(len(at), np.int64), at
    ends = np.asarray(marks, np.int64)
    record = np.searchsorted(ends, at, side="right")
    starts = np.concatenate([np.zeros(1, np.int64), ends])[record]
    return record, at - starts


def _header_column(headers: Iterable[Any]) -> list[Any] | None:
    if not any(headers):
        return None
    return [[{"key": key, "value": value} for key, value in one] if one else None for one in headers]


def window_header(window: Any) -> Any:
    """The window of a store's entry as a header, in the format that `pipeline.runtime` reads."""
    from struct import pack

    return None if window is None else [{"key": "window", "value": pack(">qq", window.start, window.end)}]
