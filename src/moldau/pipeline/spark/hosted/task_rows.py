"""Converts between Arrow and tasks: a batch's rows to records in processing order, outputs to bundles.

Start at `rows_in_order` for input and `BundleWriter` for output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from moldau.pipeline.cores.fusing.columns import Counted, OutputColumns
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
from moldau.pipeline.spark.hosted.work import InputName, StageWork
from moldau.pipeline.spark.plan import STATE_OUTPUT, Unit, store_output
from moldau.pipeline.spark.rows import BUNDLES, FINISHED, RECORD, TO_COUNT, TO_FOLD, Table, bundles, pack_rows

__all__ = [
    "BundleWriter",
    "FoldWriter",
    "InputRun",
    "Origin",
    "addressed",
    "input_runs",
    "rows_in_order",
    "window_header",
]


COUNTED_KEYS = 50_000
"""How many keys are counted before their counts are passed on."""

SHORT_RUN = 64
"""Runs of one input that are shorter on average are not processed as columns."""


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


class InputRun:
    """Consecutive rows of one input, as columns (`InputColumns` of `cores.fusing`) or one by one."""

    def __init__(self, table: Table, name: InputName) -> None:
        self._table = table
        self._name = name
        self.count = table.count
        self.node = name.node
        self.topic = name.topic
        """None if each row has its own."""

    @property
    def has_columns(self) -> bool:
        """Whether these are enough rows of one topic to process them as columns."""
        return self.count >= SHORT_RUN and self.topic is not None

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Records in the field order of `InputRecord`."""
        table, name = self._table, self._name
        headers = table.headers()
        has_topics = name.topic is None and table.has("topic")
        return zip(
            table.values("topic") if has_topics else repeat(name.topic),
            self.partitions(),
            self.offsets(),
            table.numbers("timestamp").tolist(),
            repeat(()) if headers is None else headers,
            table.values("key"),
            table.values("value"),
            strict=False,
        )

    def row(self, index: int) -> tuple[Any, ...]:
        return next(InputRun(self._table.slice(index, 1), self._name).rows())

    def has_nulls(self, part: str) -> bool:
        return self._table.some_null(part)

    def data(self, part: str) -> list[bytes | None]:
        return self._table.values(part)

    def text(self, part: str) -> list[str | None]:
        return self._table.text(part)

    def check_text(self, part: str) -> None:
        self._table.check_text(part)

    def timestamps(self) -> list[int]:
        numbers: list[int] = self._table.numbers("timestamp").tolist()
        return numbers

    def partitions(self) -> list[int]:
        numbers: list[int] = self._table.numbers("target" if self._name.is_repartition else "partition").tolist()
        return numbers

    def offsets(self) -> list[int]:
        numbers: list[int] = self._table.numbers("offset").tolist()
        return numbers

    def time_range(self) -> tuple[int, int]:
        numbers = self._table.numbers("timestamp")
        return int(numbers.min()), int(numbers.max())

    def headers(self) -> list[Any] | None:
        return self._table.headers()


def input_runs(table: Table, work: StageWork) -> Iterator[InputRun]:
    """The rows in order, split where the input changes."""
    inputs = table.numbers("input")
    if table.count == 0:
        return
    changes = np.flatnonzero(np.diff(inputs)) + 1
    if not len(changes):
        yield InputRun(table, work.inputs[int(inputs[0])])
        return
    if len(changes) * SHORT_RUN > table.count:
        yield from _short_runs(table, work, inputs, changes.tolist())
        return
    for start, end in pairwise([0, *changes.tolist(), table.count]):
        yield InputRun(table.slice(start, end - start), work.inputs[int(inputs[start])])


class _ShortRun(InputRun):
    """Few rows of one input: converting them alone would take longer than processing them."""

    def __init__(self, table: Table, name: InputName, rows: list[tuple[Any, ...]]) -> None:
        super().__init__(table, name)
        self.count = len(rows)
        self._rows = rows

    @property
    def has_columns(self) -> bool:
        return False

    def rows(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._rows)


def _short_runs(table: Table, work: StageWork, inputs: Numbers, changes: list[int]) -> Iterator[InputRun]:
    whole = {index: list(InputRun(table, name).rows()) for index, name in work.inputs.items()}
    for start, end in pairwise([0, *changes, table.count]):
        index = int(inputs[start])
        yield _ShortRun(table, work.inputs[index], whole[index][start:end])


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

    def write_columns(self, outputs: OutputColumns, origin: Origin | None) -> Iterator[pa.RecordBatch]:
        """The bundles of records that left by one output, as columns."""
        count = len(outputs.keys)
        if not count:
            return
        headers = None if outputs.headers is None else _header_column(outputs.headers)
        if outputs.output not in self._targets:
            yield self._finished_columns(
                count,
                output=self._outputs[outputs.output],
                partition=outputs.partitions,
                timestamp=outputs.timestamps,
                topic=[outputs.topic] * count if outputs.output in self._dynamic else None,
                key=outputs.keys,
                value=outputs.values,
                headers=headers,
            )
            return
        assert origin is not None
        assert outputs.causes is not None
        assert outputs.partitions is not None
        record = np.asarray(outputs.causes, np.int64)
        number, slots = self._targets[outputs.output]
        yield self._records_forwarded(
            np.asarray(slots)[np.asarray(outputs.partitions)],
            np.full(count, number),
            _position_among_equals(record),
            origin,
            record,
            {
                "target": outputs.partitions,
                "timestamp": outputs.timestamps,
                "key": outputs.keys,
                "value": outputs.values,
                "headers": headers,
            },
        )

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
        known = {
            "target": partitions,
            "timestamp": timestamps,
            "key": keys,
            "value": values,
            "headers": _header_column(headers),
        }
        return self._records_forwarded(slots, inputs, nth, origin, record, known)

    @staticmethod
    def _records_forwarded(  # noqa: PLR0917
        slots: Numbers, inputs: Numbers, nth: Numbers, origin: Origin, record: Numbers, known: dict[str, Any]
    ) -> pa.RecordBatch:
        """Bundles of the `nth` outputs of the records of `origin` at the indexes `record`."""
        lineage = Lineage.first(nth) if origin.lineage is None else origin.lineage.next(record, nth)
        columns = {
            **known,
            "input": inputs,
            "lane": origin.lane[record],
            "partition": origin.partition[record],
            "offset": origin.offset[record],
            "clock": origin.clock[record],
            "path": lineage.column(),
        }
        return addressed(pack_rows(len(record), columns, RECORD), slots, inputs)

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

    def __init__(self, *, counts: bool = False) -> None:
        """With `counts` rows tell how many records of a key they stand for."""
        self.counts = counts
        self._copies: dict[bytes, int] = {}
        self._latest: dict[bytes, int] = {}

    def write(
        self, outputs: Sequence[OutputRow], origin: Origin | None, marks: Sequence[int] | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of some outputs, all of which go to the aggregation."""
        if outputs:
            _, _, keys, values, timestamps, _, _ = zip(*outputs, strict=True)
            columns = {"key": keys, "value": values, "timestamp": timestamps}
            yield self._rows(len(outputs), columns, 1)

    def write_columns(self, outputs: OutputColumns) -> Iterator[pa.RecordBatch]:
        """The same for columns."""
        if outputs.keys:
            columns = {"key": outputs.keys, "value": outputs.values, "timestamp": outputs.timestamps}
            yield self._rows(len(outputs.keys), columns, 1)

    def add(self, counted: Counted) -> Iterator[pa.RecordBatch]:
        """Add counts, and return rows if there are many keys."""
        if not self._copies:
            self._copies, self._latest = counted.counts, counted.latest
        else:
            copies, latest = self._copies, self._latest
            for key, count in counted.counts.items():
                copies[key] = copies.get(key, 0) + count
            for key, timestamp in counted.latest.items():
                latest[key] = max(timestamp, latest.get(key, timestamp))
        if len(self._copies) > COUNTED_KEYS:
            yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The rows of all counts that were added."""
        copies, self._copies = self._copies, {}
        if copies:
            times = [self._latest[key] for key in copies]
            columns = {"key": list(copies), "value": [b""] * len(copies), "timestamp": times}
            yield self._rows(len(copies), columns, list(copies.values()))

    def _rows(self, count: int, columns: dict[str, Any], copies: Any) -> pa.RecordBatch:
        if self.counts:
            return pack_rows(count, {**columns, "copies": copies}, TO_COUNT)
        return pack_rows(count, columns, TO_FOLD)


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


def _position_among_equals(sorted_numbers: Numbers) -> Numbers:
    """For each of these numbers, which are in order, how many equal ones precede it."""
    starts = np.flatnonzero(np.diff(sorted_numbers, prepend=sorted_numbers[0] - 1))
    lengths = np.diff(np.append(starts, len(sorted_numbers)))
    positions: Numbers = np.arange(len(sorted_numbers)) - np.repeat(starts, lengths)
    return positions


def _header_column(headers: Iterable[Any]) -> list[Any] | None:
    if not any(headers):
        return None
    return [[{"key": key, "value": value} for key, value in one] if one else None for one in headers]


def window_header(window: Any) -> Any:
    """The window of a store's entry as a header, in the format that `pipeline.runtime` reads."""
    from struct import pack

    return None if window is None else [{"key": "window", "value": pack(">qq", window.start, window.end)}]
